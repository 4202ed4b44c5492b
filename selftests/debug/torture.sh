#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twheel_torture.ko with delays at all injection points, at each of them, with yields
# instead, with none, and with no memory for chunks.
# TORTURE_SECONDS is how long the first takes; each of the others takes a thirtieth of it.

cd "$(dirname "$0")/../twheel" || exit
. ./tap.sh

SECONDS_LONG=${TORTURE_SECONDS:-30}
SECONDS_SHORT=$(((SECONDS_LONG + 29) / 30))
POINTS=9
MODULES=/twheel/inject
all_operations=0

# The account of the last torture.
operations=
armings=
fired=
cancelled=
cpus_taken_off=
errors=

# The modules built with injection points take the place of the others.
load_injectable() {
	unload
	insmod $MODULES/twheel.ko "$@" && cd /sys/module/twheel/parameters &&
		[ "$(wc -w < inject_hits)" = $POINTS ]
}

set_points() {
	echo "$1" > /sys/module/twheel/parameters/inject_points &&
		echo "$2" > /sys/module/twheel/parameters/inject_yield
}

# results NAME...: each is what the variable of this name becomes.
results() {
	for name; do
		read -r "${name?}" < "/sys/module/twheel_torture/parameters/$name" || return
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
		[ "$cpus_taken_off" -gt 0 ] && [ "$(total pending)" = 0 ]
	passed=$?
	rmmod twheel_torture && return $passed
}

# Has every point that timers without a device pass been hit?
all_hit() {
	read -r hits < /sys/module/twheel/parameters/inject_hits
	echo "# delays at each point: $hits"
	for n in ${hits% *}; do
		[ "$n" -gt 0 ] || return
	done
}

# Without chunks every timer spills.
torture_spilled() {
	load_injectable inject_no_page=1 && torture "$SECONDS_SHORT" $(((1 << POINTS) - 1)) 0 &&
		[ "$(total chunks)" = 0 ] && [ "$(total spilled)" -gt 0 ]
}

# A timer expires while it is being stopped: up to a millisecond for that at
# TWHEEL_POINT_STOP.
torture_stops() {
	echo 1000 > /sys/module/twheel/parameters/inject_us &&
		torture "$SECONDS_SHORT" $((1 << 5)) 0 duels=1
}

tap_plan $((POINTS + 7))
tap "the module has injection points" load_injectable
tap "delays at all points" torture "$SECONDS_LONG" $(((1 << POINTS) - 1)) 0
tap "every point delays" all_hit
tap "yields at all points" torture "$SECONDS_SHORT" $(((1 << POINTS) - 1)) 1
point=0
while [ $point -lt $((POINTS - 1)) ]; do
	tap "delays at point $point" torture "$SECONDS_SHORT" $((1 << point)) 0
	point=$((point + 1))
done
tap "no delays" torture "$SECONDS_SHORT" 0 0
tap "two timers for all threads" torture "$SECONDS_SHORT" 0 0 nr_shared=2
tap "stopped while they expire" torture_stops
tap "no memory for chunks" torture_spilled
unload
echo "# $all_operations operations tortured"
tap_end
