#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Timers are cancelled whose callbacks begin meanwhile: there is a delay before a timer is dequeued
# (TWHEEL_POINT_DEQUEUE, TWHEEL_POINT_CANCEL), in which it expires.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

RESULTS=$DEBUGFS/twheel_test/results

delays() {
	# shellcheck disable=SC2046 # words
	set -- $(cat /sys/module/twheel/parameters/inject_hits)
	echo "# delays: $*"
	[ "$6" -gt 0 ]
}

passed() {
	modprobe twheel_test only=cancel_sync && grep -q '^ok' "$RESULTS" &&
		! grep -E '^(#|not ok)' "$RESULTS" && rmmod twheel_test
}

stopped() {
	insmod /twheel/inject/twheel.ko inject_points=$((1 << 0 | 1 << 5)) inject_us=1000 || return
	for _ in 1 2 3 4 5 6 7 8; do
		passed || return
	done
	delays
}

unload
tap_plan 1
tap "cancel_sync while a callback begins" stopped
rmmod twheel_test 2> /dev/null
unload
tap_end
