#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs kselftests in the guest, in /twheel: all of a directory, or one.  The output is for
# selftests/check/judge.awk, which also documents the lines "#@".
# With MODULE, that is loaded as twheel.ko; MODULE_OPTIONS are its parameters.
# usage: run-in-guest.sh WHICH...	as in selftests/select

# A directory that programs neither fill nor mount anything over.
own=/run/guest

# Longer than any program should take: the judge needs to know which one hung.  LIMIT= means no
# limit: timeout checks the clock every second, which is often in a guest in which weeks
# pass.
LIMIT=${LIMIT-240}

# What the kernel's tick must be: high_resolution, or periodic_tick for a guest booted with
# highres=off nohz=off.
TICK=${TICK-high_resolution}

# What the kernel has complained about since this program began.
faults() {
	dmesg | awk -v mark="twheel-test: $1 begins" \
		'index($0, mark) { found = 1 } found
		 END { if (!found) print "BUG: the kernel log lacks the mark of the test" }' |
		splat-scan
}

# May the failed tests of a program be run again? Only in real time, and for two programs at most: a
# host on which more are needed is not fit for testing.
repeatable() {
	[ ! "$TWHEEL_SIMULATED" ] && [ "$status" = 1 ] && [ -z "$complaints" ] && [ "$repeats" -lt 2 ] &&
		grep -qx "$1" selftests/by-the-clock
}

# The options to run only the failed tests of a program. Scripts have none.
which_failed() {
	case $1 in
	*.sh) ;;
	*) sed -n 's/^not ok [0-9]* \([^ ]*\).*/-r \1/p' "$own/output" ;;
	esac
}

run() {
	name=$1
	shift
	echo "#@ begin $name"
	echo "twheel-test: $name begins" > /dev/kmsg
	begin=$(date +%s)
	# None of its lines must be taken for one of those below. Each line is passed on at once.
	rm -f "$own/pipe"
	mkfifo "$own/pipe"
	awk -v output="$own/output" '{ sub(/^#@/, "# @"); print; fflush(); print > output }' \
		< "$own/pipe" &
	reader=$!
	"$@" < /dev/null 3<&- > "$own/pipe" 2>&1
	status=$?
	wait $reader
	seconds=$(($(date +%s) - begin))
	complaints=$(faults "$name")
	# Whatever the program wrote last, the next output begins a line.
	echo
	[ -z "$complaints" ] || echo "$complaints" | sed "s|^|#@ fault $name |"
	if [ "$name" != "$repeated" ] && repeatable "$name"; then
		echo "#@ again $name $status $seconds"
		repeated=$name
		repeats=$((repeats + 1))
		# shellcheck disable=SC2046 # These are words.
		run "$name" "$@" $(which_failed "$name")
	else
		echo "#@ end $name $status $seconds"
	fi
}

# A single test, which passes if the command succeeds.
single() {
	echo "TAP version 13"
	echo "1..1"
	if "$@"; then
		echo "ok 1 $*"
	else
		echo "not ok 1 $*"
		return 1
	fi
}

loaded() {
	grep -q '^twheel ' /proc/modules
}

# The pids of running programs. Kernel threads have no executable.
processes() {
	for process in /proc/[0-9]*; do
		[ ! -e "$process/exe" ] || echo "${process#/proc/}"
	done
}

# Kills all processes but these, whatever session they are in by now, and what they start meanwhile.
# A process that cannot be killed is a fault of the kernel.
end_all_but() {
	rounds=0
	left=1
	while [ "$left" ]; do
		[ "$left" = 1 ] || sleep 0.01
		rounds=$((rounds + 1))
		if [ "$rounds" = 1000 ]; then
			echo "BUG: process $left cannot be killed" > /dev/kmsg
			return
		fi
		left=
		for process in $(processes); do
			case " $* " in
			*" $process "*) ;;
			*) ! kill -KILL "$process" 2> /dev/null || left=$process ;;
			esac
		done
	done
}

# A program that fails may leave CPUs offline for others. Not all kernels can take any offline.
all_cpus_on() {
	for online in /sys/devices/system/cpu/cpu*/online; do
		[ ! -e "$online" ] || [ "$(cat "$online")" = 1 ] || echo 1 > "$online"
	done
}

# Runs a program, with options, in a session of its own, as it may signal its group, and with mounts
# of its own. Nothing of it is left when it has ended.
in_directory() {
	path=$1
	shift
	before=$(processes | tr '\n' ' ')
	(cd "selftests/${path%/*}" &&
		exec unshare -m setsid ${LIMIT:+timeout -k 5 "$LIMIT"} "./${path##*/}" "$@") &
	wait $!
	ended=$?
	end_all_but "$before"
	all_cpus_on
	find /tmp -mindepth 1 -maxdepth 1 -exec rm -rf {} +
	return $ended
}

# Without high resolution, every lateness would be that of the kernel's tick.  The switch happens
# at a tick, which a guest that boots in no time may not have seen yet.
high_resolution() {
	sleep 0.1
	grep -q 'hres_active *: 1' /proc/timer_list
}

# Missed ticks are lost, for the tests about that.
periodic_tick() {
	sleep 0.1
	grep -q 'event_handler: *tick_handle_periodic' /proc/timer_list &&
		! grep -q 'hres_active *: 1' /proc/timer_list
}

# Memory allocated since the tests began that nothing points to any more. kmemleak reports it
# only when seen in two scans, and not before it is some seconds old. If disabled, it fails.
no_leaks() {
	echo scan > "$KMEMLEAK" || return
	sleep 6
	echo scan > "$KMEMLEAK" || return
	leaks=$(sed 's/^/# /' "$KMEMLEAK")
	[ -z "$leaks" ] || ! echo "$leaks"
}

# Removed cgroups that something still refers to. What was charged to them is freed some time after
# their programs have ended.
dying_groups() {
	sed -n 's/^nr_dying_descendants \([1-9]\)/\1/p' /sys/fs/cgroup/cgroup.stat 2> /dev/null
}

# The module can be unloaded, and drops all its references.
unloaded() {
	# A network namespace goes some time after its programs, together with its rules.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(cat /sys/module/twheel/refcnt)" != 0 ] || break
		sleep 1
	done
	rmmod twheel || return
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(dying_groups)" ] || return 0
		sleep 1
	done
	echo "# $(dying_groups) cgroups are gone, and not free"
	return 1
}

MODULE=${MODULE:-twheel.ko}
repeats=0
repeated=
KMEMLEAK=${KMEMLEAK:-/sys/kernel/debug/kmemleak}
if [ -e "$KMEMLEAK" ]; then
	echo clear > "$KMEMLEAK"
fi
if [ -e /sys/kernel/debug/kcsan ]; then
	# KCSAN only watches one access in that many; races last only a few instructions.
	echo 100 > /sys/module/kcsan/parameters/skip_watch
	echo on > /sys/kernel/debug/kcsan
fi

mkdir -p "$own"
run clock single "$TICK"
# shellcheck disable=SC2086 # words
run load single insmod $MODULE $MODULE_OPTIONS
selftests/select selftests/list "$@" > "$own/list"
while read -r program <&3; do
	# shellcheck disable=SC2086 # words
	loaded || insmod $MODULE $MODULE_OPTIONS
	run "$program" in_directory "$program"
done 3< "$own/list"
loaded || insmod "$MODULE"
run unload single unloaded
if [ -e "$KMEMLEAK" ]; then
	run leaks single no_leaks
fi
echo "twheel-test: end" > /dev/kmsg
