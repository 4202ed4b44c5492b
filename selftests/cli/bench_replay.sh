#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# All schemes do the same with traces: those that come with twbench, and what is recorded here.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh
. ../lib/bench.sh

OUT=/tmp/twbench.out
ERR=/tmp/twbench.err

# Operations keep this distance to a deadline, in milliseconds, so that a machine may be late: a
# kernel with KASAN and lockdep is, by 40.
MARGIN=200

# In a tenth of the time.
recorded() {
	good twbench replay nginx.trace redis.trace --speed 10 --margin $MARGIN && all_the_same 2
}

# Several at once.
scaled() {
	good twbench replay redis.trace --speed 4 -n 4 --margin $MARGIN -s wheel,timer_list,scan &&
		says '^redis.trace, n = 4: in ' 'the same in 3 schemes'
}

# Other programs may have left instances of their own.
instance_left() {
	set -- /sys/kernel/tracing/instances/twbench-*
	[ -e "$1" ]
}

# What is recorded here can be replayed here.
recorded_here() {
	good twbench record /tmp/here.trace --seconds 2 && says 'operations on ' || return
	! instance_left || wrong "an instance is left" || return
	good twbench replay /tmp/here.trace --margin $MARGIN -s wheel,timer_list && says 'the same in 2 schemes'
}

# A signal ends a recording, and what there is gets written.
recording_ends() {
	twbench record /tmp/ended.trace > $OUT 2> $ERR &
	sleep 2
	kill -TERM $! && wait $! && says 'operations on ' && [ -s /tmp/ended.trace ]
}

# However early it comes, nothing is left behind. Nothing is recorded, or little.
ended_early() {
	mkdir /tmp/early
	for signal in TERM HUP; do
		twbench record /tmp/early/trace --seconds 60 > $OUT 2> $ERR &
		until set -- /tmp/early/trace.* && [ -e "$1" ]; do :; done
		kill -$signal $!
		wait $!
		rm -f /tmp/early/trace
		[ ! "$(ls /tmp/early)" ] || wrong "$signal: $(ls /tmp/early) is left" || return
		! instance_left || wrong "$signal: an instance is left" || return
	done
}

# A program may have the name of a tracepoint, or of a report of losses.
odd_names() {
	mkfifo /tmp/never
	for name in ': timer_start: ' '\nCPU:9 [LOST 7 '; do
		twbench record /tmp/odd.trace --events hrtimer > $OUT 2> $ERR &
		sleep 1
		# shellcheck disable=SC2059,SC3045 # a format, for its newline; busybox reads with -t
		(printf "$name" > /proc/self/comm
		 for _ in $(seq 200); do read -r -t 0.002 _ <> /tmp/never; done)
		kill $!
		wait $! && says 'operations on ' && [ ! -s $ERR ] || wrong "$(cat $OUT $ERR)" || return
		[ "$(sed -n 's/ operations on .*//p' $OUT)" -ge 200 ] || wrong "$(cat $OUT)" || return
	done
}

# What one leaves that is killed, the next one removes.
recording_killed() {
	twbench record /tmp/killed.trace > $OUT 2> $ERR &
	sleep 1
	kill -KILL $!
	wait $!
	[ ! -e /tmp/killed.trace ] && instance_left || return
	good twbench record /tmp/next.trace --seconds 1 || return
	! instance_left || wrong "an instance is left"
}

ioctl_itself() {
	./bench_traces > $OUT 2>&1
	status=$?
	sed 's/^/# /' $OUT
	return $status
}

is_loaded || load
modprobe twheel_bench || insmod ../../twheel_bench.ko
tap_plan 8
tap "the ioctl" ioctl_itself
tap "recorded traces are the same in all schemes" recorded
tap "and so they are when scaled" scaled
tap "what is recorded here" recorded_here
tap "a signal ends a recording" recording_ends
tap "a signal at its beginning" ended_early
tap "programs with odd names" odd_names
tap "what a killed one leaves is removed" recording_killed
rmmod twheel_bench
tap_end
