#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests the report, with figures that are made up and whose answers are known. Prints TAP.
set -u

HERE=$(cd "$(dirname "$0")" && pwd)
TOP=$(cd "$HERE/../.." && pwd)
. "$TOP/selftests/lib/tap.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
json=$tmp/json
report=$tmp/report

run() {
	"$HERE/run" "$json" "$report" > "$tmp/out" 2> "$tmp/err" || wrong "status $?: $(cat "$tmp/err")"
}

# only NAME...: the directory has nothing but these files, which the functions below write.
only() {
	local name

	rm -rf "$json" "$report"
	mkdir -p "$json"
	for name; do
		"$name" > "$json/$name.json"
	done
}

# ---- figures: what is written as [median, min, max], or in short, is spelt out by jq

spelt='def s: if type == "array" then { median: .[0], min: .[1], max: .[2], samples: [.[0]] }
	      else { median: ., min: ., max: ., samples: [.] } end;
       def head: { tool: "twbench", version: "0.0.1", kernel: "6.0.0", cpu_model: "A processor",
		   lane: "exact", seed: 7, command: "twbench --lane exact" };'

# add: the wheel is ahead of timer_list by 2, and by less with more timers. cancel: heap is ahead of it
# by 4, timer_list by 2. rearm_later: the spreads overlap. rearm_earlier: it differs by less than 1 %.
arena() {
	jq -n "$spelt"'
		def r($scheme; $workload; $n; $v):
			{ scheme: $scheme, workload: $workload, n: $n, order: "random",
			  unit: "instructions", lane: "exact" } + ($v | s);
		head + { records: [
			r("wheel"; "add"; 1000; [100, 99, 101]), r("timer_list"; "add"; 1000; 200),
			r("heap"; "add"; 1000; 300),
			r("wheel"; "add"; 10000; 100), r("timer_list"; "add"; 10000; 150),
			r("heap"; "add"; 10000; 400),
			r("wheel"; "cancel"; 1000; 80), r("timer_list"; "cancel"; 1000; 40),
			r("heap"; "cancel"; 1000; 20),
			r("wheel"; "rearm_later"; 1000; [50, 40, 60]),
			r("heap"; "rearm_later"; 1000; [45, 39, 61]),
			r("wheel"; "rearm_earlier"; 1000; 1000), r("heap"; "rearm_earlier"; 1000; 1009),
			r("limit"; "rmw"; 1000; 6) ],
		  memory: [
			{ scheme: "wheel", timer: "handle", n: 1000, in_object: 0, elsewhere: 59, sum: 59 },
			{ scheme: "wheel", timer: "embedded", n: 1000, in_object: 40, elsewhere: 10,
			  sum_rearmed: 57, sum: 50 },
			{ scheme: "heap", timer: "embedded", n: 1000, in_object: 16, elsewhere: 4,
			  sum_rearmed: 20, sum: 20 } ],
		  growth: [], lateness: [] }'
}

# Of 1000 timers, half are less than 1024 ns late, 99 % less than 4096, and the last one is 5000.
exact() {
	jq -n "$spelt"'
		head + { records: [], memory: [], growth: [], lateness: [
			{ scheme: "wheel", n: 1000, min_ns: 1000000, max_ns: 60000000000, early: 0,
			  worst_ns: 5000,
			  late: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 500, 0, 490, 10] } ] }'
}

# A few hundredths of a percent of a CPU count, a few thousandths do not.
mixtures() {
	jq -n "$spelt"'
		def r($scheme; $n; $cpu; $late):
			{ scheme: $scheme, trace: "connections", n: $n, unit: "instructions",
			  cpu_percent: ($cpu | s), late_p50_ns: ($late / 2 | s), late_p99_ns: ($late | s), arm: null };
		head + { replays: [
			r("wheel"; 1000; 0.001; 1), r("netty"; 1000; 0.002; 1),
			r("wheel"; 10000; 0.002; 1000000), r("netty"; 10000; 0.003; 100000000),
			r("hrtimer"; 10000; 0.05; 1000), r("limit"; 10000; 0; 0) ] }'
}

connections() {
	jq -n "$spelt"'
		def r($scheme; $cpu):
			{ scheme: $scheme, n: 1000, unit: "instructions", timeouts: $cpu, server: 1,
			  per_second: (100 * $cpu), arming: 1, memory: 1, false_kicks: 0,
			  late_p50_ns: 1, late_p99_ns: 2, late_max_ns: 3 };
		head + { heartbeat: 5, timeout: 30,
			 records: [r("none"; 0), r("watch"; 100), r("heap"; 300)] } | del(.seed)'
}

programs() {
	jq -n "$spelt"'
		def r($peer; $operation; $v):
			{ peer: $peer, n: 1000, order: null, operation: $operation } + ($v | s);
		head + { tool: "bench-programs", lane: "user", records: [
			r("wheel"; "bytes"; 50), r("timerfd"; "bytes"; 10), r("libev"; "bytes"; 60),
			r("php_scan"; "bytes"; 1),
			r("libevent"; "earliest_us"; 1500), r("libevent"; "late_us"; 300),
			r("wheel"; "earliest_us"; 0), r("wheel"; "late_us"; 500) ] }'
}

# ---- tests

# table NAME COLUMNS: these columns of a table, separated by spaces, against standard input. What is
# empty is shown as -.
table() {
	awk -F '\t' -v columns="$2" '
		NR > 1 {
			n = split(columns, column, ",")
			for (i = 1; i <= n; i++)
				printf "%s%s", $column[i] == "" ? "-" : $column[i], i < n ? "|" : "\n"
		}' "$report/$1.tsv" | sort > "$tmp/got"
	sort > "$tmp/expected"
	diff "$tmp/expected" "$tmp/got" > "$tmp/diff" || wrong "$1: $(cat "$tmp/diff")"
}

figures() {
	only arena exact connections programs && run || return
	table figures 1,2,3,4,5,6,7,8,9,10 <<-EOF
	cost|exact|add|wheel|1000|-|instructions|100|99|101
	cost|exact|add|timer_list|1000|-|instructions|200|200|200
	cost|exact|add|heap|1000|-|instructions|300|300|300
	cost|exact|add|wheel|10000|-|instructions|100|100|100
	cost|exact|add|timer_list|10000|-|instructions|150|150|150
	cost|exact|add|heap|10000|-|instructions|400|400|400
	cost|exact|cancel|wheel|1000|-|instructions|80|80|80
	cost|exact|cancel|timer_list|1000|-|instructions|40|40|40
	cost|exact|cancel|heap|1000|-|instructions|20|20|20
	cost|exact|rearm_later|wheel|1000|-|instructions|50|40|60
	cost|exact|rearm_later|heap|1000|-|instructions|45|39|61
	cost|exact|rearm_earlier|wheel|1000|-|instructions|1000|1000|1000
	cost|exact|rearm_earlier|heap|1000|-|instructions|1009|1009|1009
	cost|exact|rmw|limit|1000|-|instructions|6|6|6
	memory|kernel|armed|wheel_handle|1000|-|bytes|59|59|59
	memory|kernel|armed|wheel|1000|-|bytes|50|50|50
	memory|kernel|re-armed|wheel|1000|-|bytes|57|57|57
	memory|kernel|armed|heap|1000|-|bytes|20|20|20
	memory|kernel|re-armed|heap|1000|-|bytes|20|20|20
	late|timeouts|0.5|wheel|1000|-|ns|1024|1024|1024
	late|timeouts|0.9|wheel|1000|-|ns|4096|4096|4096
	late|timeouts|0.99|wheel|1000|-|ns|4096|4096|4096
	late|timeouts|0.999|wheel|1000|-|ns|5000|5000|5000
	late|timeouts|1|wheel|1000|-|ns|5000|5000|5000
	early|timeouts|early|wheel|1000|-|-|0|0|0
	$(for scheme in none:0 watch:100 heap:300; do
		name=${scheme%:*} cpu=${scheme#*:}
		echo "timeouts|connections|timeouts|$name|1000|30|instructions|$cpu|$cpu|$cpu"
		echo "per_second|connections|timeouts|$name|1000|30|instructions per second|$((cpu * 100))|$((cpu * 100))|$((cpu * 100))"
		echo "server|connections|server|$name|1000|30|instructions|1|1|1"
		echo "arming|connections|arming|$name|1000|30|instructions|1|1|1"
		echo "memory|connections|memory|$name|1000|30|bytes|1|1|1"
		echo "false|connections|kicks|$name|1000|30|-|0|0|0"
		echo "late_p50|connections|kicks|$name|1000|30|ns|1|1|1"
		echo "late_p99|connections|kicks|$name|1000|30|ns|2|2|2"
		echo "late_max|connections|kicks|$name|1000|30|ns|3|3|3"
	done)
	memory|programs|armed|wheel|1000|-|bytes|50|50|50
	memory|programs|armed|libev|1000|-|bytes|60|60|60
	memory|programs|heartbeats|php_scan|1000|-|bytes|1|1|1
	earliest|programs|earliest_us|libevent|1000|-|ns|1500000|1500000|1500000
	late|programs|late_us|libevent|1000|-|ns|300000|300000|300000
	earliest|programs|earliest_us|wheel|1000|-|ns|0|0|0
	late|programs|late_us|wheel|1000|-|ns|500000|500000|500000
	EOF
}

# Columns: verdict, what, n, timeout, the wheel, the best other, its value, the ratio, who is ahead.
wins_and_losses() {
	only arena mixtures connections && run || return
	table comparisons 1,2,3,4,5,6,7,8,9 <<-EOF
	ahead|add in the kernel|1000|-|100|timer_list|200|2|-
	ahead|add in the kernel|10000|-|100|timer_list|150|1.5|-
	behind|cancel in the kernel|1000|-|80|heap|20|4|heap timer_list
	equal|rearm_later in the kernel|1000|-|50|heap|45|1|-
	equal|rearm_earlier in the kernel|1000|-|1000|heap|1009|1|-
	behind|memory in the kernel|1000|-|50|heap|20|2.5|heap
	equal|CPU, connections|10000|-|0.002|netty|0.003|1|-
	behind|how late 99 % are, connections|10000|-|1000000|hrtimer|1000|1000|hrtimer
	ahead|CPU for the timeouts of a server|1000|30|100|heap|300|3|-
	equal|how late 99 % of idle connections were closed|1000|30|2|heap|2|1|-
	equal|memory for each connection of a server|1000|30|1|heap|1|1|-
	EOF
}

# A scheme that takes less than counts is ahead of a wheel that takes more.
little_cpu() {
	only mixtures || return
	jq '(.replays[] | select(.scheme == "wheel").cpu_percent) |= { median: 1, min: 1, max: 1 }' \
		"$json/mixtures.json" > "$tmp/x" && mv "$tmp/x" "$json/mixtures.json"
	run || return
	grep -q '^behind	CPU, connections	10000		1	netty	0.003	100	netty hrtimer$' \
		"$report/comparisons.tsv" || wrong "$(cat "$report/comparisons.tsv")"
}

# The text of the page, one element a line.
page_text() {
	sed 's/<[^>]*>/ /g; s/  */ /g; s/^ //; s/ $//' "$report/index.html"
}

# The first screen has both columns, what is ahead by most comes first, of add the n with the larger
# ratio, and it is said for whom the other scheme is right: once for each.
first_screen() {
	local whom

	only arena mixtures connections && run || return
	page_text | awk '/^The wheel is ahead/,/are equal/' > "$tmp/first"
	whom=$(awk -F '\t' '$1 == "heap" { print $6 }' "$HERE/schemes.tsv")
	[ "$whom" ] || return
	diff - <(grep . "$tmp/first" | grep -v '^Right for') > "$tmp/diff" <<-EOF ||
	The wheel is ahead in 3 of 11
	3× CPU for the timeouts of a server , 1k connections, timeout 30 s: 100 instructions, the next, heap, 300 instructions
	2× add in the kernel , n = 1k: 100 instructions, the next, timer_list, 200 instructions
	Another scheme is ahead in 3 of 11
	1000× how late 99 % are, connections , n = 10k: hrtimer 1 µs, the wheel 1 ms hrtimer: right for $(awk -F '\t' '$1 == "hrtimer" { print $6 }' "$HERE/schemes.tsv").
	4× cancel in the kernel , n = 1k: heap 20 instructions, the wheel 80 instructions. Ahead as well: timer_list. heap: right for $whom.
	2.5× memory in the kernel , n = 1k: heap 20 bytes, the wheel 50 bytes
	5 are equal, within their spread or 1 %. All of them , who should take another scheme , how to repeat this .
	EOF
		wrong "$(cat "$tmp/diff")"
}

# Each that is ahead anywhere is in the table of those for whom it is right, others are not.
for_whom() {
	awk '/id="whom"/,/<\/table>/' "$report/index.html" |
		sed -n 's/^<tr><th>\([a-z_]*\)<\/th><td>.*/\1/p' > "$tmp/got"
	diff - "$tmp/got" > "$tmp/diff" <<-EOF || wrong "$(cat "$tmp/diff")"
	heap
	hrtimer
	timer_list
	EOF
}

# Names come from files: they must not become tags, nor commands of gnuplot or of the page.
hostile() {
	local evil

	only arena mixtures || return
	touch "$tmp/secret"
	# shellcheck disable=SC2016 # none of this is to be expanded
	evil='"<script src=http://x>alert(1)</script>&amp;\n@svg ../secret\n'"'"'; system \"touch '$tmp/pwned'\"; `touch '$tmp/pwned'`"'
	for file in arena mixtures; do
		jq --argjson evil "$evil" '
			(.. | objects | select(.scheme == "heap" or .scheme == "netty").scheme) |= $evil
			| (.. | objects | select(.workload == "add").workload) |= $evil
			| .kernel |= $evil | .command |= $evil | .unit? |= .' "$json/$file.json" > "$tmp/x" &&
			mv "$tmp/x" "$json/$file.json"
	done
	run || return
	[ ! -e "$tmp/pwned" ] || wrong "a name was executed" || return
	grep -q '&lt;script src=http://x&gt;alert(1)&lt;/script&gt;&amp;amp;' "$report/index.html" ||
		wrong "the name is not on the page" || return
	! grep -n '^@svg' "$report/index.html" || wrong "a line was taken for a command" || return
	no_scripts
}

# Nothing is fetched, and nothing is executed. What looks like an address in a text is none.
no_scripts() {
	! grep -inE '<(script|iframe|object|embed|link|base|img|image)|@import|(src|href|action|data)=["'"'"']?[^#"'"'"' ]|url\([^#]| on[a-z]+=' \
		<(sed 's/&lt;[^<]*//g' "$report/index.html") > "$tmp/got" || wrong "$(cut -c 1-200 "$tmp/got")"
}

# Each SVG of the page, and those that are written by themselves.
well_formed() {
	local n=0 svg name

	awk -v tmp="$tmp" '/<svg/ { n++; out = 1 } out { print > (tmp "/page-" n ".svg") }
		/<\/svg>/ { out = 0 }' "$report/index.html"
	for svg in "$tmp"/page-*.svg; do
		xmllint --noout "$svg" 2> "$tmp/err" || wrong "$svg: $(head -n 3 "$tmp/err")" || return
		n=$((n + 1))
	done
	[ "$n" -ge "${1:-1}" ] && [ "$n" = "$(grep -c '<figure>' "$report/index.html")" ] ||
		wrong "$n plots, of $(grep -c '<figure>' "$report/index.html")" || return
	rm "$tmp"/page-*.svg
	# No two parts of the page have the same name.
	grep -oE "\\bid=['\"][^'\"]*" "$report/index.html" | sort | uniq -d > "$tmp/got"
	[ ! -s "$tmp/got" ] || wrong "twice: $(head -n 3 "$tmp/got")"
}

plots() {
	local name

	only arena exact mixtures connections programs || return
	jq '.timeout = 10' "$json/connections.json" > "$json/connections-10s.json"
	jq '.replays += [.replays[] | .trace = "rpc"]' "$json/mixtures.json" > "$tmp/more" &&
		mv "$tmp/more" "$json/mixtures.json" || return
	run && well_formed 12 && no_scripts || return
	"$HERE/run" --plot cost-exact-add "$json" > "$tmp/a.svg" && xmllint --noout "$tmp/a.svg" &&
		[ "$(sed -n 2p "$tmp/a.svg")" = '<!-- SPDX-License-Identifier: GPL-2.0-only -->' ] || return
	for name in ratios-exact cost-exact-add cost-exact-cancel percentiles late-mixtures-connections \
		cost-mixtures-rpc late-programs late-connections memory memory-programs cpu-mixture \
		cpu-connections cpu-timeout trade-mixtures-connections; do
		grep -q "id='$name-" "$report/index.html" || wrong "no plot $name" || return
	done
	# A curve has its label.
	grep -q '>timer_list<' "$tmp/a.svg"
}

# Labels keep their order and their distance, and stay inside.
labels() {
	jq -n -L "$HERE" -e 'include "plots";
		def placed($gap): map({ want: . }) | spread($gap) | map(.at * 1000 | round);
		([0, 0.5, 1] | placed(0.1)) == [0, 500, 1000] and
		([0.5, 0.5, 0.5] | placed(0.1)) == [400, 500, 600] and
		([0.5, 0.52, 0.9] | placed(0.1)) == [460, 560, 900] and
		([1, 1, 0.99] | placed(0.1)) == [800, 900, 1000] and
		([0, 0, 0] | placed(0.1)) == [0, 100, 200]' > /dev/null
}

missing() {
	only && run || return
	page_text > "$tmp/text"
	grep -q 'No figures of recorded traces: traces.json is not there; make arena writes it' "$tmp/text" &&
		grep -q 'There are no figures yet' "$tmp/text" || wrong "no gap is named" || return
	only arena && run || return
	page_text > "$tmp/text"
	! grep -q 'No figures of instructions' "$tmp/text" &&
		grep -q 'No figures of times in the kernel: native.json is not there; make bench-native' "$tmp/text" &&
		grep -q '^Not there: .*traces.json' "$tmp/text" && return
	wrong "$(grep 'No figures' "$tmp/text")"
}

# broken PATTERN: the file on standard input is an error of one line, and the old report stays.
broken() {
	cat > "$json/api.json"
	rm -f "$tmp/out"
	! "$HERE/run" "$json" "$report" > "$tmp/out" 2> "$tmp/err" || wrong "$1: no error" || return
	[ "$(wc -l < "$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ] && grep -q "^run: $json/api.json: .*$1" "$tmp/err" ||
		wrong "$1: $(cat "$tmp/err")" || return
	[ "$(cat "$report/index.html")" = old ]
}

errors() {
	only arena && run || return
	echo old > "$report/index.html"
	broken 'Unfinished' <<< '{"tool": "twbench", "records": [' || return
	broken 'it has 0 values' < /dev/null || return
	broken 'it has 2 values' <<< '{"tool": "twbench"} {}' || return
	broken 'this is not what' <<< '[1, 2]' || return
	broken 'this is not what' <<< '{"tool": "another"}' || return
	broken 'records is no list' <<< '{"tool": "twbench", "records": 1, "memory": []}' || return
	broken 'median is no number' <<-EOF || return
	{"tool": "twbench", "memory": [], "records": [{"scheme": "submit", "operation": "add", "n": 1,
	 "unit": "instructions", "median": "12", "min": 1, "max": 1}]}
	EOF
	broken 'scheme is no string' <<-EOF
	{"tool": "twbench", "memory": [], "records": [{"operation": "add", "n": 1,
	 "unit": "instructions", "median": 12, "min": 1, "max": 1}]}
	EOF
}

# change FILE FILTER: of a file that is there.
change() {
	jq "$2" "$json/$1.json" > "$tmp/x" && mv "$tmp/x" "$json/$1.json"
}

# page_despite FILE FILTER PATTERN...: with this change, too, there is a page some time, and its text
# has these patterns.
page_despite() {
	local what="$1: $2" pattern

	only "$1" exact connections && change "$1" "$2" || return
	timeout 300 "$HERE/run" "$json" "$report" > "$tmp/out" 2> "$tmp/err" ||
		wrong "$what: status $?: $(head -n 1 "$tmp/err")" || return
	well_formed && no_scripts || wrong "$what" || return
	page_text > "$tmp/text"
	shift 2
	for pattern; do
		grep -q -e "$pattern" "$tmp/text" || wrong "$what: no $pattern" || return
	done
}

# jq writes infinity as the largest number.
odd_figures() {
	local first='.records[0].median'

	page_despite mixtures '.replays[].late_p99_ns |= (map_values(0) | .samples = [0])' \
		'late-mixtures\|how late' || return
	page_despite connections '.records[].per_second = 0' "No figures of a server's CPU" || return
	page_despite connections '.records[].per_second = -5' "No figures of a server's CPU" || return
	page_despite arena '.memory[] |= (.sum = 0 | .in_object = 0 | del(.sum_rearmed))' || return
	page_despite arena '.records[].n = 0 | .memory[].n = -1' \
		'Of arena.json , 19 figures are left out' || return
	page_despite arena "$first = 1e400" 'Of arena.json , 1 figure is left out' || return
	[ "$(grep -c '	add	wheel	1000	' "$report/figures.tsv")" = 0 ] || return
	page_despite arena "$first = 1e308 | .records[1].median = 1e-308" \
		'Of arena.json , 2 figures are left out' || return
	page_despite arena "$first = 1e15 | .records[1].median = 1e-15" || return
	page_despite arena '.records[0].min = -1e300' 'Of arena.json , 1 figure is left out' || return
	page_despite arena '.records[].median *= -1' || return
	page_despite mixtures '.replays[].cpu_percent.median = 1e300' || return
	page_despite exact '.lateness[].worst_ns = 1e300' || return
	page_despite exact '.lateness[].max_ns = 1e300' || return
	page_despite connections '.timeout = 1e300' || return
	page_despite connections '.version = {}' || return
	page_despite programs '.records[].median = 0'
}

# A name is cut, and still differs from one that begins in the same way.
long_names() {
	local long

	long=$(printf '%300s' '' | tr ' ' n)
	page_despite arena '.records[].workload |= if . == "add" then "'"$long"'" else . end' "nnn… *[0-9]" || return
	page_despite mixtures '.replays[].trace = "'"$long"'"' || return
	page_despite arena '.records[0].scheme = "'"$long"'a" | .records[1].scheme = "'"$long"'b"' || return
	[ "$(grep -c '	nnn' "$report/figures.tsv")" = 2 ] || wrong "$(cat "$report/figures.tsv")"
}

# What gnuplot cannot draw is named, and all else is there.
plot_that_fails() {
	local n

	only arena mixtures && run || return
	n=$(grep -c '<figure>' "$report/index.html")
	mkdir "$tmp/bin"
	cat > "$tmp/bin/gnuplot" <<-EOF
	#!/bin/sh
	if grep -q "label 'cancel: " "\$1"; then
		echo "this cannot be drawn" >&2
		exit 1
	fi
	exec $(command -v gnuplot) "\$@"
	EOF
	chmod +x "$tmp/bin/gnuplot"
	PATH=$tmp/bin:$PATH run || return
	page_text | grep -q 'cost-exact-cancel cannot be drawn: this cannot be drawn' || wrong "it is not named" || return
	[ "$(grep -c '<figure>' "$report/index.html")" = $((n - 1)) ] && well_formed || return
	PATH=$tmp/bin:$PATH refused 1 'cost-exact-cancel: this cannot be drawn' --plot cost-exact-cancel "$json"
}

# Names that differ by what a file's name cannot have.
like_names() {
	local name

	only mixtures || return
	change mixtures '.replays |= (map(.trace = "a b.trace") + map(.trace = "a_b.trace") + map(.trace = "a/b.trace"))'
	run && well_formed 6 || return
	for name in trade-traces-a_b trade-traces-a_b-2 trade-traces-a_b-3; do
		grep -q "id='$name-" "$report/index.html" || wrong "no plot $name" || return
	done
}

# A line in a file's name is no end of it.
strange_file_names() {
	only connections || return
	jq '.timeout = 10' "$json/connections.json" > "$json/connections
	10s.json"
	run && well_formed || return
	grep -q "id='cpu-timeout-" "$report/index.html" || wrong "the file is left out" || return
	echo '[' > "$json/connections
	10s.json"
	refused 1 'Unfinished' "$json" "$report"
}

# refused STATUS PATTERN ARGUMENT...
refused() {
	local status=$1 pattern=$2 got

	shift 2
	"$HERE/run" "$@" > "$tmp/out" 2> "$tmp/err"
	got=$?
	[ "$got" = "$status" ] && [ "$(wc -l < "$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ] &&
		grep -q -e "$pattern" "$tmp/err" && return
	wrong "$*: status $got: $(cat "$tmp/err")"
}

command_lines() {
	only arena || return
	refused 2 "there is no option --x" --x || return
	refused 2 "--plot needs a name" --plot || return
	refused 2 "usage: " a b c || return
	refused 1 "there is no plot none" --plot none "$json" || return
	refused 1 "there is no plot" --plot '../x' "$json"
}

# All schemes that there are have a line, and those that may be ahead say for whom they are right.
all_schemes() {
	local name

	cut -f 1 "$HERE/schemes.tsv" | grep -v '^#' | sort > "$tmp/known"
	{
		sed -nE 's/.*\.name[[:space:]]*= "([a-z_]+)".*/\1/p' "$TOP"/module/bench/schemes/*.c
		sed -nE 's/^\t\{ \.name = "([a-z_]+)", \.program.*/\1/p' "$TOP/tools/twbench/connections.c"
	} | sort -u > "$tmp/there"
	[ "$(wc -l < "$tmp/there")" -ge 8 ] || wrong "schemes were not found: $(cat "$tmp/there")" || return
	name=$(comm -13 "$tmp/known" "$tmp/there")
	[ ! "$name" ] || wrong "not in schemes.tsv: $name" || return
	name=$(awk -F '\t' '$2 == "other" && $6 == "" { print $1 }' "$HERE/schemes.tsv")
	[ ! "$name" ] || wrong "for whom is $name?" || return
	name=$(awk -F '\t' '!/^#/ && NF != 6 { print $1 }' "$HERE/schemes.tsv")
	[ ! "$name" ] || wrong "not six columns: $name"
}

# There is one table of features, in the documentation.
features() {
	only arena && run || return
	page_text | grep -q '^may be used in hard interrupts ' || wrong "no table of features"
}

# The plot in the README is one that this draws; how it was made is said there.
readme() {
	local svg

	svg=$(sed -n 's/.*!\[.*\](\(Documentation\/.*\.svg\)).*/\1/p' "$TOP/README.md")
	[ "$svg" ] && xmllint --noout "$TOP/$svg"
}

tap_plan 20
tap "figures" figures
tap "wins and losses" wins_and_losses
tap "what is too little CPU" little_cpu
tap "the first screen" first_screen
tap "for whom another scheme is right" for_whom
tap "the table of features" features
tap "plots are well-formed" plots
tap "labels do not overlap" labels
tap "names that are not names" hostile
tap "and their plots" well_formed
tap "a file that is missing" missing
tap "a file that is broken" errors
tap "figures that are none" odd_figures
tap "long names" long_names
tap "a plot that cannot be drawn" plot_that_fails
tap "names that are alike" like_names
tap "a file with a strange name" strange_file_names
tap "wrong command lines" command_lines
tap "all schemes are known" all_schemes
tap "the README's plot" readme
tap_end
