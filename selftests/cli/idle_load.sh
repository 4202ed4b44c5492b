#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl idle load and save: the rules in files replace the existing ones, all of them or none, and
# rules that are the same before and after stay.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh
. ../lib/command.sh

OUT=/tmp/twctl.out
# shellcheck disable=SC2034 # for command.sh
ERR=/tmp/twctl.err

PORT=7000
NR=5
CGROUP=/sys/fs/cgroup/idle_load
DISTURBING=/tmp/disturbing
FILE=/tmp/rules.conf
DIRECTORY=/tmp/idle.d

# file LINE...: writes these lines to the file.
file() {
	printf '%s\n' "$@" > $FILE
}

# load_says KEPT ADDED REMOVED [FILE [CHANGED]]
load_says() {
	good twctl idle load "${4-$FILE}" &&
		prints "rules: $1 kept, ${5-0} changed, $2 added, $3 removed"
}

# ids: the ids of the rules, in their order.
ids() {
	twctl idle list | awk 'NR > 1 { printf "%s%s", gap, $1; gap = " " }'
}

# saved: the rules, without comments.
saved() {
	twctl idle save | grep -v '^#'
}

# rules LINE...: exactly these exist, in this order.
rules() {
	[ "$(saved)" = "$(printf '%s\n' "$@")" ] || wrong "the rules are: $(saved)"
}

# counts ID: everything that idle list shows of a rule.
counts() {
	twctl idle list --json | sed "s/.*\({\"id\": $1,[^}]*}\).*/\1/"
}

# rule OPTION...: adds a rule; its id is $rule.
rule() {
	good twctl idle "$@" && one_line $OUT && rule=${LINE#rule }
}

# loaded LINE...: writes these to the file, and loads it. $ids are the ids.
loaded() {
	file "$@" && good twctl idle remove all && good twctl idle load $FILE && ids=$(ids) &&
		rules "$@"
}

# refused PATTERN: the file is refused, and changes nothing.
refused() {
	before=$(twctl idle list --json)
	complaint 1 "$1" twctl idle load $FILE &&
		same rules "$(twctl idle list --json)" "$before"
}

first_load() {
	good twctl idle remove all && file "# none" "" && load_says 0 0 0 || return
	file "--port 80 --timeout 1m" "  # more" "" "-p 81 -l 2h -R 50/s -A shutdown -d # dry" \
		"--remote-port=5432 --uid user --timeout 1.5h --spread 90s --activity sent" &&
		load_says 0 3 0 || return
	rules "--port 80 --timeout 1m" \
		"--port 81 --lifetime 2h --action shutdown --rate 50 --dry-run" \
		"--remote-port 5432 --uid 1000 --timeout 90m --spread 90s --activity sent"
}

error_in_line_7() {
	loaded "--port 80 --timeout 1m" "--port 81 --timeout 1m" || return
	file "# Six lines are right." "--port 80 --timeout 2m" "--port 82 --timeout 1m" "" \
		"--port 81 --timeout 1m" "--port 83 --timeout 1m" "--port 65536 --timeout 1m" \
		"--port 84 --timeout 1m"
	refused "$FILE:7: --port '65536' is not a number from 1 to 65535; see 'twctl idle --help'\$"
}

# Those before it had already been added.
error_of_the_kernel() {
	loaded "--port 80 --timeout 1m" || return
	file "--port 80 --timeout 2m" "--port 81 --timeout 2m" "--port 82 --timeout 1ms"
	refused "$FILE:3: cannot add the rule: the timeout is shorter than 10 ms, or" || return
	file "--port 81 --timeout 2m" "" "--port 82 --timeout 30000d"
	refused "$FILE:3: cannot add the rule: the timeout and its spread are longer"
}

errors() {
	loaded "--port 80 --timeout 1m" || return
	file "--port 80" && refused "$FILE:1: give a --timeout, or" || return
	file "--timeout 1m" && refused "$FILE:1: which connections" || return
	file "" "--port 80 --timeout 1m extra" && refused ":2: 'extra' is too much" || return
	file "--port 80 --timeout" && refused ":1: --timeout needs a value" || return
	file "--port 80 --timeout 1m --json" && refused ":1: --json has no meaning" || return
	file "--help" && refused ":1: --help has no meaning" || return
	file "--pid $$ --timeout 1m" && refused ":1: --pid is not for files" || return
	file "--cgroup nowhere --timeout 1m" && refused ":1: cgroup 'nowhere': No such" || return
	file "--uid nobody --timeout 1m" && refused ":1: --uid 'nobody' is not" || return
	file "--port '80 --timeout 1m" && refused ":1: a quotation mark has no partner" || return
	file "--port 80 --timeout 1m \\" && refused ":1: nothing follows the backslash" || return
	printf -- '--port 80\0 --timeout 1m\n' > $FILE && refused ":1: there is a zero byte" || return
	printf -- '--port 80 --timeout 1m\r--port 81 --timeout 1m\r' > $FILE &&
		refused ":1: there is a carriage return within the line" || return
	rm $FILE && refused "$FILE: No such file or directory; give a file, "
}

# What editors of other systems write.
other_ends() {
	loaded "--port 80 --timeout 1m" || return
	printf -- '\357\273\277--port 81 --timeout 1m\r\n# none\r\n\r\n--port 82 --timeout 1m\r\n' > $FILE
	load_says 0 2 1 && rules "--port 81 --timeout 1m" "--port 82 --timeout 1m"
}

# A name can be anything, and a message is one line that a terminal does not obey.
odd_name() {
	name=$(printf '/tmp/a\033[2J\nb.conf')
	echo --port > "$name"
	complaint 1 "/tmp/a\\?\\[2J\\?b.conf:1: --port needs a value" twctl idle load "$name"
	result=$?
	rm "$name"
	return $result
}

# The first rule has closed connections, and still watches some.
unchanged_rules_keep_counts() {
	loaded "--port $PORT --timeout 500ms" "--port $((PORT + 1)) --timeout 1h" || return
	held su user -c "exec ./connections 4 $PORT $NR" || return
	twctl sleep 1.5s
	release
	held su user -c "exec ./connections 4 $((PORT + 1)) $NR" || return
	first=$(counts "${ids% *}")
	second=$(counts "${ids#* }")
	file "--port $((PORT + 2)) --timeout 1h" "--port $PORT --timeout 500ms" \
		"--port $((PORT + 1)) --timeout 1h"
	load_says 2 1 0 && same "first rule" "$(counts "${ids% *}")" "$first" &&
		same "second rule" "$(counts "${ids#* }")" "$second"
	result=$?
	release
	case $first$second in
	*"\"closed\": $NR,"*"\"watched\": $NR,"*) return $result ;;
	*) wrong "nothing to keep: $first $second" ;;
	esac
}

same_again() {
	loaded "--port 80 --timeout 1m" "--port 81 --timeout 1m" "--uid 0 --lifetime 1d" || return
	load_says 3 0 0 && same ids "$(ids)" "$ids" || return
	# It may be written differently.
	file "-t 60 -p 80 -a either" "--timeout=60000ms --port=81 -R 1000/s" "--uid root -l 24h"
	load_says 3 0 0 && same ids "$(ids)" "$ids"
}

# The one in the middle: the last one cannot match the same connections, and stays.
changed_rule_is_replaced() {
	loaded "--port 80 --timeout 1m" "--port 81 --timeout 1m" "--port 82 --timeout 1m" || return
	file "--port 80 --timeout 1m" "--port 81 --timeout 2m" "--port 82 --timeout 1m"
	load_says 2 1 1 || return
	rules "--port 80 --timeout 1m" "--port 82 --timeout 1m" "--port 81 --timeout 2m" || return
	same "kept ids" "$(ids | cut -d ' ' -f -2)" "${ids%% *} ${ids##* }" || return
	for match in uid remote-port; do
		loaded "--$match 6 --timeout 1m" "--$match 7 --timeout 1m" &&
			file "--$match 6 --timeout 2m" "--$match 7 --timeout 1m" &&
			load_says 1 1 1 || return
	done
}

# A rule with a name gets its new limits in place, and keeps its counts.
named_rule_is_changed() {
	loaded "--name web --port $PORT --timeout 500ms" "--name db --port 81 --timeout 1m" || return
	held su user -c "exec ./connections 4 $PORT $NR" || return
	twctl sleep 1.5s
	release
	file "--name web --port $PORT --timeout 2m --rate 7 --dry-run" \
		"--name db --port 81 --timeout 1m"
	load_says 1 0 0 $FILE 1 && same ids "$(ids)" "$ids" && json twctl idle stats web &&
		has closed $NR || return
	rules "--name web --port $PORT --timeout 2m --rate 7 --dry-run" \
		"--name db --port 81 --timeout 1m" || return
	# Other conditions make it another rule, and so does another name.
	file "--name web --port 82 --timeout 2m" "--name data --port 81 --timeout 2m"
	load_says 0 2 2
}

# What the kernel refuses for the second leaves the first as it was.
change_is_undone() {
	loaded "--name web --port 80 --timeout 1m" "--name db --port 81 --timeout 1m" || return
	file "--name web --port 80 --timeout 2m" "--name db --port 81 --timeout 1ms" \
		"--port 82 --timeout 1m"
	refused "$FILE:2: cannot change the rule: the timeout is shorter than 10 ms, or"
}

# As many as there can be, and no room for one more.
all_are_changed() {
	many 256 1m r && good twctl idle remove all && load_says 0 256 0 || return
	many 256 2m r && load_says 0 0 0 $FILE 256 && good twctl idle remove all
}

# warned LINE WHY: the file is loaded, and a rule is said never to apply.
warned() {
	for option in --check ""; do
		# shellcheck disable=SC2086 # no option is no word
		twctl idle load $option $FILE > $OUT 2> $ERR || wrong "status $?" || return
		same warning "$(cat $ERR)" "twctl: $FILE:$1: this rule will never apply: $2" ||
			return
	done
}

# What 'idle add' refuses, or warns of.
useless_rules() {
	loaded "--port 80 --timeout 1m" || return
	file "--name a --port 81 --timeout 1m" "--name a --port 82 --timeout 1m" &&
		refused "$FILE:2: $FILE:1 has the name a, too; " || return
	complaint 1 "$FILE:2: $FILE:1 has the name a" twctl idle load --check $FILE || return
	file "--remote 10.0.0.0/8 --family inet6 --timeout 1m"
	warned 1 "no address of --remote, if any, is of a --family that is left" || return
	file "--port 80 --timeout 1h" "--port 80 --uid 0 --timeout 1m"
	warned 2 "$FILE:1 comes before it and takes all" || return
	# One that has become equal to another one is saved, and can be loaded.
	file "--name a --port 81 --timeout 1m" "--name b --port 81 --timeout 2m"
	twctl idle load $FILE 2> /dev/null && good twctl idle set b --timeout 1m || return
	good twctl idle save && grep -v '^#' $OUT > $FILE || return
	warned 2 "$FILE:1 comes before it and takes all" &&
		prints "rules: 2 kept, 0 changed, 0 added, 0 removed"
}

# What follows a new rule that may match the same connections is new, too.
order_is_kept() {
	loaded "--port 80 --timeout 1m" "--uid 0 --timeout 1h" "--port 81 --timeout 1m" || return
	file "--uid 1000 --timeout 1h" "--port 80 --timeout 1m" "--uid 0 --timeout 1h" \
		"--port 81 --timeout 1m"
	load_says 3 1 0 && rules "--uid 1000 --timeout 1h" "--port 80 --timeout 1m" \
		"--uid 0 --timeout 1h" "--port 81 --timeout 1m"
}

# An exception that is removed, and one that changes places.
order_of_what_stays() {
	loaded "--port 80 --uid 0 --timeout 1h" "--port 80 --timeout 1m" "--uid 7 --timeout 2m" ||
		return
	file "--port 80 --timeout 1m" "--uid 7 --timeout 2m"
	load_says 2 0 1 && same ids "$(ids)" "${ids#* }" || return
	file "--uid 7 --timeout 2m" "--port 80 --timeout 1m"
	load_says 1 1 1 && rules "--uid 7 --timeout 2m" "--port 80 --timeout 1m" &&
		same "kept id" "$(ids | cut -d ' ' -f 1)" "${ids##* }"
}

# Both rules for these connections are replaced, and at no time does the short one apply to them.
exception_stays() {
	held su user -c "exec ./connections 4 $PORT $NR" || return
	twctl sleep 300ms
	loaded "--uid 1000 --timeout 1h" "--port $PORT --timeout 200ms" &&
		file "--uid 1000 --timeout 2h" "--port $PORT --timeout 100ms" &&
		load_says 0 2 2 && twctl sleep 300ms && json twctl idle list &&
		has matched 0 closed 0 && same open "$(nr_open)" $NR &&
		good twctl idle load /dev/null && same open "$(nr_open)" $NR
	result=$?
	release
	return $result
}

nr_open() {
	awk -v port="$(printf ':%04X' $PORT)" '
		$2 ~ port "$" && $4 == "01" { n++ }
		END { print n + 0 }' /proc/net/tcp
}

# A connection does not become younger when its rule is replaced.
age_is_kept() {
	loaded "--port $PORT --lifetime 1h" || return
	held su user -c "exec ./connections 4 $PORT 1" || return
	twctl sleep 1.2s
	file "--port $PORT --lifetime 2h" && load_says 0 1 1 && json twctl idle show "$(ids)" &&
		left=$(sed 's/.*"remaining_ns": \([0-9]*\).*/\1/' $OUT)
	release
	[ "$left" -lt $((7200000000000 - 1200000000)) ] || wrong "$left ns left of 2 h"
}

save_and_load() {
	good twctl idle remove all
	for options in "--port 80 --remote 10.0.0.0/8 --not-remote 10.1.0.0/16 --keep" \
		"--name web --port 80,443 --timeout 1m --stalled 5s" \
		"--remote-port 1 --uid 0 --lifetime 1001ms --spread 1ns --rate 4294967295" \
		"--uid 4294967294 --timeout 16777217us --activity received --action shutdown" \
		"--port 65535 --timeout 8589934593ns --lifetime 106751d --activity sent --dry-run"; do
		# shellcheck disable=SC2086 # These are words.
		rule $options || return
	done
	before=$(twctl idle list --json | sed 's/"id": [0-9]*, //g')
	kept=$(ids)
	twctl idle save > $FILE && load_says 5 0 0 && same ids "$(ids)" "$kept" || return
	twctl idle save > $FILE.again && cmp $FILE $FILE.again || wrong "another text" || return
	good twctl idle remove all && load_says 0 5 0 || return
	same rules "$(twctl idle list --json | sed 's/"id": [0-9]*, //g')" "$before" || return
	twctl idle save | load_says 5 0 0 -
}

# The path contains what a shell would not leave alone.
cgroup_is_saved() {
	mkdir -p "$CGROUP/a 'b\" \\c#" && mkdir $CGROUP/gone || return
	good twctl idle remove all && rule --cgroup / --port 1 --timeout 1m &&
		rule --cgroup . --port 2 --timeout 1m &&
		rule --cgroup /sys/fs/cgroup --port 3 --timeout 1m || return
	same root "$(saved | grep -c -- '--cgroup / ')" 3 && twctl idle save > $FILE &&
		load_says 3 0 0 && good twctl idle remove all &&
		complaint 1 "the path of the cgroup is too long" \
			twctl idle add --cgroup "$(printf 'a%5000s' "" | tr ' ' /)" --timeout 1m || return
	rule --cgroup "idle_load/a 'b\" \\c#" --timeout 1m &&
		rule --cgroup idle_load/gone --timeout 1m || return
	twctl idle save > $FILE && load_says 2 0 0 || return
	rmdir $CGROUP/gone
	twctl idle save > $FILE && grep -q '^# Left out, as its cgroup is gone' $FILE || return
	load_says 1 0 1 && good twctl idle load --check $FILE &&
		same text "$(cat $OUT)" "$(saved)" || return
	# A new cgroup with the same path is a different one.
	good twctl idle remove all && mkdir $CGROUP/gone &&
		file "--cgroup idle_load/gone --timeout 1m" && load_says 0 1 0 || return
	rmdir $CGROUP/gone && mkdir $CGROUP/gone && load_says 0 1 1
	result=$?
	rmdir $CGROUP/*/
	return $result
}

rules_of_processes() {
	loaded "--port 80 --timeout 1m" && rule --pid 1 --timeout 1h && process=$rule &&
		rule --port 81 --timeout 1m || return
	good twctl idle save &&
		says '^# Left out, as a process does not survive a reboot: --pid 1 --timeout 1h$' ||
		return
	load_says 2 0 1 && same ids "$(ids)" "$ids $process" || return
	load_says 1 0 1 /dev/null && same ids "$(ids)" "$process" || return
	good twctl idle remove all
}

directory() {
	mkdir -p $DIRECTORY && rm -rf "${DIRECTORY:?}"/* && good twctl idle remove all || return
	load_says 0 0 0 $DIRECTORY || return
	echo "--port 80 --remote 10.1.0.0/16 --timeout 2m" > $DIRECTORY/10-b.conf
	echo "--port 80 --remote 10.1.1.0/24 --timeout 1m" > $DIRECTORY/10-a.conf
	echo "--port 80 --remote 10.0.0.0/8 --timeout 3m" > $DIRECTORY/9.conf
	printf -- "--port 80 --timeout 0s" > $DIRECTORY/A.conf
	for other in .hidden.conf README 10.conf.dpkg-old 10-conf 10.confx; do
		echo nonsense > $DIRECTORY/$other
	done
	complaint 1 "$DIRECTORY/A.conf:1: --timeout is 0" twctl idle load $DIRECTORY/ || return
	same rules "$(ids)" "" || return
	printf -- "--port 80 --timeout 4m" > $DIRECTORY/A.conf
	mkfifo $DIRECTORY/pipe.conf && complaint 1 "$DIRECTORY/pipe.conf is no regular file" \
		twctl idle load $DIRECTORY && rm $DIRECTORY/pipe.conf || return
	load_says 0 4 0 $DIRECTORY && rules "--port 80 --remote 10.1.1.0/24 --timeout 1m" \
		"--port 80 --remote 10.1.0.0/16 --timeout 2m" \
		"--port 80 --remote 10.0.0.0/8 --timeout 3m" "--port 80 --timeout 4m" || return
	# Not a file is left: that is hardly meant.
	rm $DIRECTORY/*.conf && kept=$(ids) || return
	complaint 1 "$DIRECTORY has no \*\.conf, but there are rules; " \
		twctl idle load $DIRECTORY || return
	same ids "$(ids)" "$kept" && : > $DIRECTORY/none.conf && load_says 0 0 4 $DIRECTORY || return
	complaint 1 "$DIRECTORY.none: No such file or directory; give" \
		twctl idle load $DIRECTORY.none
}

# many NUMBER TIMEOUT [NAME]: that many rules, with names that begin like this.
many() {
	awk -v nr="$1" -v timeout="$2" -v name="${3-}" 'BEGIN {
		for (i = 1; i <= nr; i++)
			print (name ? "--name " name i " " : "") "--port " i " --timeout " timeout
	}' > $FILE
}

too_many() {
	loaded "--port 80 --timeout 1h" || return
	many 257 1m && refused "$FILE:256: cannot add the rule: there are too many, with" || return
	many 255 1m && load_says 0 255 1 && many 256 1m && load_says 255 1 0 || return
	many 256 2m && refused "$FILE:1: cannot add the rule: there are too many, with" || return
	load_says 0 0 256 /dev/null
}

# Adds a rule and removes it again, as fast as possible, as long as the file exists; and, in a /run
# that it cannot write to, without the lock, like another program.
disturb() {
	echo holding
	unshare -m sh -c "
		mount -t tmpfs -o ro none /run
		while [ -e $DISTURBING ]; do
			added=\$(twctl idle --port 9999 --timeout 1h) &&
				twctl idle remove \"\${added#rule }\"
		done" 2> /dev/null
}

# What is loaded meanwhile is loaded as a whole, or not at all.
disturbed() {
	good twctl idle remove all && many 20 1m && load_says 0 20 0 || return
	now=1m
	rounds=0
	: > $DISTURBING
	held disturb || return
	for next in 2m 1m 2m 1m; do
		many 20 $next
		if twctl idle load $FILE > $OUT 2> $ERR; then
			now=$next
		else
			grep -q 'another program has changed the rules meanwhile' $ERR ||
				wrong "$(cat $ERR)" || break
		fi
		many 20 $now
		same rules "$(saved | grep -v 9999)" "$(cat $FILE)" || break
		rounds=$((rounds + 1))
	done
	# If the process were killed, its current command would continue.
	rm $DISTURBING
	wait "$HOLDER"
	[ $rounds = 4 ]
}

# waits COMMAND...: while another one changes rules.
waits() {
	timeout 1 twctl idle "$@" > $OUT 2> $ERR
	# 128 and SIGTERM, which the shell may tell of, too.
	same status $? 143 && same message "$(grep -v Terminated $ERR)" \
		"twctl: waiting for another twctl that changes rules"
}

# One command at a time changes rules.
one_at_a_time() {
	loaded "--name web --port 80 --timeout 1m" && held ./hold_lock /run/twheel/rules.lock || return
	file "--port 81 --timeout 1m"
	waits load $FILE && waits set web --timeout 2m && waits add --port 82 --timeout 1m &&
		waits remove web && waits remove all && rules "--name web --port 80 --timeout 1m"
	result=$?
	twctl idle load $FILE > $OUT 2> $ERR &
	loading=$!
	twctl sleep 300ms
	rules "--name web --port 80 --timeout 1m" || result=1
	release
	wait $loading && rules "--port 81 --timeout 1m" && return $result
}

checks_only() {
	loaded "--port 80 --timeout 1m" || return
	file "-p 81 -t 60" "--port 82 --timeout 1ms"
	good twctl idle load --check $FILE || return
	same printed "$(cat $OUT)" \
		"$(printf '%s\n' '--port 81 --timeout 1m' '--port 82 --timeout 1ms')" || return
	rules "--port 80 --timeout 1m" && su user -c "twctl idle load --check $FILE" > $OUT &&
		lines 2
}

bad_command_lines() {
	complaint 2 "idle load: which rules\? Give a FILE, a DIRECTORY, or -;" twctl idle load ||
		return
	complaint 2 "idle load: 'b' is too much" twctl idle load a b || return
	complaint 2 "idle load: there is no option '--json'" twctl idle load --json a || return
	complaint 2 "idle save: 'a' is too much" twctl idle save a
}

not_permitted() {
	loaded "--port 80 --timeout 1m" || return
	chmod 666 /dev/twheel
	complaint 1 "this takes CAP_NET_ADMIN in the network namespace; run this as root" \
		su user -c "twctl idle load $FILE" &&
		complaint 1 "this takes CAP_NET_ADMIN" su user -c "twctl idle save" 
	result=$?
	chmod 600 /dev/twheel
	good twctl idle remove all && return $result
}

not_loaded() {
	unload || return
	for command in "load $FILE" save; do
		# shellcheck disable=SC2086 # with its operand
		complaint 1 "twheel.ko is not loaded; as root, run: modprobe twheel$" \
			twctl idle $command || return
	done
	load
}

# Does a socket know its cgroup? Not without CONFIG_SOCK_CGROUP_DATA.
have_cgroups() {
	mkdir -p $CGROUP && rule --cgroup idle_load --timeout 1h 2> /dev/null > /dev/null
}

is_loaded || load
mkdir -p /run
tap_plan 28
tap "what was loaded is there" first_load
tap "an error in line 7 changes nothing" error_in_line_7
tap "nor does one that the kernel finds" error_of_the_kernel
tap "errors name file and line" errors
tap "lines end as on other systems" other_ends
tap "a file with an odd name" odd_name
tap "unchanged rules keep their numbers and counts" unchanged_rules_keep_counts
tap "the same rules again" same_again
tap "a changed rule is replaced" changed_rule_is_replaced
tap "a rule with a name is changed" named_rule_is_changed
tap "a change is undone" change_is_undone
tap "all are changed" all_are_changed
tap "rules that cannot apply" useless_rules
tap "order, where it matters" order_is_kept
tap "order, of what stays" order_of_what_stays
tap "an exception is never without effect" exception_stays
tap "connections keep their age" age_is_kept
tap "save and load" save_and_load
if have_cgroups; then
	tap "save a cgroup" cgroup_is_saved
else
	tap_skip "save a cgroup" "sockets know no cgroup"
fi
tap "rules of processes stay" rules_of_processes
tap "a directory" directory
tap "too many rules" too_many
tap "rules that others change" disturbed
tap "one at a time" one_at_a_time
tap "--check changes nothing" checks_only
tap "bad command lines are refused" bad_command_lines
tap "not permitted" not_permitted
tap "not loaded" not_loaded
tap_end
