#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A context is closed while callbacks of its timers are about to run: there is a delay after a timer
# has left the wheel (TWHEEL_POINT_CALL).

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

unload
insmod /twheel/inject/twheel.ko inject_points=$((1 << 3)) inject_us=1000 &&
	../device/lifetime -r lifetime.expiries_behind_a_close
status=$?
unload
exit $status
