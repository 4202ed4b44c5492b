#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl idle: rules are what was asked for, connections are shown as they are, and an error is
# one line that says what to do.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh

OUT=/tmp/twctl.out
# shellcheck disable=SC2034 # for command.sh
ERR=/tmp/twctl.err

PORT=7000
NR=5
MANY=400
CGROUP=/sys/fs/cgroup/idle_rules/inner

# connections VERSION PORT: another process, of the user, has both ends of $NR connections.
connections() {
	held su user -c "exec ./connections $1 $2 $NR" || wrong "no connections"
}

connections_end() {
	release
	twctl idle remove all
}

# nr_open PORT: the number of open ends with this local port.
nr_open() {
	awk -v port="$1" '
		BEGIN { port = sprintf(":%04X$", port) }
		$2 ~ port && $4 == "01" { n++ }
		END { print n + 0 }' /proc/net/tcp
}

# rule OPTION...: adds a rule; its id is $rule.
rule() {
	good twctl idle "$@" && one_line $OUT || return
	rule=${LINE#rule }
	[ "$rule" -gt 0 ] || wrong "no rule: $LINE"
}

no_rules() {
	json twctl idle list && prints "[]" || return
	good twctl idle list && lines 1 || return
	good twctl idle remove all
}

list_says_what_was_asked() {
	json twctl idle --port 7001 --remote-port 7002 --pid $$ --uid user --timeout 90s \
		--lifetime 2h --spread 5s --activity received --action shutdown \
		--rate 50/s --dry-run && one_line $OUT || return
	rule=${LINE#'{"id": '}
	rule=${rule%%,*}
	good twctl idle list || return
	says "^ +$rule - +1.5 m +2 h +5 s received dry-run +50 +0 +0 +0  port=7001 remote-port=7002 pid=$$ uid=1000$" || return
	json twctl idle list || return
	has id "$rule" local_port 7001 remote_port 7002 pid $$ uid 1000 \
		timeout_ns 90000000000 lifetime_ns 7200000000000 spread_ns 5000000000 \
		activity '"received"' action '"shutdown"' dry_run true rate 50 \
		stalled_ns 60000000000 name null place 1 watched 0 closed 0 || return
	good twctl idle remove "$rule" && no_rules
}

defaults() {
	rule --uid 0 --lifetime 1d || return
	good twctl idle list || return
	says "^ +$rule - +- +1 d +- - +abort +1000 +0 +0 +0  uid=0$" || return
	json twctl idle list || return
	has local_port null remote_port null cgroup null timeout_ns 0 \
		activity '"either"' || return
	good twctl idle remove "$rule"
}

# watches NUMBER OPTION...: a rule finds that many of the connections.
watches() {
	number=$1
	shift
	rule --timeout 1h "$@" || return
	good twctl idle list --json && has id "$rule" watched "$number" || wrong "$*" || return
	good twctl idle remove "$rule"
}

# The process has both ends.
each_option_finds() {
	connections 4 $PORT || return
	watches $NR --port $PORT && watches $NR --remote-port $PORT &&
		watches $((2 * NR)) --uid user && watches $((2 * NR)) --uid 1000 &&
		watches $NR --uid user --port $PORT && watches 0 --uid 0 --port $PORT &&
		watches 0 --port $PORT --remote-port $PORT
	result=$?
	connections_end
	return $result
}

# Does a socket know its cgroup? Not without CONFIG_SOCK_CGROUP_DATA.
have_cgroups() {
	mkdir -p $CGROUP
	good twctl idle --cgroup idle_rules --timeout 1h > /dev/null || return
	good twctl idle remove all
}

# A rule shows its cgroup as it was given.
cgroup_is_shown() {
	rule --timeout 1h --cgroup $CGROUP && good twctl idle list || return
	says "^ +$rule .*  cgroup=idle_rules/inner\$" && json twctl idle list || return
	has cgroup '"idle_rules/inner"' && good twctl idle remove "$rule"
}

# The owner of a cgroup chooses its name: the name does not control any terminal, JSON has it
# unchanged, and what is saved can be loaded again.
cgroup_is_quoted() {
	name="$(printf 'a\033[31m \303\274')"
	mkdir "$CGROUP/$name" || return
	rule --timeout 1h --cgroup "idle_rules/inner/$name" && good twctl idle list || return
	grep -qF "cgroup=\$'idle_rules/inner/a\\033[31m \\303\\274'" $OUT || wrong "$(cat $OUT)" || return
	json twctl idle list || return
	has cgroup "\"idle_rules/inner/a\\u001b[31m $(printf '\303\274')\"" || return
	good twctl idle save && cp $OUT /tmp/saved && good twctl idle load /tmp/saved || return
	prints "rules: 1 kept, 0 changed, 0 added, 0 removed" && rmdir "$CGROUP/$name" && good twctl idle remove all
}

# A socket belongs to the cgroup in which it was created.
cgroup_finds() {
	echo 0 > $CGROUP/cgroup.procs
	connections 4 $PORT
	echo 0 > /sys/fs/cgroup/cgroup.procs
	watches $((2 * NR)) --cgroup idle_rules/inner &&
		watches $((2 * NR)) --cgroup /sys/fs/cgroup/idle_rules &&
		watches $NR --cgroup idle_rules --port $PORT &&
		watches 0 --cgroup idle_rules --port 1 && cgroup_is_shown
	result=$?
	connections_end
	return $result
}

# comes_to KEY NUMBER [RULE]: waits until a count of a rule has this value.
comes_to() {
	for _ in $(seq 100); do
		json twctl idle stats "${3:-$rule}" || return
		! has "$1" "$2" > /dev/null || return 0
		sleep 0.05
	done
	wrong "$1 is not $2: $(cat $OUT)"
}

# Connections made after the rule are handed to a worker first.
all_are_watched() {
	comes_to watched $NR
}

# The text and JSON have the same cookies, in the format of ss -e.
same_cookies() {
	good twctl idle show "$rule" || return
	awk 'NR > 1 { print $NF }' $OUT | sort > /tmp/cookies
	json twctl idle show "$rule" || return
	grep -o '"cookie": "[0-9a-f]*"' $OUT | sed 's/.*: "\(.*\)"/\1/' | sort |
		cmp -s - /tmp/cookies || wrong "not $(cat /tmp/cookies): $(cat $OUT)"
}

# shows ADDRESS: are they as reported by the kernel?
shows() {
	good twctl idle show "$rule" || return
	says '^LOCAL +REMOTE +UID +IDLE +REMAINING +UNSENT +UNACKED +COOKIE$' && lines $((NR + 1)) || return
	netstat -nt > /tmp/netstat
	awk -v port=":$PORT\$" -v nr=$NR -v address="$1" '
		BEGIN {
			shown = "^" address port
			sub(/\$$/, " +" address ":[0-9]+ +1000 +(0 n|[0-9.]+ m?)s +[0-9.]+ [mh] +0 +0 +[0-9a-f]+$",
			    shown)
		}
		{
			remote = FILENAME == ARGV[1] ? $5 : $2
			sub(/.*:/, "", remote)
		}
		FILENAME == ARGV[1] && $4 ~ port && $6 == "ESTABLISHED" { open[remote]; found++ }
		FILENAME == ARGV[2] && $0 ~ shown && remote in open { delete open[remote]; same++ }
		END { exit found != nr || same != nr }' /tmp/netstat $OUT ||
		wrong "kernel: $(cat /tmp/netstat); shown: $(cat $OUT)"
}

shows_connections() {
	rule --port $PORT --timeout 1h || return
	connections "$1" $PORT || return
	all_are_watched && shows "$2" && same_cookies && json twctl idle show "$rule" &&
		same shown "$(grep -o '"remaining_ns"' $OUT | wc -l)" $NR && has uid 1000
	result=$?
	connections_end
	return $result
}

# Because of the spread, their order is not that of their age.
in_order() {
	json twctl idle show "$rule" || return
	awk -v RS='{' -v nr=$NR '
		/"idle_ns"/ {
			idle = left = $0
			sub(/.*"idle_ns": /, "", idle)
			sub(/.*"remaining_ns": /, "", left)
			if (left + 0 < last || idle + left < 3600e9)
				bad = 1
			last = left + 0
			shown++
		}
		END { exit bad || shown != nr || idle + left < 3601e9 }' $OUT ||
		wrong "not in order: $(cat $OUT)" || return
	good twctl idle show --count 2 "$rule" && lines 3
}

shows_next_first() {
	rule --port $PORT --timeout 1h --spread 1h || return
	connections 4 $PORT || return
	all_are_watched && in_order
	result=$?
	connections_end
	return $result
}

# closes OPTION...: a rule with these closes their ends, which is counted, and shown as a rate.
closes() {
	counter=$1
	shift
	rule --port $PORT --timeout 500ms "$@" || return
	connections 4 $PORT || return
	json twctl idle watch --count 8 400ms || return
	lines 8 || return
	sed "s/.*\"time\": \([0-9.]*\).*\"id\": $rule,.*\"$counter\": \([0-9]*\),.*per_second.*\"$counter\": \([0-9.]*\).*/\1 \2 \3/
		1s/.*\"time\": \([0-9.]*\).*\"id\": $rule,.*\"$counter\": \([0-9]*\),.*/\1 \2 0/" $OUT |
		awk '
		NR > 1 {
			rate = ($2 - closed) / ($1 - time)
			if ($3 < rate * 0.9 || $3 > rate * 1.1)
				print "# " rate " a second, not " $3
			else
				good++
		}
		{ time = $1; closed = $2 }
		END { exit good != 7 || closed != '$NR' }' || wrong "$(cat $OUT)"
}

watch_counts() {
	closes closed && same open "$(nr_open $PORT)" 0
	result=$?
	connections_end
	return $result
}

dry_run_counts() {
	closes would_close --dry-run && same open "$(nr_open $PORT)" $NR
	result=$?
	connections_end
	return $result
}

watch_is_plain() {
	rule --port $PORT --timeout 1h && good twctl idle watch --count 2 100ms || return
	same "lines with a time" "$(grep -c '^time ' $OUT)" 2 || return
	says "^ +$rule( +0){10} +-  port=$PORT$" "^ +$rule( +0){10} +0.0  port=$PORT$" || return
	if grep -q "$(printf '\033')" $OUT; then
		wrong "an escape sequence in a file"
	fi
	good twctl idle remove all
}

# A rule that was removed leaves its connections alone.
removes() {
	connections 4 $PORT || return
	rule --port $PORT --timeout 1h && first=$rule &&
		never_applies twctl idle --port $PORT --lifetime 1h &&
		same pending "$(total pending)" $NR &&
		good twctl idle remove "$first" && good twctl idle remove all && no_rules &&
		same pending "$(total pending)" 0 && same open "$(nr_open $PORT)" $NR
	result=$?
	connections_end
	[ $result = 0 ] || return
	complaint 1 "there is no rule '$first'; 'twctl idle list' shows" twctl idle remove "$first" ||
		return
	complaint 1 "there is no rule '$first'; 'twctl idle list' shows" twctl idle show "$first"
}

# Two processes remove all rules at the same time, of which one may have to wait, and says so. That
# there are none any more is an error for neither.
remove_twice() {
	good ./exercise rules || return
	twctl idle remove all 2> /tmp/first &
	twctl idle remove all 2> $ERR
	result=$?
	wait $! || wrong "the other: $(cat /tmp/first)" || return
	[ $result = 0 ] || wrong "$(cat $ERR)" || return
	! grep -qv 'waiting for another' /tmp/first $ERR || wrong "$(cat /tmp/first $ERR)" || return
	no_rules
}

# Each network namespace has its own rules.
other_namespace() {
	rule --port $PORT --timeout 1h || return
	json unshare -n twctl idle list && prints "[]" || return
	complaint 1 "there is no rule '$rule'" unshare -n twctl idle show "$rule" || return
	json twctl idle list && has id "$rule" || return
	good twctl idle remove all
}

# never_applies COMMAND...: the rule is added, with a warning that another one matches everything.
never_applies() {
	"$@" > $OUT 2> $ERR || wrong "$*: status $?: $(cat $ERR)" || return
	one_line $ERR || wrong "not one line: $(cat $ERR)" || return
	case $LINE in
	"twctl: rule "*" will never apply: rule "*" comes before it and takes all; "*) ;;
	*) wrong "$*: $LINE" ;;
	esac
}

# with_connections FUNCTION: runs it while there are some.
with_connections() {
	connections 4 $PORT || return
	"$@"
	result=$?
	connections_end
	return $result
}

# Names, and an order: the first rule that matches gets them.
names_and_order() {
	good twctl idle add web --port $PORT --timeout 1h && prints "rule web" || return
	good twctl idle list --json && has name '"web"' place 1 watched $NR || return
	complaint 1 "rule web is the same; change it with 'twctl idle set'" \
		twctl idle --port $PORT --timeout 60m || return
	complaint 1 "another rule has this name" twctl idle add web --port 1 --timeout 1h || return
	never_applies twctl idle add late --port $PORT --remote 127.0.0.0/8 --timeout 2h || return
	good twctl idle add early --before web --port $PORT --remote 127.0.0.0/8 --keep || return
	good twctl idle list || return
	same order "$(awk 'NR > 1 { print $2 }' $OUT | tr '\n' ' ')" "early web late " || return
	json twctl idle stats early && has watched $NR action '"keep"' || return
	json twctl idle stats web && has watched 0 || return
	complaint 1 "there is no rule 'nix' to come before" \
		twctl idle add x --before nix --port 1 --timeout 1h || return
	good twctl idle remove early && json twctl idle stats web && has watched $NR
}

# What is counted as closed is closed a moment later.
none_is_open() {
	for _ in $(seq 100); do
		[ "$(nr_open $PORT)" != 0 ] || return 0
		sleep 0.05
	done
	wrong "some are open"
}

# A rule that is changed keeps its counts.
set_changes() {
	good twctl idle add web --port $PORT --timeout 1h --dry-run || return
	good twctl idle set web --timeout 500ms || return
	comes_to would_close $NR web &&
		has closed 0 matched $NR timeout_ns 500000000 dry_run true || return
	good twctl idle show web && says "counted +0 +0 " || return
	same open "$(nr_open $PORT)" $NR || return
	good twctl idle set web --live --name www || return
	comes_to closed $NR www &&
		has would_close $NR untimed $NR matched $NR dry_run false && none_is_open
}

set_refuses() {
	complaint 1 "there is no rule 'web'" twctl idle set web --timeout 1s || return
	complaint 2 "which rule\? Give its ID or NAME" twctl idle set --timeout 1s || return
	good twctl idle add web --port $PORT --timeout 1h || return
	complaint 2 "what is to be changed" twctl idle set web || return
	complaint 2 "without a timeout and a lifetime" twctl idle set web --timeout none || return
	complaint 2 "exclude each other" twctl idle set web --live --dry-run || return
	good twctl idle set web --timeout none --lifetime 2h --stalled none --rate 5 --name '' &&
		json twctl idle list &&
		has name null timeout_ns 0 lifetime_ns 7200000000000 stalled_ns 1 rate 5 || return
	good twctl idle remove all
}

# Adding a rule reports how many connections are closed at once.
says_what_is_overdue() {
	sleep 1
	good twctl idle add --dry-run --port $PORT --timeout 100ms &&
		says "^$NR of $NR connections have been idle for longer already: only counted" &&
		good twctl idle remove all &&
		good twctl idle add --port $PORT --timeout 100ms --rate 1 &&
		says "already: they are closed now$" "^at 1 a second this takes 5 s$"
}

lists_find() {
	watches $NR --port 1,$PORT,9000-9010 && watches $NR --port 1 --port $PORT &&
		watches $NR --port 6999-7000 && watches 0 --port 1,2 &&
		watches $((2 * NR)) --uid user --remote 127.0.0.0/8 &&
		watches 0 --uid user --not-remote 127.0.0.0/8 &&
		watches $((2 * NR)) --uid user --not-remote 10.0.0.0/8,fe80::/10 &&
		watches $((2 * NR)) --uid user --family inet &&
		watches 0 --uid user --family inet6 && watches $NR --uid user --not-port $PORT
}

# What was given in another order, or twice, is the same.
lists_are_shown() {
	good twctl idle add --port 443,80,8000-8099,80 --not-remote 10.1.2.3/8 --timeout 1h &&
		good twctl idle list &&
		says "  port=80,443,8000-8099 not-remote=10.0.0.0/8$" || return
	complaint 1 "is the same" twctl idle add --port 80 --port 8000-8099,443 \
		--not-remote 10.0.0.0/8 --timeout 1h || return
	json twctl idle list && has not_remote_list '"10.0.0.0/8"' local_port null &&
		says '"port_list": "80,443,8000-8099", ' || return
	good twctl idle remove all
}

# What is shown for a rule asks for the same.
port_beside_list() {
	good ./exercise ports 85 && good twctl idle list && says "  port=85$" || return
	good twctl idle save && says "^--port 85 " && good twctl idle remove all || return
	good ./exercise ports 95 && good twctl idle list && says "  port=95 not-port=95$" || return
	json twctl idle list && has local_port 95 && says '"port_list": "80-90", ' || return
	good twctl idle save && cp $OUT /tmp/saved && says "^--port 95 --not-port 95 " || return
	good twctl idle load /tmp/saved && prints "rules: 0 kept, 0 changed, 1 added, 1 removed" || return
	good twctl idle remove all
}

bad_lists() {
	complaint 2 "--port 'x' is not a number" twctl idle --port 1,x || return
	complaint 2 "--port '' is not a number" twctl idle --port 1, || return
	complaint 2 "--port '9-8' ends before it begins" twctl idle --port 9-8 || return
	complaint 2 "--remote '10' is not an address" twctl idle --remote 10/8 || return
	complaint 2 "has a prefix that is not from 0 to 32" twctl idle --remote 10.0.0.0/33 || return
	complaint 2 "has a prefix that is not from 0 to 128" twctl idle --remote ::/x || return
	complaint 2 "--family 'ipx' is not inet or inet6" twctl idle --family ipx || return
	complaint 2 "more than 64 ports" twctl idle --timeout 1 --port "$(seq -s , 1 65)"
}

bad_names() {
	for name in 1a -a a/b "a b" ""; do
		complaint 2 "'$name' is no name" twctl idle add --port 1 --timeout 1 -- "$name" || return
	done
	complaint 2 "'all' cannot be a name" twctl idle add all --port 1 --timeout 1 || return
	complaint 2 "cannot be a name" twctl idle add abcdefghijklmnopqrstuvwxyzabcdef --port 1
}

bad_exceptions() {
	complaint 2 "with --keep nothing is closed" twctl idle --keep --port 1 --timeout 1
}

INSTANCES=/sys/kernel/tracing/instances

nr_instances() {
	find $INSTANCES -name 'twctl-idle-*' -maxdepth 1 | wc -l
}

# follows PID: waits until a log has begun.
follows() {
	enable=$INSTANCES/twctl-idle-$1/events/twheel/twheel_kick/enable
	for _ in $(seq 300); do
		[ "$(cat "$enable" 2> /dev/null)" != 1 ] || return 0
		sleep 0.1
	done
	wrong "log $1 does not begin"
}

# A line for each, as it happens; and the log leaves nothing behind.
log_tells() {
	twctl idle log --count $NR > /tmp/log 2>&1 &
	log=$!
	twctl idle log --json --count $NR > /tmp/log.json 2>&1 &
	json_log=$!
	follows $log && follows $json_log || return
	good twctl idle add web --port $PORT --timeout 300ms || return
	wait $log && wait $json_log || wrong "the log ended with an error" || return
	cp /tmp/log $OUT
	lines $NR && says "^20.* rule [0-9]+ web: closed 127.0.0.1:$PORT from 127.0.0.1:[0-9]+, idle [0-9.]+ m?s, late .*, unsent 0, unacked 0, reason idle$" || return
	cp /tmp/log.json $OUT
	lines $NR && has name '"web"' reason '"idle"' overdue false action '"abort"' dry_run false unsent 0 unacked 0 || return
	same instances "$(nr_instances)" 0
}

# log_warns TEXT: waits until a log has said this on standard error.
log_warns() {
	for _ in $(seq 300); do
		! grep -q "$1" /tmp/log.errors || return 0
		sleep 0.1
	done
	wrong "it did not say that $1: $(cat /tmp/log.errors)"
}

# With the module its tracepoint goes; when it is back, the log goes on.
log_outlives_the_module() {
	twctl idle log --count 1 > /tmp/log 2> /tmp/log.errors &
	log=$!
	follows $log && unload && log_warns "the module is not loaded any more" && load &&
		log_warns "the module is loaded again" && follows $log || return
	connections 4 $PORT || return
	good twctl idle add web --port $PORT --timeout 300ms || return
	wait $log || wrong "the log ended with an error" || return
	connections_end
	cp /tmp/log $OUT
	lines 1 && says "rule [0-9]+ web: closed 127.0.0.1:$PORT "
}

# A log that was killed leaves its instance to the next.
log_cleans_up() {
	twctl idle log > /dev/null 2>&1 &
	log=$!
	follows $log || return
	kill -9 $log
	wait $log 2> /dev/null
	same instances "$(nr_instances)" 1 || return
	twctl idle log > /dev/null 2>&1 &
	log=$!
	follows $log || return
	same instances "$(nr_instances)" 1 || return
	kill $log
	wait $log || wrong "status $?" || return
	same instances "$(nr_instances)" 0
}

# So does one whose output nobody reads any more.
log_without_reader() {
	rm -f /tmp/fifo
	mkfifo /tmp/fifo
	twctl idle log > /tmp/fifo 2> /tmp/log &
	log=$!
	exec 9< /tmp/fifo
	follows $log
	exec 9<&-
	good twctl idle add web --port $PORT --timeout 300ms || return
	! wait $log || wrong "it went on" || return
	same instances "$(nr_instances)" 0
}

# A signal that was ignored from the start does not end it.
log_under_nohup() {
	(trap '' HUP && exec twctl idle log --count 1 > /tmp/log 2>&1) &
	log=$!
	follows $log || return
	kill -HUP $log
	good twctl idle add web --port $PORT --timeout 300ms || return
	wait $log || wrong "status $?" || return
	cp /tmp/log $OUT
	lines 1 && same instances "$(nr_instances)" 0
}

# A log writes to a full pipe that nobody empties; the pipe is open as descriptor 9.
log_into_full_pipe() {
	rm -f /tmp/fifo
	mkfifo /tmp/fifo
	exec 9<> /tmp/fifo
	head -c 65536 /dev/zero >&9
	twctl idle log > /tmp/fifo 2> /tmp/log &
	log=$!
	follows $log
}

# waits_in_write PID
waits_in_write() {
	for _ in $(seq 300); do
		read -r call _ < /proc/"$1"/syscall
		[ "$call" != 1 ] || return 0
		sleep 0.1
	done
	wrong "$1 does not write"
}

# Ending it does not require that somebody reads the output.
log_with_slow_reader() {
	log_into_full_pipe && good twctl idle add web --port $PORT --timeout 300ms &&
		waits_in_write $log || return
	kill $log
	wait $log || wrong "status $?" || return
	exec 9<&-
	same instances "$(nr_instances)" 0
}

# What the kernel had no room for is counted.
log_says_what_it_lost() {
	log_into_full_pipe || return
	echo 4 > $INSTANCES/twctl-idle-$log/buffer_size_kb
	good twctl idle add web --port $PORT --timeout 300ms --dry-run --rate 1000 &&
		waits_in_write $log || return
	comes_to would_close $MANY web || return
	# It does not end as long as there is a reader, which ends when the log does.
	exec 8< /tmp/fifo 9<&-
	cat <&8 > /tmp/shown &
	shown=$!
	exec 8<&-
	for _ in $(seq 300); do
		lost=$(sed -n 's/^twctl: \([0-9]*\) connections are not shown.*/\1/p' /tmp/log |
			awk '{ n += $1 } END { print n + 0 }')
		[ $(($(grep -c 'would close' /tmp/shown) + lost)) -lt $MANY ] || break
		sleep 0.1
	done
	kill $log
	wait $log || wrong "status $?" || return
	wait $shown
	[ "$lost" -gt 0 ] || wrong "nothing was lost: $(cat /tmp/log)" || return
	same "shown and lost" $(($(grep -c 'would close' /tmp/shown) + lost)) $MANY
}

bad_command_lines() {
	for command in idle "idle add" "idle set" "idle list" "idle show" "idle stats" \
		"idle watch" "idle log" "idle remove"; do
		# shellcheck disable=SC2086 # with its part
		good twctl $command --help && says "^usage: twctl $command " || return
		# shellcheck disable=SC2086
		complaint 2 "$command: there is no option '--foo'; see 'twctl $command --help'" \
			twctl $command --foo || return
	done
	complaint 2 "idle: there is no command 'idle foo'; see 'twctl idle --help'" twctl idle foo ||
		return
	for command in "idle -d foo" "idle add foo foo" "idle log foo" "idle list foo" \
		"idle show 1 foo" "idle remove all foo" \
		"idle watch 1 foo"; do
		# shellcheck disable=SC2086
		complaint 2 "'foo' is too much" twctl $command || return
	done
	complaint 2 "which connections\? --port, " twctl idle || return
	complaint 2 "which connections\? --port, " twctl idle --timeout 1s --dry-run || return
	complaint 2 "give a --timeout, or a --lifetime" twctl idle --port 80 || return
	complaint 2 "--activity needs a --timeout" twctl idle --port 80 --lifetime 1 -a sent ||
		return
	for number in 0 65536 -1 x ""; do
		complaint 2 "--port '$number' is not a number" twctl idle --port "$number" || return
	done
	for name in 0 4294967296 -1 x ""; do
		complaint 1 "there is no rule '$name'" twctl idle remove -- "$name" || return
	done
	complaint 2 "--timeout is 0" twctl idle --timeout 0 || return
	complaint 2 "--lifetime 'x' is not" twctl idle --lifetime x || return
	complaint 2 "--rate '1/m' is not a number" twctl idle --rate 1/m || return
	complaint 2 "--uid 'nobody' is not a number, nor in /etc/passwd" twctl idle --uid nobody ||
		return
	complaint 2 "--uid '4294967295' is not" twctl idle --uid 4294967295 || return
	complaint 2 "--action 'kill' is not abort or shutdown" twctl idle --action kill || return
	complaint 2 "--activity 'acks' is not received, sent or either" twctl idle -a acks || return
	complaint 2 "which rule\? Give its ID or NAME, or 'all'" twctl idle remove || return
	complaint 2 "which rule\? Give its ID or NAME" twctl idle show || return
	bad_lists && bad_names && bad_exceptions
}

bad_targets() {
	complaint 1 "cgroup 'nowhere': No such file or directory; see what there is in" \
		twctl idle --cgroup nowhere || return
	complaint 1 "'../../../tmp' is no cgroup of version 2" twctl idle --cgroup ../../../tmp ||
		return
	complaint 1 "'cgroup.procs' is no cgroup of version 2" twctl idle --cgroup cgroup.procs ||
		return
	complaint 1 "cannot add the rule: there is no such process; see ps" \
		twctl idle --pid 4194303 --timeout 1 || return
	complaint 1 "cannot add the rule: the timeout and its spread are longer than 2?31 jiffies" \
		twctl idle --port 80 --timeout 30000d || return
	complaint 1 "cannot add the rule: the timeout is shorter than 10 ms" \
		twctl idle --port 80 --timeout 9999us --dry-run
}

# Access to the device is not enough.
not_permitted() {
	chmod 666 /dev/twheel
	complaint 1 "this takes CAP_NET_ADMIN in the network namespace; run this as root" \
		su user -c "twctl idle --port $PORT --timeout 1s" &&
		complaint 1 "cannot list the rules: this takes CAP_NET_ADMIN" \
			su user -c "twctl idle list" &&
		complaint 1 "this takes CAP_NET_ADMIN" su user -c "twctl idle show 1" &&
		complaint 1 "this takes CAP_NET_ADMIN" su user -c "twctl idle remove 1"
	result=$?
	chmod 600 /dev/twheel
	return $result
}

too_many() {
	good ./exercise rules && prints 256 || return
	complaint 1 "256 rules, or 1024 ports, prefixes and families; remove some" \
		twctl idle --port $PORT --timeout 1h || return
	good twctl idle list && same lines "$(wc -l < $OUT)" 257 || return
	good twctl idle remove all && no_rules
}

not_loaded() {
	unload || return
	for command in "--port 80 --timeout 1s" list "show 1" watch "remove 1" "remove all"; do
		# shellcheck disable=SC2086 # with its operands
		complaint 1 "twheel.ko is not loaded; as root, run: modprobe twheel$" \
			twctl idle $command || return
	done
	load
}

is_loaded || load
tap_plan 34
tap "no rules" no_rules
tap "list says what was asked for" list_says_what_was_asked
tap "what is not said has a default" defaults
tap "each option finds its connections" each_option_finds
if have_cgroups; then
	tap "a cgroup's, and those below it" cgroup_finds
	tap "a cgroup's name is quoted" cgroup_is_quoted
else
	tap_skip "a cgroup's, and those below it" "sockets know no cgroup"
	tap_skip "a cgroup's name is quoted" "sockets know no cgroup"
fi
tap "show says what the kernel says" shows_connections 4 127.0.0.1
tap "show IPv6" shows_connections 6 '[[]::1]'
tap "show begins with what would be closed next" shows_next_first
tap "watch shows what is closed" watch_counts
tap "and what would be" dry_run_counts
tap "watch is plain in a file" watch_is_plain
tap "remove" removes
tap "names, and an order" with_connections names_and_order
tap "what is changed keeps its counts" with_connections set_changes
tap "what cannot be changed" set_refuses
tap "adding says what has been idle for longer" with_connections says_what_is_overdue
tap "lists find their connections" with_connections lists_find
tap "lists are shown in one form" lists_are_shown
tap "a port beside a list of ports" port_beside_list
tap "log tells of each that is closed" with_connections log_tells
tap "log outlives the module" log_outlives_the_module
tap "log leaves nothing behind" log_cleans_up
tap "log without a reader leaves nothing behind" with_connections log_without_reader
tap "log goes on under nohup" with_connections log_under_nohup
tap "log ends while its output waits" with_connections log_with_slow_reader
NR=$MANY tap "log says what it has lost" with_connections log_says_what_it_lost
tap "remove all, twice at once" remove_twice
tap "each network namespace has its own rules" other_namespace
tap "bad command lines are refused" bad_command_lines
tap "what cannot be had" bad_targets
tap "not permitted" not_permitted
tap "too many rules" too_many
tap "not loaded" not_loaded
tap_end
