#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Rules for connections of Debian's redis-server, which knows nothing about them.

cd "$(dirname "$0")" || exit
. ./servers.sh

rule=
PORT=6379
PING=$(printf 'PING\r\n.')
PING=${PING%.}
PUBLISH=$(printf 'PUBLISH news x\r\n.')
PUBLISH=${PUBLISH%.}
CGROUP=/sys/fs/cgroup/software

# A socket belongs to the cgroup in which it was created.
start() {
	mkdir -p $CGROUP || return
	sh -c "echo \$\$ > $CGROUP/cgroup.procs && exec redis-server --save '' --port $PORT \
		--bind 127.0.0.1 --loglevel verbose" > /tmp/redis &
	server=$!
	listening $PORT
}

# request COMMAND: without redis-cli, which is slow to start.
request() {
	printf '%s\r\nQUIT\r\n' "$1" | nc 127.0.0.1 $PORT | tr -d '\r'
}

# redis's own count, which includes the connection that asks.
connections() {
	request 'INFO clients' | sed -n 's/^connected_clients://p'
}

# Asks for its own id again and again, and always gets the same one.
redis_cli() {
	redis-cli -r 20 -i 0.2 client id > /tmp/client
}

cli_is_the_same() {
	same numbers "$(sort /tmp/client | uniq -c | sed 's/ *\([0-9]*\) [0-9]*/\1/')" 20
}

# By the listening process. The neighbours are connections of another program and of redis itself.
closes_silent() {
	no_rules && rule --pid "$server" || return
	talk $PORT "$PING" &
	talking=$!
	redis_cli &
	client=$!
	before_the_end
	same connections "$(connections)" 3
	result=$?
	wait $talking $client
	[ $result = 0 ] && silent_closed $PORT "$RESET" &&
		busy_open $PORT && cli_is_the_same && counts closed "$rule" "$SILENT"
}

# As in Documentation/connections.rst.
is_logged() {
	same "lines of the log" "$(grep -c 'Reading from client: Connection timed out' /tmp/redis)" \
		"$SILENT"
}

# Subscribes, and gets a message five times a second from another connection, active itself.
subscribe() {
	redis-cli subscribe news > /tmp/subscriber 2>&1 &
	subscriber=$!
	while ! grep -q '^subscribe' /tmp/subscriber; do
		kill -0 "$subscriber" || return
		usleep 50000
	done
	./talk $PORT 0 "$TALK_MS" "$PUBLISH" > /tmp/talk.$PORT &
	publisher=$!
	before_the_end
}

subscribers() {
	request 'PUBSUB NUMSUB news' | sed -n 's/^://p'
}

unsubscribe() {
	wait "$publisher"
	kill "$subscriber" 2> /dev/null
	wait "$subscriber" 2> /dev/null
}

# A subscriber sends nothing, but receives messages.
subscriber_lives() {
	no_rules && rule --cgroup software && subscribe && same subscribers "$(subscribers)" 1
	result=$?
	unsubscribe
	[ $result = 0 ] && busy_open $PORT || return
	[ "$(grep -c '^message$' /tmp/subscriber)" -ge 10 ] ||
		wrong "messages: $(cat /tmp/subscriber)"
}

# Unless the rule requires it to send.
subscriber_is_closed() {
	no_rules && rule --cgroup software --activity received && subscribe &&
		same subscribers "$(subscribers)" 0 && counts closed "$rule" 1
	result=$?
	unsubscribe
	[ $result = 0 ] && busy_open $PORT
}

serves_on() {
	same set "$(redis-cli set key value)" OK && same get "$(redis-cli get key)" value &&
		same pid "$(redis-cli info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')" \
			"$server"
}

is_loaded || load
tap_plan 6
tap "redis serves" start
tap "a rule closes its silent connections, and no other" closes_silent
tap "and redis logs each of them" is_logged
tap "a subscriber is not silent" subscriber_lives
tap "but it is if only what it says counts" subscriber_is_closed
tap "redis serves on" serves_on
kill "$server"
no_rules
tap_end
