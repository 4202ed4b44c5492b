#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The examples in tools/examples do what they promise, with the library's static form.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

EXAMPLES=../../tools/examples

# shows PATTERN COMMAND...: it succeeds, and its last line matches.
shows() {
	pattern=$1
	shift
	"$@" > /tmp/example 2>&1
	status=$?
	sed 's/^/# /' /tmp/example
	[ $status = 0 ] || wrong "status $status" || return
	tail -n 1 /tmp/example | grep -Eq "$pattern" || wrong "is not $pattern"
}

# One in ten gets no answer; on a slow machine, answers come too late for more. Each request
# ends once, or the program complains.
eventloop() {
	shows '^10000 requests: [0-9]+ answered, [0-9]+ given up, ' \
		$EXAMPLES/eventloop "$@" 10000 || return
	awk '{ exit !($3 + $5 == 10000 && $3 > 0 && $5 >= 1000) }' /tmp/example ||
		wrong "not all have ended"
}

# The times are long, for machines on which nothing else is slow.
cache() {
	$EXAMPLES/cache 3 > /tmp/example <<-'EOT' || return
		set a 60000 apple
		set b 1000 banana
		set c 1000 cherry
		set d 60000 date
		get a
		get d
		expire c 60000
		wait 1500
		get b
		get c
		set b 1000 blackberry
		set b 60000 blueberry
		wait 1500
		get b
		delete a
		get a
		set d 60000 date
		get d
		count
	EOT
	sed 's/^/# /' /tmp/example
	[ "$(tr '\n' ' ' < /tmp/example)" = \
		"full apple - - cherry blueberry - date 3 " ]
}

cache_says_no() {
	echo nonsense | $EXAMPLES/cache 2>&1 | grep -q '^cache: no such command: nonsense$'
}

# After three and a half periods of work, at least one has been missed.
periodic() {
	shows '^7 runs and [0-9]+ missed in [0-9]+ periods$' \
		$EXAMPLES/periodic 200 7 || return
	awk '/^run / { sum += $3; late[$2 + 0] = $3 }
	     /^7 runs/ { exit !(sum == $4 && $7 == 7 + sum && late[4] && late[7]) }' \
		/tmp/example || wrong "the periods do not add up"
}

# Three in four fall silent, after twice the timeout; in real time, on a slow machine, an active one
# may be mistaken for one of them. Each ends once, whatever its server notices first.
idle() {
	shows '^100 connections: [0-9]+ timed out, [0-9]+ closed by their peers$' \
		$EXAMPLES/idle 100 500 || return
	awk '{ exit !($3 + $6 == 100 && $3 >= 75) }' /tmp/example || wrong "not three in four"
}

is_loaded || load
tap_plan 6
tap "timeouts in a loop with epoll, by read()" eventloop
tap "the same from the ring" eventloop --ring
tap "a cache whose entries expire" cache
tap "its errors" cache_says_no
tap "a job that misses periods" periodic
tap "a server whose idle connections are shut down" idle
tap_end
