#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The fuzzer of the device, on the modules' test build if there is one, and what it must not
# leave behind: timers, contexts, or a module that cannot be unloaded.
# FUZZ_SECONDS is how long it runs, FUZZ_SEED determines its choices. With FUZZ_PROGRAMS, each solo
# actor runs that many, however long it takes, and there are no other actors. With FUZZ_KEEP, a
# directory, programs that have reached something new are left there.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

if [ "${FUZZ_PROGRAMS-}" ]; then
	LONG="-n $FUZZ_PROGRAMS"
	HOW_LONG="$FUZZ_PROGRAMS programs"
else
	LONG="-t ${FUZZ_SECONDS:-60}"
	HOW_LONG="${FUZZ_SECONDS:-60} s"
fi
INJECT=/twheel/inject/twheel.ko

# Delays come and go: see actor-system.c.
load_fuzzed() {
	unload
	if [ -e $INJECT ]; then
		insmod $INJECT
	else
		load
	fi
}

# Its own TAP would be taken for ours. Each line is passed on at once: should the fuzzer hang, its
# seed and what it has found must be known.
fuzz() {
	mkfifo /tmp/fuzz.pipe
	awk '/^#/ { print; fflush() }' < /tmp/fuzz.pipe &
	reader=$!
	# shellcheck disable=SC2086 # words
	./fuzz-device $LONG ${FUZZ_SEED:+-s "$FUZZ_SEED"} ${FUZZ_KEEP:+-k "$FUZZ_KEEP"} > /tmp/fuzz.pipe
	status=$?
	wait $reader
	rm /tmp/fuzz.pipe
	return $status
}

# What may the remaining timers belong to: a rule, for a connection that some process still has?
tell_what_is_left() {
	echo "# connections:"
	sed 's/^/#/' /proc/net/tcp /proc/net/tcp6
	echo "# processes:"
	ps -o pid,ppid,stat,args | sed 's/^/# /'
	echo "# twheel:"
	grep -rs . "$DEBUGFS" | sed 's/^/# /'
}

# Nothing of the fuzzer is left; the module's own memory may take a moment.
nothing_left() {
	looks=0
	while [ "$(total pending)" != 0 ] || [ "$(total contexts)" != 0 ]; do
		looks=$((looks + 1))
		if [ $looks -ge 100 ]; then
			tell_what_is_left
			wrong "$(total pending) timers, $(total contexts) contexts"
			return
		fi
		sleep 0.1
	done
}

unloads() {
	unload && is_gone
}

tap_plan 4
tap "the module is there" load_fuzzed
tap "nothing was found in $HOW_LONG" fuzz
tap "nothing is left" nothing_left
tap "the module goes" unloads
tap_end
