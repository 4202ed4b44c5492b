#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# However "twbench connections" ends, it leaves nothing behind: no rule, no server, no load, and
# no network namespace.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh

OUT=/tmp/twctl.out
ERR=/tmp/twctl.err
MAX=/proc/sys/user/max_net_namespaces

# processes NAME...: the pids of the programs with these names.
processes() {
	for process in /proc/[0-9]*; do
		read -r comm < "$process/comm" || continue
		case " $* " in
		*" $comm "*) echo "${process#/proc/}" ;;
		esac
	done 2> /dev/null
}

# within SECONDS WHAT COMMAND...: waits until the command succeeds.
within() {
	tries=$(($1 * 2))
	what=$2
	shift 2
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || wrong "not in time: $what" || return
		sleep 0.5
	done
}

# Are there rules in the bench's namespace?
has_rule() {
	kill -0 "$bench" 2> /dev/null || return 0
	nsenter -t "$bench" -n twctl idle list --json > $OUT 2> /dev/null && ! grep -qx '[[]]' $OUT
}

has_programs() {
	[ "$(processes echo-server echo-load | wc -l)" = 2 ]
}

# Starts the bench, and waits for its rule and its programs.
begin() {
	twbench connections -n 20 --heartbeat 1 --timeout 3 --scheme rule > /tmp/bench 2>&1 &
	bench=$!
	within 60 "a rule" has_rule && kill -0 "$bench" || wrong "no bench: $(cat /tmp/bench)" || return
	within 60 "its programs" has_programs
}

no_programs() {
	[ ! "$(processes twbench echo-server echo-load)" ]
}

# With a maximum of one namespace, one can be created only if there is none. They go with a delay.
no_namespace() {
	echo 1 > $MAX
	unshare -n true 2> /dev/null
	result=$?
	echo "$max" > $MAX
	return $result
}

nothing_is_left() {
	within 60 "the end of $(processes echo-server echo-load)" no_programs || return
	json twctl idle list && prints "[]" || return
	within 60 "the end of the namespace" no_namespace || return
	same pending "$(total pending)" 0
}

# clear: leaves nothing behind for the next test.
clear() {
	for process in $(processes twbench echo-server echo-load); do
		kill -9 "$process" 2> /dev/null
	done
	twctl idle remove all
}

# ends_by SIGNAL
ends_by() {
	begin && kill -"$1" "$bench" && ! wait "$bench" && nothing_is_left
	result=$?
	clear
	return $result
}

# The bench gives up when one of its programs has ended, and ends the other.
ends_with_server() {
	begin && kill -9 "$(processes echo-server)" && ! wait "$bench" && nothing_is_left
	result=$?
	clear
	return $result
}

# Others may use the same port, and no rule affects their connections.
leaves_others_alone() {
	nc -l -p 7777 < /dev/null > /dev/null &
	listener=$!
	begin && json twctl idle list && prints "[]"
	result=$?
	kill "$listener"
	clear
	return $result
}

no_room() {
	twbench --list > /dev/full 2> $ERR
	same status $? 1 && one_line $ERR && case $LINE in
	"twbench: standard output: "*) ;;
	*) wrong "$LINE" ;;
	esac
}

is_loaded || load
modprobe twheel_bench || insmod ../../twheel_bench.ko
read -r max < $MAX
tap_plan 5
tap "nothing is left when it is killed" ends_by KILL
tap "nothing is left when it is terminated" ends_by TERM
tap "nothing is left when its server is killed" ends_with_server
tap "its port and its rule are its own" leaves_others_alone
tap "no room for the output" no_room
rmmod twheel_bench
tap_end
