#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Every call, with its nth allocation or copy failing.

cd "$(dirname "$0")" && exec ./fail_nth "$(modinfo -n twheel)"
