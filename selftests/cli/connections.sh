#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Idle connections of the echo server are closed, and no others, however it keeps its
# timeouts. All run at the same time: most of the time is spent waiting.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

EXAMPLES=../../tools/examples
HEARTBEAT=1
TIMEOUT=3
DURATION=6
MANY=500
FEW=100
# Slow kernels have this set. Heartbeats that are late by seconds would prove nothing.
if [ "${TWHEEL_MANY-}" ]; then
	HEARTBEAT=3
	TIMEOUT=15
	DURATION=24
	MANY=100
	FEW=20
fi

# begin TIMEOUTS CONNECTIONS PORT: a server and its load; the load's output and its status
# are left in files. A tenth of the connections falls silent. Timeouts begin when all
# connections have been established, which may take longer.
begin() {
	$EXAMPLES/echo-server --late "$1" $TIMEOUT "$3" > "/tmp/server.$1" 2>&1 &
	servers="$servers $!"
	until grep -q ready "/tmp/server.$1"; do
		kill -0 $! 2> /dev/null || return
		sleep 0.1
	done
	{
		$EXAMPLES/echo-load "$2" $HEARTBEAT $TIMEOUT $(($2 / 10)) $DURATION "$3"
		echo "status $?"
	} > "/tmp/load.$1" 2>&1 &
	loads="$loads $!"
}

value() {
	sed -n "s/^$2 //p" "/tmp/load.$1"
}

# The load ends with an error if a connection was closed early, or an idle one was not. If
# heartbeats were sent in time, the closed ones are those that were silent.
kicked() {
	sed 's/^/# /' "/tmp/server.$1" "/tmp/load.$1"
	[ "$(value "$1" status)" = 0 ] || wrong "failed" || return
	[ "$(value "$1" silent)" = $(($2 / 10)) ] || wrong "not all fell silent" || return
	[ "$(value "$1" heartbeats)" -gt "$2" ] || wrong "no heartbeats" || return
	[ "$(value "$1" latest_heartbeat_ns)" -gt 1000000000 ] ||
		[ "$(value "$1" kicked)" = $(($2 / 10)) ] || wrong "others were kicked"
}

is_loaded || load
servers=
loads=
begin watch "$MANY" 7771
begin touch "$FEW" 7772
begin heap "$FEW" 7773
begin timerfd "$FEW" 7774
begin scan "$FEW" 7775
# shellcheck disable=SC2086 # some processes
wait $loads
# shellcheck disable=SC2086 # likewise
kill $servers
tap_plan 5
tap "the kernel watches the connections" kicked watch "$MANY"
tap "the touch array" kicked touch "$FEW"
tap "a heap" kicked heap "$FEW"
tap "a timerfd for each" kicked timerfd "$FEW"
tap "a scan each second" kicked scan "$FEW"
tap_end
