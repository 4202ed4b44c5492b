#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Timers with three generations left.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

unload
insmod /twheel/inject/twheel.ko inject_generation=$((0xfffffffd)) && ./generations
status=$?
unload
exit $status
