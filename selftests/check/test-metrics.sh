#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The output of `twctl metrics`, as read by its consumers: promtool has Prometheus's own parser and
# its advice on names, and the Python client library has a parser of OpenMetrics.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

promtool=$CACHE/promtool

# In the guest: timers in all states, rules, one of them for a cgroup with a name that has to be
# escaped, and connections that make each of the counters of rules count, except missed. Each time
# with the contents of debugfs and the rules at that time: nothing changed while they were taken.
# shellcheck disable=SC2016 # the guest's shell expands these
guest='
	set -e
	# What must not change: all but ticks, and chunks that are free.
	state() {
		twctl idle list --json > /out/$1.rules
		cat /sys/kernel/debug/twheel/lateness > /out/$1.lateness
		grep -v -e ticks: -e free_chunks: /sys/kernel/debug/twheel/totals > /out/$1.totals
	}
	same() {
		for part in rules lateness totals; do
			cmp -s /out/$1.$part /out/$2.$part || return
		done
	}
	take() {
		for try in 1 2 3 4 5 6 7 8 9 10; do
			state before
			twctl metrics > /out/$1.text
			twctl metrics --openmetrics > /out/$1.openmetrics
			state $1
			if same before $1; then
				return
			fi
		done
		echo "$1: it changes all the time"
		return 1
	}
	# hold PORT NR: silent connections.
	hold() {
		selftests/cli/connections 4 $1 $2 > /out/held &
		until grep -q holding /out/held; do
			twctl sleep 10ms
		done
	}
	! twctl metrics > /out/none 2> /out/none.errors
	echo old > /out/gone
	! twctl metrics --file /out/gone 2> /out/gone.errors
	! twctl metrics --file /nowhere/file 2> /out/nowhere.errors
	! twctl metrics --file /dev/null 2> /out/device.errors
	ls -l /dev/null > /out/device
	insmod twheel.ko
	take idle
	twctl add 1h & twctl sleep 0.2
	twctl add --period 50ms 50ms > /dev/null & twctl sleep 0.5
	group="/sys/fs/cgroup/a \"b\\c"
	mkdir -p "$group" 2> /dev/null && twctl idle --cgroup "$group" --timeout 1m
	twctl idle --port 7 --timeout 100ms
	twctl idle --port 7 --uid root --lifetime 1h --dry-run
	twctl idle --name lists --port 80,8080-8081 --remote 10.1.0.0/16 --keep
	nc -l -p 7 -e cat &
	twctl sleep 0.3
	{ twctl sleep 2; } | nc 127.0.0.1 7 || :
	kill %2
	wait %2 || :
	hold 20 4
	hold 21 2
	hold 22 3
	nc -l -p 23 -e cat &
	nc -l -p 24 -e cat &
	nc -l -p 25 -e cat /dev/zero &
	twctl sleep 0.3
	# One of these waits for the rate, and is active meanwhile.
	for port in 23 24; do
		{
			twctl sleep 1
			for i in 1 2 3 4 5 6 7 8; do
				echo
				twctl sleep 0.2
			done
		} | nc 127.0.0.1 $port > /dev/null &
	done
	# And this one takes nothing.
	nc 127.0.0.1 25 | twctl sleep 1h &
	twctl sleep 0.7
	twctl idle --port 20 --timeout 100ms --rate 1
	twctl idle --port 21 --timeout 1500ms --dry-run
	twctl idle --port 22 --timeout 1h
	twctl idle --port 23,24 --timeout 500ms --rate 1
	twctl idle --port 25 --timeout 200ms
	twctl sleep 2
	killall nc
	twctl sleep 2
	take busy
	echo old > /out/file
	echo other > /out/other
	ln -s other /out/file.new
	twctl metrics --file /out/file
	! su nobody -s /bin/sh -c "twctl metrics" > /out/user 2> /out/user.errors'

# value FILE SAMPLE
value() {
	awk -v sample="$2" 'index($0, sample " ") == 1 { print substr($0, length(sample) + 2) }' "$1"
}

# numbers FILE: are they those of debugfs?
numbers() {
	local key sample

	while read -r key sample; do
		echo "$key: $(value "$tmp/out/$1.text" "$sample")"
		grep "^$key: " "$tmp/out/$1.totals"
	done <<-'EOF' | uniq -c | awk '{ print } $1 != 2 { bad = 1 } END { exit bad }'
	pending twheel_timers_pending
	adds twheel_timers_added_total
	cancels twheel_timers_cancelled_total
	rearms twheel_timers_rearmed_total
	spilled twheel_timers_spilled_total
	chunks twheel_chunks
	contexts twheel_contexts
	EOF
}

# Each bucket of the histogram is the sum of those of debugfs up to there. The bounds are in seconds
# here, and inclusive; in nanoseconds there, and exclusive.
buckets() {
	awk '
		FILENAME ~ /lateness$/ { bound[FNR] = $1 + 0; count[FNR] = $2; n = FNR; next }
		/^twheel_lateness_seconds_bucket/ && !/"\+Inf"/ {
			split($1, part, "\"")
			ns = int(part[2] * 1e9 + 0.5)
			sum = 0
			for (i = 1; i <= n; i++)
				if (bound[i] && bound[i] - 1 <= ns)
					sum += count[i]
			print $0 ", in debugfs " sum
			bad = bad || sum != $2
			found[ns + 1] = sum
		}
		END {
			# Each bound of debugfs is there, and something was counted below it.
			for (i = 1; i <= n; i++)
				bad = bad || (bound[i] && !found[bound[i]])
			exit bad || !n
		}' "$tmp/out/busy.lateness" "$tmp/out/busy.text"
}

# Each expired timer is in the histogram, in its bucket and all above.
histogram() {
	awk -v all="$(value "$tmp/out/busy.text" twheel_timers_expired_total)" '
		/^twheel_lateness_seconds_bucket/ {
			print
			bad = bad || $2 < last
			last = $2
			n++
		}
		END { exit bad || n < 20 || last != all || !all }' "$tmp/out/busy.text"
}

rules() {
	local lists='rule="4",name="lists",port_list="80,8080-8081",remote_list="10.1.0.0/16",keep="true"'

	grep '^twheel_rule' "$tmp/out/busy.text"
	[ "$(value "$tmp/out/busy.text" 'twheel_rule_closed_total{rule="2",local_port="7"}')" = 1 ] &&
		grep -q '^twheel_rule_watched{rule="3",local_port="7",uid="0",dry_run="true"} ' \
			"$tmp/out/busy.text" &&
		grep -Fq '{rule="1",cgroup="a \"b\\c"} ' "$tmp/out/busy.text" &&
		grep -Fq "twheel_rule_matched_total{$lists} 0" "$tmp/out/busy.text" &&
		[ "$(grep -c '^twheel_watch_delay_seconds_bucket{kind="rules",le="+Inf"} [1-9]' \
			"$tmp/out/busy.text")" = 1 ]
}

# The metrics of each rule are what idle list shows of it. All but missed, for which memory would
# have to run out, have counted something, and no two of them the same, so they cannot be mistaken
# for each other.
counters() {
	/usr/bin/python3 - "$tmp/out/busy" <<-'EOF'
	import json, sys
	from prometheus_client.parser import text_string_to_metric_families

	names = ["closed", "would_close", "spared", "delayed", "missed", "waited", "overdue",
	         "untimed", "matched"]
	metrics = {"watched": "twheel_rule_watched"}
	metrics.update((name, f"twheel_rule_{name}_total") for name in names)
	shown = json.load(open(sys.argv[1] + ".rules"))
	want = {(metric, str(rule["id"])): rule[name]
	        for rule in shown for name, metric in metrics.items()}
	have = {(s.name, s.labels["rule"]): s.value
	        for family in text_string_to_metric_families(open(sys.argv[1] + ".text").read())
	        for s in family.samples if s.name.startswith("twheel_rule_")}
	for key in sorted(want.keys() | have.keys()):
	    if want.get(key) != have.get(key):
	        print(*key, "is", have.get(key), "and should be", want.get(key))
	counts = {name: tuple(rule[name] for rule in shown) for name in metrics}
	print(*counts.items(), sep="\n")
	silent = [name for name in counts if not any(counts[name])]
	sys.exit(want != have or silent != ["missed"] or len(set(counts.values())) != len(counts))
	EOF
}

# openmetrics FILE SAMPLES: is it valid, and does it say the same as the older format? It has at
# least that many samples, excluding those that keep counting.
openmetrics() {
	/usr/bin/python3 - "$1" "$2" <<-'EOF'
	import sys
	from prometheus_client.openmetrics.parser import text_string_to_metric_families as new
	from prometheus_client.parser import text_string_to_metric_families as old

	def samples(parser, name):
	    return {(s.name, tuple(sorted(s.labels.items()))): s.value
	            for f in parser(open(name).read()) for s in f.samples
	            if not s.name.startswith(("twheel_ticks", "twheel_empty_ticks", "twheel_lateness",
	                                      "twheel_free_chunks"))}

	a = samples(new, sys.argv[1] + ".openmetrics")
	b = samples(old, sys.argv[1] + ".text")
	print(len(a), a.items() ^ b.items())
	sys.exit(a != b or len(a) < int(sys.argv[2]))
	EOF
}

"$TOP/selftests/check/fetch-promtool" > "$tmp/output" 2>&1
ok "promtool is there"
"$TOP/selftests/vm/run" --simulate --kernel 6.12 --out "$tmp/out" -- "$guest" > "$tmp/output" 2>&1
ok "a guest prints metrics"
for state in idle busy; do
	[ $state = idle ] && least=10 || least=50
	"$promtool" check metrics < "$tmp/out/$state.text" > "$tmp/output" 2>&1 &&
		[ ! -s "$tmp/output" ]
	ok "$state: promtool finds no fault"
	openmetrics "$tmp/out/$state" "$least" > "$tmp/output" 2>&1
	ok "$state: OpenMetrics, and the same"
	numbers $state > "$tmp/output" 2>&1
	ok "$state: the numbers are debugfs's"
done
histogram > "$tmp/output" 2>&1
ok "all that has expired is in the histogram"
buckets > "$tmp/output" 2>&1
ok "in the buckets that debugfs has it in"
rules > "$tmp/output" 2>&1
ok "the rules, and what they match"
counters > "$tmp/output" 2>&1
ok "and what they have counted"
[ ! -s "$tmp/out/none" ] && grep -q 'is not loaded' "$tmp/out/none.errors"
ok "without the module there is a line that says so"
[ ! -e "$tmp/out/gone" ] && cmp "$tmp/out/gone.errors" "$tmp/out/none.errors" > "$tmp/output"
ok "and no file that is old"
[ "$(cat "$tmp/out/nowhere.errors")" = "twctl: /nowhere/file.new: No such file or directory" ]
ok "a file that cannot be written"
[ "$(cat "$tmp/out/device.errors")" = "twctl: /dev/null is no regular file; leave --file out, and redirect the output" ] &&
	grep -q '^c' "$tmp/out/device"
ok "a device is not replaced"
names() {
	sed -E '/^#/d; s/ [^ ]*$//' "$tmp/out/$1"
}
[ -n "$(names file)" ] && [ "$(names file)" = "$(names busy.text)" ] &&
	[ -z "$(find "$tmp/out" -name '*.new')" ]
ok "a file is replaced"
[ "$(cat "$tmp/out/other")" = other ] && [ ! -L "$tmp/out/file" ]
ok "and nothing else is written to"
[ ! -s "$tmp/out/user" ] && [ "$(wc -l < "$tmp/out/user.errors")" = 1 ]
ok "nor is there anything for who may not see it"
finish
