#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl, as it is used: what it prints agrees with the kernel, JSON is valid, and an error is
# one line that says what to do.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh

OUT=/tmp/twctl.out
ERR=/tmp/twctl.err
nr_asides=0
asides=

# now: sets $now to CLOCK_MONOTONIC in nanoseconds.
now() {
	while read -r now at nsecs _; do
		if [ "$now $at" = "now at" ]; then
			now=$nsecs
			return
		fi
	done < /proc/timer_list
	wrong "no time in /proc/timer_list"
}

# boottime: sets $boottime to CLOCK_BOOTTIME in seconds, which is ahead once the system has slept.
boottime() {
	read -r boottime _ < /proc/uptime
	boottime=${boottime%.*}
}

# hold N: another process has N timers, half of them expired.
hold() {
	held ./exercise hold "$1"
}

own_files() {
	OUT=$OUT.$nr_asides
	ERR=$ERR.$nr_asides
	"$@"
}

# aside COMMAND...: runs it in parallel with others, with files of its own.
aside() {
	nr_asides=$((nr_asides + 1))
	own_files "$@" &
	asides="$asides $!"
}

# Have all of them passed?
asides_pass() {
	result=0
	for aside in $asides; do
		wait "$aside" || result=1
	done
	asides=
	return $result
}

# The totals that twctl shows must be those in their file.
compare_totals() {
	set --
	while IFS=': ' read -r key value; do
		set -- "$@" "$key" "$value"
	done < "$DEBUGFS/twheel/totals"
	has "$@"
}

status_agrees() {
	read -r version < /sys/module/twheel/version
	set -- "^module +twheel $version$" "^features .* periodic" \
		"^pending +$(total pending)$"
	for file in /sys/module/twheel/parameters/*; do
		read -r value < "$file"
		set -- "$@" "^parameter +${file##*/}=$value$"
	done
	good twctl status && says "$@" || return
	json twctl status || return
	has version "\"$version\"" budget "$(parameter budget)" problem null || return
	compare_totals
}

# twctl itself must not show up, although it opens the device.
status_with_contexts() {
	hold 100 || return
	json twctl status && has contexts 1 pending 50 && compare_totals
	result=$?
	release
	return $result
}

info_agrees() {
	good twctl info || return
	says "^max_timers +$(parameter max_timers)$" "^features +[a-z]+( [a-z-]+)*$" || return
	json twctl info || return
	has tick_ns "$(parameter tick_ns)" max_timers "$(parameter max_timers)"
}

watch_shows_rates() {
	twctl add 10ms --period 10ms > /dev/null &
	periodic=$!
	json twctl watch --count 4 300ms
	result=$?
	kill $periodic
	[ $result = 0 ] || return
	lines 4 || return
	# The rate is the change of the total, divided by the time between.
	sed 's/.*"time": \([0-9.]*\).*"expiries": \([0-9]*\).*"expiries": \([0-9.]*\).*/\1 \2 \3/
		1s/.*"time": \([0-9.]*\).*"expiries": \([0-9]*\).*/\1 \2 0/' $OUT | awk '
		NR > 1 {
			rate = ($2 - expiries) / ($1 - time)
			if (rate <= 0 || $3 < rate * 0.95 || $3 > rate * 1.05)
				print "# " rate " a second, not " $3
			else
				good++
		}
		{ time = $1; expiries = $2 }
		END { exit good != 3 }'
}

# Waits for the first line.
has_begun() {
	for _ in $(seq 100); do
		[ ! -s $OUT ] || return 0
		sleep 0.1
	done
	wrong "nothing is printed"
}

# It does not make up for what it missed while stopped: after one look it continues as before.
watch_goes_on() {
	: > $OUT
	twctl watch --json --count 10 200ms > $OUT &
	watching=$!
	has_begun || return
	kill -STOP $watching
	sleep 2
	kill -CONT $watching
	wait $watching || wrong "status $?" || return
	lines 10 || return
	sed 's/^{"time": \([0-9.]*\).*/\1/' $OUT | awk '
		NR > 1 {
			short += $1 - last < 0.15
			long += $1 - last > 1.5
		}
		{ last = $1 }
		END { exit short > 1 || long != 1 }' || wrong "$(grep -o '"time": [0-9.]*' $OUT)"
}

# The longest possible interval does not end before it has begun.
watch_waits() {
	: > $OUT
	twctl watch --json --count 2 9223372036 > $OUT &
	watching=$!
	has_begun && sleep 1 || return
	kill $watching 2> /dev/null
	wait $watching
	same "end" $? 143 && lines 1
}

# Only counters have a rate: the same in the text and in JSON.
rates_of_counts() {
	json twctl watch --count 2 100ms || return
	same "rates" "$(sed -n '2s/.*"per_second": {\(.*\)}}$/\1/p' $OUT |
		sed 's/": [0-9.]*,* */ /g; s/"//g')" \
		"adds cancels remote_cancels rearms expiries cascades ticks empty_ticks spilled "
}

# The numbers end in the same column, however long the names are, and so do the rates.
in_columns() {
	awk '/^[a-z_]+ +[0-9]+( |$)/ { match($0, /^[a-z_]+ +[0-9]+/); ends[RLENGTH] }
		/\/s$/ { rates[length($0)] }
		END {
			for (i in ends)
				n++
			for (i in rates)
				m++
			exit n != 1 || m != 1
		}' $OUT || wrong "not in columns: $(cat $OUT)"
}

watch_is_plain() {
	good twctl watch --count 2 100ms || return
	same "lines with a time" "$(grep -c '^time ' $OUT)" 2 || return
	says '^adds +[0-9]+$' '^adds +[0-9]+ +[0-9.]+/s$' '^remote_cancels +[0-9]+ +[0-9.]+/s$' \
		'^pending +[0-9]+$' || return
	if grep -Eq '^(pending|chunks|tick_ns) .*/s$' $OUT; then
		wrong "a rate of what is no count: $(cat $OUT)" || return
	fi
	in_columns || return
	if grep -q "$(printf '\033')" $OUT; then
		wrong "an escape sequence in a file"
	fi
}

# The bound below which the given number of 1000 timers are, from the file itself.
percentile() {
	awk -F ': ' -v permille="$1" '
		{ bound[NR] = $1; n[NR] = $2; all += $2 }
		END {
			for (i = 1; i <= NR; i++) {
				sum += n[i]
				if (sum * 1000 >= all * permille)
					break
			}
			print bound[i]
		}' "$DEBUGFS/twheel/lateness"
}

histogram_agrees() {
	./exercise use 4000 || return
	json twctl histogram || return
	same timers "$(sed 's/.*{"timers": \([0-9]*\), "buckets.*/\1/' $OUT)" \
		"$(total expiries)" || return
	has 50 "$(percentile 500)" 99.9 "$(percentile 999)" 100 "$(percentile 1000)" || return
	good twctl histogram || return
	says '^ 50.0 % less than [0-9.]+ [mu]?s$' '#{40}$' || return
	same "timers in bars" "$(awk '/^ .*[0-9] +[0-9.]+ *#*$/ && NR > 1 { n += $3 }
		END { print n }' $OUT)" "$(total expiries)"
}

# A module that has just been loaded has none.
empty_histogram() {
	unload && load || return
	json twctl histogram || return
	has timers 0 || return
	good twctl histogram && says '^no timer has expired yet$'
}

list_finds() {
	json twctl list || return
	prints "[]" || return
	hold 10 || return
	list_holder
	result=$?
	release
	return $result
}

list_holder() {
	good twctl list || return
	lines 2 || return
	says "^ *$HOLDER +exercise +3 +10 +$(parameter max_timers) +5 +[1-9][0-9]* +0 +0$" || return
	json twctl list "$HOLDER" || return
	has pid "$HOLDER" nr_timers 10 nr_events 5 || return
	# Not those of another process.
	json twctl list $$ && prints "[]"
}

list_shows_timers() {
	hold 3000 || return
	list_timers
	result=$?
	release
	return $result
}

list_timers() {
	good twctl list --timers "$HOLDER" || return
	same "timers" "$(grep -Ec ' (pending|expired) ' $OUT)" 1024 || return
	says '^ +[0-9a-f]{16} pending +(60|59\.[0-9]+) m monotonic +- - +0x1$' \
		'^ +[0-9a-f]{16} expired +0 ns monotonic +- - +0x0$' '^ +and 1976 more$' || return
	json twctl list --timers && has timers_not_shown 1976 || return
	awk -v RS='{' '
		/"state": "pending"/ { pending++ }
		match($0, /"handle": "0x[0-9a-f]*"/) { handle[substr($0, RSTART, RLENGTH)] }
		END {
			for (one in handle)
				handles++
			exit pending != 512 || handles != 1024
		}' $OUT || wrong "not 512 pending, or not 1024 handles: $(cat $OUT)"
}

# In a mount namespace of their own, anybody can give a file this name, and have it open here.
list_skips_others() {
	held unshare -m sh -c 'mount -t tmpfs tmpfs /dev && echo > /dev/twheel &&
		echo holding && exec sleep 1000 3< /dev/twheel' || wrong "no such file" || return
	other=$HOLDER
	json twctl list && prints "[]" && json twctl list "$other" && prints "[]" && hold 10 &&
		list_holder
	result=$?
	[ "$HOLDER" = "$other" ] || release
	HOLDER=$other
	release
	return $result
}

# The owners of processes choose their names.
list_quotes() {
	program="/tmp/a\"b\\c$(printf '\n\t\303\303\274')"
	cp "$(command -v twctl)" "$program" || return
	"$program" add 1h --period 90m &
	HOLDER=$!
	sleep 0.5
	json twctl list --timers && has period_ns 5400000000000 \
		command "\"a\\\"b\\\\c\\u000a\\u0009\\ufffd$(printf '\303\274')\"" &&
		good twctl list && says "^ *$HOLDER +a\"b[\\\\]c[?]{5} "
	result=$?
	release
	rm "$program"
	return $result
}

# sleeps NS ARGUMENT...: it takes no less than NS.
sleeps() {
	least=$1
	shift
	now && begin=$now
	good twctl sleep "$@" && now || return
	took=$((now - begin))
	[ $took -ge "$least" ] || wrong "sleep $*: $took ns"
}

sleep_is_never_early() {
	aside sleeps 0 0
	aside sleeps 300000000 300ms
	aside sleeps 1200000000 1.2s
	aside sleeps 300000000 .3
	aside sleeps 1000000000 1
	aside sleeps 300000 300us
	aside sleeps 60000000 0.001m
	aside sleeps 300000000 300ms --clock boottime
	aside sleeps 300000000 --clock realtime 300ms
	asides_pass
}

until_monotonic() {
	now && seconds=$((now / 1000000000 + 2))
	good twctl sleep --until "@$seconds" --clock monotonic && now || return
	[ "$now" -ge "${seconds}000000000" ] || wrong "monotonic: early"
}

until_boottime() {
	boottime && seconds=$((boottime + 2))
	good twctl sleep --until "@$seconds" --clock boottime && boottime || return
	[ "$boottime" -ge "$seconds" ] || wrong "boottime: early"
}

# until_date TIME SECONDS: both are the same time.
until_date() {
	good twctl sleep --until "$1" || return
	# time() may be behind by a tick of the kernel's.
	sleep 0.02
	[ "$(date +%s)" -ge "$2" ] || wrong "until $1: early"
}

sleep_until() {
	aside until_monotonic
	aside until_boottime
	# Some seconds from now, because otherwise it would be tomorrow.
	seconds=$(($(date +%s) + 8))
	date -d @$seconds '+@%s%n%Y-%m-%d %H:%M:%S%n%H:%M:%S' > /tmp/times || return
	while read -r time; do
		aside until_date "$time" $seconds
	done < /tmp/times
	asides_pass || return
	# There is a limit to the past.
	good twctl sleep --until '2026-01-01 00:00'
}

add_prints() {
	now && begin=$now
	good twctl add 300ms && now || return
	says '^event 0: deadline [0-9]+ ns, [0-9.]+ [num]?s late, 0 overruns$' || return
	one_line $OUT && deadline=${LINE#*deadline } && deadline=${deadline%% *}
	[ "$deadline" -ge $((begin + 300000000)) ] || wrong "deadline $deadline" || return
	[ "$now" -ge "$deadline" ] || wrong "early"
}

# Periods are counted from the deadline, not from the event.
add_periodic() {
	good twctl add 100ms --period 50ms --count 4 --slack 0 --spread 0 || return
	lines 4 || return
	sed 's/^event \(.*\): deadline \([0-9]*\) ns.*, \([0-9]*\) overruns/\1 \2 \3/' $OUT |
		awk '{
			if ($1 != NR - 1)
				print "# event " $1
			else if (NR > 1 && $2 - last != 50000000 * (1 + overruns))
				print "# " $2 - last " ns after " overruns " overruns"
			else
				good++
			last = $2
			overruns = $3
		}
		END { exit good != 4 }'
}

# A process that does not read for half a second has missed periods.
add_counts_overruns() {
	# The previous test has left something there.
	: > $OUT
	twctl add 20ms --period 20ms > $OUT &
	periodic=$!
	while ! grep -q event $OUT; do
		sleep 0.1
	done
	kill -STOP $periodic
	sleep 0.5
	kill -CONT $periodic
	sleep 0.3
	kill $periodic
	wait $periodic 2> /dev/null
	awk '$(NF - 1) > 5 { found = 1 } END { exit !found }' $OUT ||
		wrong "no overruns: $(cat $OUT)"
}

add_runs() {
	# shellcheck disable=SC2016 # for the shell that is run
	good twctl add 10ms --period 10ms --count 3 -- sh -c 'echo "$1"' sh "a  b" || return
	same output "$(cat $OUT)" "$(printf 'a  b\na  b\na  b')" || return
	complaint 1 "'false' ended with status 1" twctl add 0 -- false || return
	# shellcheck disable=SC2016
	complaint 1 "'sh' was killed by signal 9" twctl add 0 -- sh -c 'kill -9 $$' || return
	complaint 1 "cannot run './nowhere': No such file" twctl add 0 -- ./nowhere || return
	# A command that fails does not end the others, but is not forgotten.
	rm -f /tmp/ran
	# shellcheck disable=SC2016
	complaint 1 "'sh' ended with status 3" twctl add 0 -p 10ms -n 3 -- \
		sh -c 'echo >> /tmp/ran; [ "$(wc -l < /tmp/ran)" != 1 ] || exit 3' || return
	same runs "$(wc -l < /tmp/ran)" 3
}

bad_command_lines() {
	complaint 2 "no command; see 'twctl --help'" twctl || return
	complaint 2 "no command 'foo'" twctl foo || return
	complaint 2 "no option '--foo'" twctl --foo || return
	complaint 2 "no command 'a\\?b'" twctl "$(printf 'a\nb')" || return
	for command in status watch list histogram info sleep add; do
		good twctl $command --help || return
		says "^usage: twctl $command " || return
		complaint 2 "$command: there is no option '--foo'; see 'twctl $command --help'" \
			twctl $command --foo || return
		complaint 2 "no option '-x'" twctl $command -x || return
	done
	for command in status histogram info "watch 1" "list 1" "sleep 1"; do
		# shellcheck disable=SC2086 # with its operand
		complaint 2 "'7' is too much" twctl $command 7 || return
	done
	complaint 2 "--json takes no value" twctl status --json=1 || return
	complaint 2 "--count needs a value: N" twctl watch --count || return
	complaint 2 "SECONDS is 0" twctl watch 0 || return
	for number in 0 -1 x 1x 4294967296 18446744073709551616 ""; do
		complaint 2 "--count '$number' is not a number" twctl watch -n "$number" || return
	done
	complaint 2 "PID 'x' is not a number" twctl list x || return
	for time in x 1x "" . s 1.5.5 1e3 "1 s" 9223372037 9223372036854775808ns \
		0.00000000000000000000000001; do
		complaint 2 "DURATION '$time' is not" twctl sleep "$time" || return
	done
	complaint 2 "give a DURATION or --until, one" twctl sleep || return
	complaint 2 "give a DURATION or --until, one" twctl sleep -- || return
	complaint 2 "give a DURATION or --until, one" twctl sleep 1 --until @1 || return
	complaint 2 "no clock 'tai', but monotonic, " twctl sleep 1 --clock tai || return
	for time in x 12 25:00 12:60 2026-02 "2026-13-01 00:00" "2026-02-31 00:00" \
		"2027-02-29 00:00" "2026-04-31 12:00:00" "9999-01-01 00:00" @ @x; do
		complaint 2 "--until '$time' is not" twctl sleep --until "$time" || return
	done
	complaint 2 "one of --clock realtime" twctl sleep -u 12:00 -c boottime || return
	complaint 2 "put '--' before the command 'true'" twctl add 1 true || return
	complaint 2 "--count needs a --period" twctl add 1 --count 2 || return
	complaint 2 "--period is 0" twctl add 1 --period 0 || return
	complaint 2 "--slack 'x' is not" twctl add 1 --slack x
}

# full COMMAND...: it reports that its output could not be written, and fails.
full() {
	"$@" > /dev/full 2> $ERR
	same "status of $*" $? 1 || return
	one_line $ERR && case $LINE in
	"twctl: standard output: "*) ;;
	*) wrong "$*: $LINE" ;;
	esac
}

no_room() {
	full twctl status || return
	same message "$LINE" "twctl: standard output: No space left on device" || return
	full twctl histogram --json && full twctl watch 100ms &&
		full timeout 5 twctl add --period 50ms 50ms || return
	# More than a buffer.
	hold 1000 || return
	full twctl list --timers
	result=$?
	release
	return $result
}

# as_user PATTERN COMMAND: what happens to a user other than root
as_user() {
	complaint 1 "$1" su user -c "$2"
}

not_permitted() {
	as_user "/dev/twheel: Permission denied; run this as root" "twctl sleep 0" || return
	as_user "/dev/twheel: Permission denied; run this as root" "twctl info" || return
	as_user "/sys/kernel/debug is for root only" "twctl histogram" || return
	as_user "/sys/kernel/debug is for root only" "twctl watch" || return
	as_user "run this as root: process 1: Permission denied" "twctl list 1" || return
	complaint 1 "no process 4194304; 'twctl list' shows" twctl list 4194304 || return
	# The status is that there are problems.
	good su user -c "twctl status" || return
	says "^device +/dev/twheel: Permission denied; run" \
		"^totals +/sys/kernel/debug is for root" || return
	# shellcheck disable=SC2016 # for the shell that is run
	json sh -c 'su user -c "twctl status $1"' sh || return
	has problem '"/sys/kernel/debug is for root only; run this as root"' || return
	su user -c "twctl list" > $OUT 2> $ERR || return
	grep -q '^twctl: [0-9]* processes may not be looked at; run' $ERR
}

# The permission model of Documentation/permissions.rst.
given_to_a_group() {
	chgrp user /dev/twheel && chmod 660 /dev/twheel || return
	good su user -c "twctl sleep 10ms"
	result=$?
	chgrp 0 /dev/twheel && chmod 600 /dev/twheel && return $result
}

# without PREPARATION PATTERN COMMAND: in a mount namespace of its own
without() {
	complaint 1 "$2" unshare -m sh -c "$1 && $3"
}

not_there() {
	without "umount -l $DEBUGFS" "debugfs is not mounted; as root, run: mount" \
		"twctl histogram" || return
	without "umount -l $DEBUGFS" "debugfs is not mounted; as root, run: mount" \
		"twctl watch" || return
	good unshare -m sh -c "umount -l $DEBUGFS && twctl status" || return
	says "^totals +debugfs is not mounted" || return
	without "mount -t tmpfs tmpfs /dev" "no /dev/twheel, though the module is loaded" \
		"twctl sleep 0" || return
	without "mount -t tmpfs tmpfs /dev && echo > /dev/twheel" \
		"/dev/twheel is not the module's device; remove it, and" "twctl sleep 0" || return
	without "mount -t tmpfs tmpfs /dev && mknod /dev/twheel c 1 3" \
		"/dev/twheel is not the module's device; remove it, and" "twctl idle list"
}

not_loaded() {
	unload || return
	for command in status watch list histogram info "sleep 1" "add 1"; do
		# shellcheck disable=SC2086 # with its operand
		complaint 1 "twheel.ko is not loaded; as root, run: modprobe twheel$" \
			twctl $command || return
	done
	load
}

too_many_timers() {
	unload && load max_timers=0 || return
	complaint 1 "too many timers; raise max_timers or" twctl sleep 1
	result=$?
	unload && load && return $result
}

is_loaded || load
tap_plan 27
tap "status says what sysfs and debugfs say" status_agrees
tap "status counts neither itself nor less than all" status_with_contexts
tap "info says what the parameters are" info_agrees
tap "watch shows how numbers change" watch_shows_rates
tap "watch shows rates of what is counted" rates_of_counts
tap "watch is plain in a file" watch_is_plain
tap "watch goes on after it was stopped" watch_goes_on
tap "watch waits for as long as it is told" watch_waits
tap "a histogram of nothing" empty_histogram
tap "histogram says what debugfs says" histogram_agrees
tap "list finds contexts" list_finds
tap "list shows timers, and how many it does not" list_shows_timers
tap "list leaves out other files of that name" list_skips_others
tap "list quotes what it did not choose" list_quotes
tap "sleep is never early" sleep_is_never_early
tap "sleep until a time" sleep_until
tap "add tells of an event" add_prints
tap "add tells of each period" add_periodic
tap "add tells of missed periods" add_counts_overruns
tap "add runs a command" add_runs
tap "bad command lines are refused" bad_command_lines
tap "no room for the output" no_room
tap "not permitted" not_permitted
tap "given to a group" given_to_a_group
tap "device and debugfs not there" not_there
tap "not loaded" not_loaded
tap "too many timers" too_many_timers
tap_end
