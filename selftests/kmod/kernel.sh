#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The in-kernel API: the tests of twheel_test.ko, which run when it is loaded, and those that
# need a script: CPU hotplug, and dependences between modules.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

TEST=$DEBUGFS/twheel_test
CPU=/sys/devices/system/cpu/cpu1/online
PM_TEST=/sys/power/pm_test

load_test() {
	modprobe twheel_test ${TWHEEL_MANY:+very_many="$TWHEEL_MANY"} \
		${TWHEEL_SIMULATED:+simulated=1} && [ -r "$TEST/results" ]
}

unload_refused() {
	if try_unload; then
		wrong "unloaded while another module uses it"
		return
	fi
	is_there
}

# A number from the last line of the hotplug file.
hotplug() {
	tr ' ' '\n' < "$TEST/hotplug" | sed -n "s/^$1=//p"
}

# Waits until the near timers have fired.
fired() {
	i=0

	while [ "$(hotplug fired)" != "$(hotplug near)" ]; do
		i=$((i + 1))
		[ $i -lt 250 ] || wrong "$(cat "$TEST/hotplug")" || return
		sleep 0.1
	done
}

# gone N MS: arms timers on a CPU, takes it offline, and brings it back.
gone() {
	echo "arm 1 $1 $2" > "$TEST/hotplug" || return
	echo 0 > $CPU || return
	if ! fired; then
		echo 1 > $CPU
		return 1
	fi
	echo cancel > "$TEST/hotplug"
	echo 1 > $CPU
	echo "# $(cat "$TEST/hotplug")"
	[ "$(hotplug armed)" = "$1" ] && [ "$(hotplug early)" = 0 ] &&
		[ "$(hotplug twice)" = 0 ] && [ "$(hotplug pending)" = 0 ] &&
		[ "$(hotplug cancelled)" = "$(hotplug far)" ]
}

# A CPU that has come back works as before.
back() {
	echo "arm 1 1000 100" > "$TEST/hotplug" && fired && echo cancel > "$TEST/hotplug" &&
		[ "$(hotplug early)" = 0 ] && [ "$(hotplug pending)" = 0 ]
}

# The shrinker asks CPU 1 for pages until it has none, for three seconds at most.
gives_all_back() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo 2 > /proc/sys/vm/drop_caches
		sleep 0.3
		chunks=$(chunks)
		[ "$chunks" != 0 ] || return 0
	done
	wrong "$chunks chunks are left"
}

# The column of chunks of CPU 1.
chunks() {
	awk 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "chunks") column = i }
	     NR > 1 && $1 == 1 { print $column }' "$DEBUGFS/twheel/cpus"
}

# A CPU gives back all pages, is given some that it then does not use, and gives them back, too.
never_used() {
	echo "arm 1 1000 100" > "$TEST/hotplug" && fired && echo cancel > "$TEST/hotplug" &&
		gives_all_back && echo "rearm-shut 1" > "$TEST/hotplug" || return
	chunks=$(chunks)
	echo "# $chunks chunks"
	[ "$chunks" -gt 0 ] && gives_all_back
}

# A suspend from which the CPU does not come back.
suspend_without_cpu() {
	echo processors > $PM_TEST && echo 1 > /sys/module/suspend/parameters/pm_test_delay &&
		echo refuse > "$TEST/hotplug" || return
	if ! echo mem > /sys/power/state; then
		echo allow > "$TEST/hotplug"
		return 1
	fi
	echo allow > "$TEST/hotplug"
}

# In that case its timers are on the wheel of another CPU.
stays_away() {
	echo "arm 1 3000 4000" > "$TEST/hotplug" && suspend_without_cpu || return
	grep -qx 0 /sys/devices/system/cpu/online || wrong "the CPU came back" || return
	awk '$1 == 1 { print "# left there: " $2; exit $2 != 0 }' "$DEBUGFS/twheel/cpus" &&
		[ "$(hotplug pending)" != 0 ] && fired
	status=$?
	echo bring > "$TEST/hotplug" || return
	echo cancel > "$TEST/hotplug"
	echo "# $(cat "$TEST/hotplug")"
	[ $status = 0 ] && [ "$(hotplug early)" = 0 ] && [ "$(hotplug twice)" = 0 ] &&
		[ "$(hotplug pending)" = 0 ] && [ "$(hotplug cancelled)" = "$(hotplug far)" ]
}

# The example for module authors: it ends if it hears nothing in time, and can go at any time.
example() {
	heard=/sys/module/twheel_example/parameters/heard
	modprobe twheel_example timeout_ms=400 || return
	for _ in 1 2 3 4 5; do
		echo 1 > $heard
		sleep 0.2
		[ "$(cat $heard)" = alive ] || wrong "over too early" || return
	done
	sleep 0.4
	[ "$(cat $heard)" = over ] || wrong "not over" || return
	echo 1 > $heard
	[ "$(cat $heard)" = alive ] && rmmod twheel_example && [ "$(total pending)" = 0 ]
}

unload_test() {
	rmmod twheel_test || return
	[ ! -e "$TEST" ] || return
	[ "$(total pending)" = 0 ] || wrong "timers are left"
}

# Passes the results on, renumbered.
pass_on_results() {
	while read -r line; do
		case $line in
		"# "*) echo "$line" ;;
		ok\ * | not\ ok\ *)
			tap_number=$((tap_number + 1))
			echo "$line" | sed "s/ok [0-9]*/ok $tap_number/"
			;;
		esac
		case $line in
		"not ok "*) tap_failed=$((tap_failed + 1)) ;;
		esac
	done < /tmp/results
}

is_loaded || load "$@"
echo "TAP version 13"
tap "twheel_test.ko is loaded" load_test
if [ "$tap_failed" != 0 ]; then
	echo "Bail out! no results"
	exit 1
fi
cat "$TEST/results" > /tmp/results
echo "1..$((10 + $(grep -c 'ok [0-9]' /tmp/results)))"
pass_on_results
tap "twheel.ko stays while another module uses it" unload_refused
tap "a CPU goes away with timers armed" gone 3000 800
tap "a CPU goes away while they fire" gone 3000 60
tap "a CPU goes away with timers of one moment" gone 3000 1
tap "a CPU that has come back" back
tap "pages that are never used" never_used
if [ -w $PM_TEST ]; then
	tap "a CPU that does not come back after a suspend" stays_away
else
	tap_skip "a CPU that does not come back after a suspend" "no suspend for a test"
fi
tap "twheel_test.ko is unloaded" unload_test
tap "the example of a module" example
tap_end
