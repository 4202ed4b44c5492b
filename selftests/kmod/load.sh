#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Loading and unloading: repeatedly, while in use, with valid and invalid parameters.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

# A slow kernel may use fewer.
ROUNDS=${ROUNDS:-50}

begin() {
	mount -t debugfs debugfs "$DEBUGFS" 2> /dev/null
	if is_loaded; then
		unload
	fi
	is_gone
}

# The kilobytes that the kernel could give away, including the free pages that CPUs keep for
# themselves: these vary by megabytes and do not count as available.
available() {
	echo 3 > /proc/sys/vm/drop_caches
	awk '
		$1 == "count:" { sum += $2 * 4 }
		$1 == "MemAvailable:" { sum += $2 }
		END { print sum }' /proc/zoneinfo /proc/meminfo
}

round() {
	load || wrong "round $1: does not load" || return
	is_there || wrong "round $1" || return
	../cli/exercise use "$2" || wrong "round $1: does not work" || return
	[ "$(total contexts)" = 0 ] || wrong "round $1: a context is left" || return
	[ "$(total pending)" = 0 ] || wrong "round $1: timers are left" || return
	unload || wrong "round $1: does not unload" || return
	is_gone || wrong "round $1"
}

# A leak in each round would add up to some 14 MB.
again_and_again() {
	i=0
	before=

	while [ $i -lt "$ROUNDS" ]; do
		# After the first rounds, nothing is new to the kernel any more.
		if [ $i = 10 ]; then
			before=$(available)
		fi
		i=$((i + 1))
		round $i 5000 || return
	done
	if [ "$before" ]; then
		after=$(available)
		echo "# $before kB available after 10 rounds, $after kB after $ROUNDS"
		[ $((before - after)) -lt 1000 ] || wrong "memory is lost" || return
	fi
	if grep -q twheel /proc/slabinfo /proc/vmallocinfo 2> /dev/null; then
		grep twheel /proc/slabinfo /proc/vmallocinfo
		return 1
	fi
}

unload_while_open() {
	load || return
	# With armed and expired timers.
	held ../cli/exercise hold 1000 || wrong "cannot hold" || return
	if try_unload; then
		wrong "unloaded while open"
		return
	fi
	is_there || return
	[ "$(total contexts)" = 1 ] || wrong "contexts: $(total contexts)" || return
	[ "$(total pending)" = 500 ] || wrong "pending: $(total pending)" || return
	../cli/exercise use 100 || return
	if try_unload; then
		wrong "unloaded while open, the second time"
		return
	fi
	release
	[ "$(total contexts)" = 0 ] || wrong "contexts: $(total contexts)" || return
	[ "$(total pending)" = 0 ] || wrong "pending: $(total pending)" || return
	unload || wrong "does not unload" || return
	is_gone
}

# Rules stay when the device is closed, and pin the module; their connections stay when they go.
unload_with_rules() {
	load || return
	held ../cli/exercise rule 300 || wrong "cannot hold" || return
	[ "$(total pending)" = 300 ] || wrong "pending: $(total pending)" || return
	if try_unload; then
		wrong "unloaded with a rule"
		return
	fi
	is_there || return
	[ "$(total pending)" = 300 ] || wrong "pending: $(total pending)" || return
	twctl idle remove all || return
	[ "$(total pending)" = 0 ] || wrong "pending: $(total pending)" || return
	unload || wrong "does not unload" || return
	is_gone || return
	kill -0 "$HOLDER" || return
	release
}

# An open file in debugfs does not pin the module except while it is read.
unload_with_debugfs_open() {
	load || return
	exec 4< "$DEBUGFS/twheel/totals"
	unload
	cat <&4 > /dev/null 2>&1
	exec 4<&-
	if is_loaded; then
		unload || return
	fi
	is_gone
}

refused() {
	if load "$@"; then
		unload
		wrong "accepted: $*"
		return
	fi
	is_gone
}

bad_parameters() {
	for parameter in tick_ns=0 tick_ns=1 tick_ns=16383 tick_ns=1073741825 \
		tick_ns=18446744073709551615 tick_ns=18446744073709551616 tick_ns=-1 \
		tick_ns=abc tick_ns= budget=0 budget=-1 budget=4294967296 budget=x \
		max_timers=-1 max_timers=4294967296 max_timers=x; do
		refused $parameter || return
	done
	# A valid parameter does not make up for an invalid one.
	refused tick_ns=1048576 budget=0 || return
	load || wrong "does not load afterwards" || return
	../cli/exercise use 100 || return
	unload
}

# tick GIVEN EXPECTED
tick() {
	load tick_ns="$1" || wrong "tick_ns=$1 refused" || return
	[ "$(parameter tick_ns)" = "$2" ] ||
		wrong "tick_ns=$1 became $(parameter tick_ns)" || return
	[ "$(total tick_ns)" = "$2" ] || wrong "debugfs says $(total tick_ns)" || return
	[ "$(../cli/exercise info | cut -d ' ' -f 1)" = "$2" ] ||
		wrong "the device says $(../cli/exercise info)" || return
	unload
}

lengths_of_a_tick() {
	tick 16384 16384 && tick 16385 16384 && tick 1000000 524288 &&
		tick 1048575 524288 && tick 1048576 1048576 && tick 4000000 2097152 &&
		tick 1073741824 1073741824
}

defaults() {
	load || return
	[ "$(../cli/exercise info)" = "1048576 1048576" ] ||
		wrong "the device says $(../cli/exercise info)" || return
	unload
}

limit_of_timers() {
	load max_timers=1000 || return
	[ "$(../cli/exercise info | cut -d ' ' -f 2)" = 1000 ] || return
	[ "$(../cli/exercise fill)" = 1000 ] || wrong "takes $(../cli/exercise fill)" || return
	[ "$(total pending)" = 0 ] || return
	unload
}

# Runs tests with other parameters; their output is shown only if they fail.
with() {
	program=${1%%.*}
	test=$1

	shift
	load "$@" || return
	if ! "../device/$program" -r "$test" > /tmp/with 2>&1; then
		sed 's/^/# /' /tmp/with
		unload
		return 1
	fi
	grep '^# [0-9]* timers, ' /tmp/with
	unload
}

# In periodic mode, the wheel's hrtimer fires although there is nothing to do.
ticks_without_a_timer() {
	load periodic=1 || return
	../device/early -r early.absolute.cascade_boundaries > /dev/null || return
	[ "$(total pending)" = 0 ] || return
	before=$(total ticks)
	sleep 1
	[ $(($(total ticks) - before)) -gt 100 ] ||
		wrong "$(($(total ticks) - before)) ticks in a second" || return
	unload
}

end() {
	load && is_there
}

tap_plan 14
tap "nothing is left of a module that was loaded before" begin
tap "loaded, used and unloaded $ROUNDS times" again_and_again
tap "not unloaded while it is open" unload_while_open
tap "unloaded with rules" unload_with_rules
tap "unloaded while debugfs is open" unload_with_debugfs_open
tap "bad parameters are refused" bad_parameters
tap "tick_ns is rounded down to a power of two" lengths_of_a_tick
tap "what the parameters are by default" defaults
tap "max_timers limits an open" limit_of_timers
tap "boundaries of the wheel with short ticks" with early.absolute.cascade_boundaries tick_ns=16384
tap "random distances with long ticks" with early.relative.random_distances tick_ns=134217728
tap "a burst in portions of one" with debugfs.a_burst_is_portioned budget=1
tap "ticks without a timer in periodic mode" ticks_without_a_timer
tap "loaded for what comes next" end
tap_end
