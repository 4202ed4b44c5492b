#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The account of timers that all CPUs arm, move and cancel, the isolated one among them.

cd "$(dirname "$0")" || exit
exec taskset "$(printf %x $(((1 << $(nproc --all)) - 1)))" ../device/cpus
