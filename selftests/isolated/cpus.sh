#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The account of timers that all CPUs, including the isolated one, arm, move and cancel.

cd "$(dirname "$0")" || exit
exec taskset "$(printf %x $(((1 << $(nproc --all)) - 1)))" ../device/cpus
