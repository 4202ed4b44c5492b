#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# All schemes do the same with mixtures, and a replay leaves nothing behind.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh
. ../lib/bench.sh

OUT=/tmp/twbench.out
ERR=/tmp/twbench.err

# These take as long as they are told to.
LASTING='connections rpc cache periodic retry far idle'

mixtures() {
	# shellcheck disable=SC2086 # These are words.
	good twbench mix $LASTING -n 300 --set length=1s --json /tmp/mix.json || return
	# Idle timers do not expire.
	all_the_same 7 && says '^0 expiries' || return
	(set -- /tmp/mix.json && . ../lib/json.sh) > $ERR || wrong "$(cat $ERR) in the JSON"
}

# Everything expires at once: as each timer does in time, so do all.
at_once() {
	good twbench mix storm in_phase -n 300 --set timeout_min=300ms --set timeout_max=300ms \
		--set length=500ms && all_the_same 2 && says '^300 expiries'
}

# The numbers of a mixture can be changed, and each round has a seed of its own.
changed() {
	good twbench mix rpc -n 100 --set silent=100 --set length=3s --set pause_max=30s -r 2 -s wheel,heap &&
		says '^rpc, n = 100: in 3.000 s' 'the same in 2 schemes'
}

# ends_by SIGNAL: with timers armed, and others expiring, after a replay without timers.
ends_by() {
	twbench mix periodic -n 2000 -s wheel --set length=3s > $OUT 2>&1 &
	bench=$!
	tries=60
	while [ "$(total pending)" = 0 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || wrong "no timers: $(cat $OUT)" || return
		sleep 0.2
	done
	kill -"$1" $bench
	! wait $bench && same pending "$(total pending)" 0
}

is_loaded || load
modprobe twheel_bench || insmod ../../twheel_bench.ko
tap_plan 5
tap "mixtures are the same in all schemes" mixtures
tap "and so they are if all is at once" at_once
tap "a mixture with other numbers" changed
tap "nothing is left of a replay that is killed" ends_by KILL
tap "nor of one that is terminated" ends_by TERM
rmmod twheel_bench
tap_end
