#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twheel_torture.ko with delays at all injection points, at each of them alone, with yields
# instead of delays, with none, and with no memory for chunks. CPUs go offline and online
# meanwhile, if they can.
# TORTURE_SECONDS is the duration of the first run, and of that in which isolated CPUs change; each
# of the others takes a thirtieth of it.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

SECONDS_LONG=${TORTURE_SECONDS:-30}
SECONDS_SHORT=$(((SECONDS_LONG + 29) / 30))
POINTS=10
# The remaining points are only passed by timers of the device, and by rules.
POINTS_HERE=8
# This point is only passed when a CPU goes offline (TWHEEL_POINT_MIGRATE).
POINT_MIGRATE=7
MODULES=/twheel/inject
all_operations=0

# The account of the last torture run.
operations=
armings=
fired=
cancelled=
cpus_taken_off=
errors=

# Replaces the modules by those built with injection points.
load_injectable() {
	unload
	insmod $MODULES/twheel.ko "$@" && cd /sys/module/twheel/parameters &&
		[ "$(wc -w < inject_hits)" = $POINTS ]
}

set_points() {
	echo "$1" > /sys/module/twheel/parameters/inject_points &&
		echo "$2" > /sys/module/twheel/parameters/inject_yield
}

# results NAME...: sets each variable NAME to the result of that name.
results() {
	for name; do
		read -r "${name?}" < "/sys/module/twheel_torture/parameters/$name" || return
	done
}

# User-mode Linux cannot take CPUs offline.
cpus_go_off() {
	for online in /sys/devices/system/cpu/cpu*/online; do
		[ -e "$online" ]
		return
	done
}

# torture SECONDS POINTS YIELD [PARAMETER...]: loading the module fails if its account is
# wrong.
torture() {
	set_points "$2" "$3" || return
	seconds=$1
	shift 3
	insmod $MODULES/twheel_torture.ko seconds="$seconds" "$@" || return
	results operations armings fired cancelled cpus_taken_off errors || return
	all_operations=$((all_operations + operations))
	echo "# $operations operations, $armings armings: $fired fired, $cancelled cancelled;" \
	     "CPUs off $cpus_taken_off times"
	[ "$errors" = 0 ] && [ "$fired" -gt 0 ] && [ "$cancelled" -gt 0 ] &&
		{ [ "$cpus_taken_off" -gt 0 ] || ! cpus_go_off; } && [ "$(total pending)" = 0 ]
	passed=$?
	rmmod twheel_torture && return $passed
}

# Were all points hit that timers without a device pass?
all_hit() {
	read -r hits < /sys/module/twheel/parameters/inject_hits
	echo "# delays at each point: $hits"
	point=0
	for n in $hits; do
		[ $point -lt $POINTS_HERE ] || break
		[ "$n" -gt 0 ] || { [ $point = $POINT_MIGRATE ] && ! cpus_go_off; } || return
		point=$((point + 1))
	done
}

torture_point() {
	torture "$SECONDS_SHORT" $((1 << $1)) 0
}

torture_points() {
	point=0
	while [ $point -lt $POINTS_HERE ]; do
		if [ $point = $POINT_MIGRATE ] && ! cpus_go_off; then
			tap_skip "delays at point $point" "no CPU of this kernel can go off"
		else
			tap "delays at point $point" torture_point $point
		fi
		point=$((point + 1))
	done
}

# Without chunks, every timer spills.
torture_spilled() {
	load_injectable inject_no_page=1 && torture "$SECONDS_SHORT" $(((1 << POINTS) - 1)) 0 &&
		[ "$(total chunks)" = 0 ] && [ "$(total spilled)" -gt 0 ]
}

# All but the first and the third CPU queue what they arm on other CPUs, except for a thread that
# is migrated in the middle of a call.
torture_isolated() {
	load_injectable inject_isolated=$((0xfffa)) &&
		torture "$SECONDS_SHORT" $(((1 << POINTS) - 1)) 0 || return
	awk '$1 == 1 {
		print "# isolated: " $3 " armed, " $7 " expired there"
		exit $3 == 0 || $7 > $3 / 10
	}' "$DEBUGFS/twheel/cpus"
}

# Which CPUs are isolated changes all the time, and at times all of them are, or none.
change_isolated() {
	while :; do
		for mask in $((0xfffa)) 0 $((0x5555)) $((0xffff)) 2 $((0xfffe)); do
			echo "$mask" > /sys/module/twheel/parameters/inject_isolated
			sleep 0.03
		done
	done
}

torture_isolation() {
	load_injectable || return
	change_isolated &
	changes=$!
	torture "$SECONDS_LONG" $(((1 << POINTS) - 1)) 0
	passed_changes=$?
	kill $changes
	wait $changes 2> /dev/null
	awk 'NR > 1 { print "# CPU " $1 ": " $3 " armed, " $7 " expired there" }' \
		"$DEBUGFS/twheel/cpus"
	return $passed_changes
}

# A timer expires while it is being stopped: TWHEEL_POINT_CANCEL gives it up to a millisecond for
# that.
torture_stops() {
	echo 1000 > /sys/module/twheel/parameters/inject_us &&
		torture "$SECONDS_SHORT" $((1 << 5)) 0 duels=1
}

tap_plan $((POINTS_HERE + 10))
tap "the module has injection points" load_injectable
tap "delays at all points" torture "$SECONDS_LONG" $(((1 << POINTS) - 1)) 0
tap "every point delays" all_hit
tap "yields at all points" torture "$SECONDS_SHORT" $(((1 << POINTS) - 1)) 1
torture_points
tap "no delays" torture "$SECONDS_SHORT" 0 0
tap "two timers for all threads" torture "$SECONDS_SHORT" 0 0 nr_shared=2
tap "stopped while they expire" torture_stops
tap "no memory for chunks" torture_spilled
tap "isolated CPUs" torture_isolated
tap "CPUs that become isolated and cease to be" torture_isolation
unload
echo "# $all_operations operations tortured"
tap_end
