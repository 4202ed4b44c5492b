#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests what needs no module: "twbench compare", with runs that never were, and whose answers are
# known; that the last runs are kept; traces, and the command lines about them, of which
# selftests/cli/bench_replay.sh tests the rest. Prints TAP.
# usage: check.sh TWBENCH CHECK
set -u

TOP=$(cd "$(dirname "$0")/../.." && pwd)
CHECK=$(realpath "$2")
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
. "$TOP/selftests/lib/tap.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit

# run MEMBER=VALUE...: prints the JSON of a run, with the given members at its top. Each line of
# input is a figure: n, order, workload, scheme, samples.
run() {
	local member lane=exact kernel=6.12 cpu_model=QEMU seed=1

	for member; do
		local "$member"
	done
	awk -v lane="$lane" -v kernel="$kernel" -v cpu_model="$cpu_model" -v seed="$seed" '
	BEGIN {
		printf "{\"tool\": \"twbench\", \"version\": \"1\", \"kernel\": \"%s\", ", kernel
		printf "\"cpu_model\": \"%s\", \"lane\": \"%s\", ", cpu_model, lane
		printf "\"seed\": %s, \"records\": [", seed
	}
	{
		printf "%s\n{\"n\": %s, \"order\": \"%s\", ", (NR > 1 ? "," : ""), $1, $2
		printf "\"workload\": \"%s\", \"scheme\": \"%s\", \"samples\": [", $3, $4
		for (i = 5; i <= NF; i++)
			printf "%s%s", (i > 5 ? ", " : ""), $i
		printf "]}"
	}
	END { print "\n]}" }'
}

# The run that most tests compare with.
base() {
	cat <<-EOF
		1000 random add wheel 50 51 50 49 50
		1000 random add timer_list 100 100 101 99 100
		1000 random rearm_later wheel 20 20 20.1 20 19.9
		1000 random rearm_later timer_list 40 40 40.1 40 39.9
		1000 random rmw limit 6 6 6 6 6
	EOF
}

# times FACTOR WORDS: multiplies the samples of the figures that contain WORDS.
times() {
	awk -v factor="$1" -v words="$2" '
	index($0, words) {
		for (i = 5; i <= NF; i++)
			$i *= factor
	}
	{ print }'
}

# compares STATUS OPTION...: before and after are compared with this status and no message.
compares() {
	local status=$1

	shift
	twbench compare before after "$@" > out 2> err
	set -- "$status" $?
	[ "$1" = "$2" ] || wrong "status $2: $(cat out err)" || return
	[ ! -s err ] || wrong "$(cat err)"
}

# says PATTERN...: each matches a line of the output.
says() {
	local pattern

	for pattern; do
		grep -qE -- "$pattern" out || wrong "no '$pattern' in: $(cat out)" || return
	done
}

found() {
	says "^Of $1 figures, $2 are slower beyond noise and $3 faster\. "
}

# complaint STATUS TEXT COMMAND...: it prints this one line of error, or the beginning of it.
complaint() {
	local status=$1 text=$2

	shift 2
	"$@" > out 2> err
	set -- "$status" $? "$*"
	[ "$1" = "$2" ] || wrong "$3: status $2: $(cat err)" || return
	[ "$(wc -l < err)" = 1 ] || wrong "$3: not one line: $(cat err)" || return
	[[ $(cat err) == "twbench: $text"* ]] || wrong "$3: $(cat err)"
}

equal() {
	base | run > before
	cp before after
	compares 0 && found 2 0 0 && ! grep -q limit out && compares 0 --absolute && found 5 0 0
}

slower() {
	base | times 1.05 'rearm_later wheel' | run > after
	compares 1 && found 2 1 0 &&
		says '^rearm_later +wheel +0\.500 +0\.525 +\+5\.0 .* slower$' \
			'^add +wheel +0\.500 +0\.500 +\+0\.0 .*[0-9]$' &&
		compares 1 --fail 4.9% && says '^Slower by 4\.9 % or more: 1\.$' &&
		compares 0 --fail 5.1 && found 2 1 0 && ! grep -q '^Slower' out &&
		compares 1 --absolute &&
		says '^rearm_later +wheel +20\.0 +21\.0 +\+5\.0 .* slower$'
}

# What is shown as +5.0 is 5 %.
just_slower() {
	base | times 1.0496 'rearm_later wheel' | run > after
	compares 1 --fail 5% && says '^rearm_later .* \+5\.0 .* slower$' || return
	base | times 1.0494 'rearm_later wheel' | run > after
	compares 0 --fail 5% && says '^rearm_later .* \+4\.9 .* slower$'
}

faster() {
	base | times 0.9 'rearm_later wheel' | run > after
	compares 0 && found 2 0 1 && says '^rearm_later +wheel +0\.500 +0\.450 +-10\.0 .* faster$'
}

# Two runs of a build may differ by this much without any of them showing it.
small() {
	base | times 1.015 'rearm_later wheel' | run > after
	compares 0 && found 2 0 0 && compares 1 --fail 1% && found 2 1 0
}

# A machine that is slower in all respects: only the times are.
slower_machine() {
	base | times 1.5 '' | run > after
	compares 0 && found 2 0 0 && compares 1 --absolute && found 5 5 0
}

# Rounds in which something else ran, too: the times are noise, and the ratios are as good as ever.
shared_noise() {
	base | awk '{ $7 *= 3; $9 *= 2; print }' | run > before
	base | times 1.05 'rearm_later wheel' | awk '{ $5 *= 2; $6 *= 4; print }' | run > after
	compares 1 && found 2 1 0 && compares 0 --absolute && found 5 0 0
}

# noisy SEED NOISE ROUNDS FIGURES [FACTOR]: prints figures with noise that is about normal, and
# multiplies the wheel's by FACTOR.
noisy() {
	awk -v random="$1" -v noise="$2" -v rounds="$3" -v figures="$4" -v factor="${5-1}" '
	# The "minimal standard" of Park and Miller, which awk can compute without rounding.
	function draw() {
		random = random * 16807 % 2147483647
		return random / 2147483647
	}
	function value(middle,    sum, i) {
		for (i = 0; i < 12; i++)
			sum += draw()
		return middle * (1 + noise * (sum - 6))
	}
	BEGIN {
		for (i = 0; i < 100; i++)
			draw()
		for (i = 0; i < figures; i++) {
			line = ""
			reference = ""
			for (j = 0; j < rounds; j++) {
				line = line " " value(100 * factor)
				reference = reference " " value(200)
			}
			print 1000 + i, "random add wheel" line
			print 1000 + i, "random add timer_list" reference
		}
	}'
}

# false_alarms ROUNDS: of 40 comparisons of runs that differ by noise alone, in 30 figures, how many
# find a change, however small? With 95 % confidence, these should be two or so.
false_alarms() {
	local i alarms=0

	for ((i = 1; i <= 40; i++)); do
		noisy $((i * 2)) 0.03 "$1" 30 | run > before
		noisy $((i * 2 + 1)) 0.03 "$1" 30 | run > after
		twbench compare before after --fail 0 > out
		found 30 '[0-9]+' '[0-9]+' || return
		grep -q ' 0 are slower beyond noise and 0 faster\.' out || alarms=$((alarms + 1))
	done
	[ $alarms -le 4 ] || wrong "$1 rounds: $alarms of 40"
}

noise() {
	false_alarms 2 && false_alarms 3 && false_alarms 5 && false_alarms 9
}

# Noise must not hide everything, either: all of 30 figures are 5 % slower, more or less.
beyond_noise() {
	noisy 1 0.007 9 30 | run > before
	noisy 2 0.007 9 30 1.05 | run > after
	compares 1 && found 30 30 0 || return
	noisy 3 0.1 9 30 1.05 | run > after
	compares 0 && found 30 0 0
}

# coarse STEP: samples in multiples of STEP, so that those of a figure are equal now and then.
coarse() {
	awk -v step="$1" '{ for (i = 5; i <= NF; i++) $i = int($i / step + 0.5) * step; print }'
}

# Samples that happen to be equal do not show that there is no noise: those of other figures do.
equal_samples() {
	local i rounds alarms

	for rounds in 2 3; do
		alarms=0
		for ((i = 1; i <= 40; i++)); do
			noisy $((i * 2)) 0.03 $rounds 30 | coarse 4 | run > before
			noisy $((i * 2 + 1)) 0.03 $rounds 30 | coarse 4 | run > after
			twbench compare before after --fail 0 > out
			found 30 '[0-9]+' '[0-9]+' || return
			grep -q ' 0 are slower beyond noise and 0 faster\.' out || alarms=$((alarms + 1))
		done
		[ $alarms -le 4 ] || wrong "$rounds rounds: $alarms of 40" || return
	done
	# Where none has any noise, a change is one; but not to the last digit.
	noisy 1 0 2 36 | run > before
	noisy 1 0 2 36 1.05 | head -n 2 > first
	(cat first && noisy 1 0 2 36 | tail -n +3) | run > after
	compares 1 && found 36 1 0 && says ' \+5\.0 +\+[234]\.[0-9] to +\+[678]\.[0-9]  slower$' || return
	(noisy 1 0 2 36 1.02 | head -n 2 && noisy 1 0 2 36 | tail -n +3) | run > after
	compares 0 && found 36 0 0
}

# Two rounds of times say nothing. Where instructions are counted, they do.
few_rounds() {
	local two='1000 random add wheel 50 50
		1000 random add timer_list 100 100'
	local more='1000 random cancel wheel 50 51 50
		1000 random cancel timer_list 100 100 101'

	run lane=native <<< "$two" > before
	times 1.5 wheel <<< "$two" | run lane=native > after
	complaint 2 "no figure has three rounds in both runs; use --rounds 5" \
		twbench compare before after || return
	run lane=native <<< "$two
$more" > before
	times 1.5 wheel <<< "$two
$more" | run lane=native > after
	compares 1 && found 1 1 0 && says '^add +wheel .* -  two samples$' '^Not judged, .*: 1; ' || return
	run <<< "$two" > before
	times 1.5 wheel <<< "$two" | run > after
	compares 1 && found 1 1 0
}

# If 1 to 5 are resampled, the median is 1, 2, 3, 4, 5 with probabilities of 0.058, 0.260, 0.365,
# 0.260, 0.058 (binomials), so its variance is 0.98; times 5/4, and for both runs, 2.46. Student's t
# for eight degrees of freedom is 2.306. So, in steps of 1 %, the interval is 3.6 % to either side of
# 0 %, or rather, as these are logarithms, 3.5 % to one side and 3.7 % to the other.
known_interval() {
	echo "1000 random add wheel 9800 10200 10000 9900 10100" | run > before
	cp before after
	compares 0 --absolute && says '\+0\.0 +-3\.[56] to +\+3\.[67]$'
}

# Of two middle values the lower one, as in the tables of a run.
median() {
	echo "1000 random add wheel 40 10 30 20" | run > before
	echo "1000 random add wheel 41 42 43 44" | run > after
	compares 0 --absolute && says '^add +wheel +20\.0 +42\.0 '
}

same_each_time() {
	noisy 1 0.03 5 30 | run > before
	noisy 2 0.03 5 30 1.05 | run > after
	twbench compare before after > first
	twbench compare before after > second
	[ -s first ] && cmp first second
}

missing() {
	base | run > before
	base | grep -v 'add wheel' | run > after
	compares 0 && found 1 0 0 && says '^Only in before: add of wheel with n = 1000\.$' || return
	base | sed '/add/s/1000/2000/' | run > after
	compares 0 && found 1 0 0 &&
		says '^Only in before: add of wheel with n = 1000, and 1 more\.$' \
			'^Only in after: add of wheel with n = 2000, and 1 more\.$'
}

nothing_in_common() {
	base | run > before
	base | sed 's/1000/2000/' | run > after
	complaint 2 "before and after have no figures in common" twbench compare before after || return
	base | grep -v timer_list | run > after
	complaint 2 "timer_list was not measured in both runs; --absolute " \
		twbench compare before after || return
	compares 0 --absolute && found 3 0 0 || return
	base | grep -v 'add timer_list' | run > after
	compares 0 && found 1 0 0 && says '^Not compared, .* timer_list .*: 1; --absolute '
}

one_round() {
	base | run > before
	base | awk '/add/ { NF = 5 } /later wheel/ { $5 *= 2 } { print }' | run > after
	compares 0 && found 1 0 0 && says '^add +wheel +0\.500 +0\.500 +\+0\.0 +- +one sample$' \
		'^Not judged, .*: 1; ' || return
	base | awk '{ NF = 5; print }' | run > after
	complaint 2 "no figure has two rounds in both runs; " twbench compare before after
}

# bad TEXT COMMAND...: what COMMAND prints is refused.
bad() {
	local text=$1

	shift
	"$@" > after
	complaint 2 "after: $text" twbench compare before after || return
	grep -q -e "compare reads what" -e "measure" err || wrong "no advice: $(cat err)"
}

bad_files() {
	base | run > before
	complaint 2 "/dev/zero: too large" twbench compare before /dev/zero || return
	bad "empty; " true &&
		bad "line 1: " echo nonsense &&
		bad "line 3: " sed '3s/]/,]/' before &&
		bad "line 7: " sed 's/^]}/&x/' before &&
		bad "the file ends in the middle; " head -n 3 before &&
		bad 'has no "tool"; ' echo '[1]' &&
		bad "written by bench-user; " sed 's/twbench/bench-user/' before &&
		bad 'has no "lane"; ' sed 's/"lane"/"lame"/' before &&
		bad "has no records; " sed 's/"records"/"record"/' before &&
		bad "has no records; " eval 'run < /dev/null' &&
		bad "record 2 is not of a scheme, " sed '3s/scheme/schema/' before &&
		bad "record 2 is not of a scheme, " sed '3s/1000/-1/' before &&
		bad "record 2 has no samples; " sed '3s/samples/sample/' before &&
		bad "record 2 has no samples; " sed '3s/\[.*\]/[]/' before &&
		bad "record 2 has a sample that " sed '3s/99/0/' before &&
		bad "record 2 has a sample that " sed '3s/99/"x"/' before &&
		bad "record 2 has a sample that " sed '3s/99/"99"/' before &&
		bad "record 2 has a sample that " sed '3s/99/true/' before &&
		bad "record 2 has a sample that " sed '3s/99/9e-7/' before &&
		bad "record 2 has a sample that " sed '3s/99/1.1e15/' before &&
		bad "record 2 has a sample that " sed '3s/99/1e308/' before &&
		bad "memory 1 has a sum beyond " eval "sed 's/^]}/], \"memory\": [{\"sum\": 1e300}]}/' before" &&
		bad "line 8: a NUL; " eval 'cat before && printf "\\0" && echo more' &&
		bad "line 1: a NUL; " printf '\0' &&
		bad 'has no "tool"; ' echo null &&
		bad 'has no "tool"; ' printf 1 &&
		bad 'has no "tool"; ' echo '"x"' &&
		bad "record 3 is of 'twbench api', and others are not; " sed '4s/workload/operation/' before &&
		bad "record 3 is of 'twbench api', and others are not; " \
			sed '4s/workload/operation": "x", "&/' before &&
		bad "record 2 is not of 'twbench api', and others are; " sed '2s/workload/operation/' before &&
		bad "record 2 has a sample that " sed '3s/99/NaN/' before &&
		bad "record 2 has a sample that " sed '3s/99/Infinity/' before &&
		bad "add of wheel with n = 1000 is there twice; " sed '3s/timer_list/wheel/' before ||
		return
	complaint 2 "nowhere: No such file" twbench compare before nowhere &&
		complaint 2 ".: Is a directory" twbench compare . before
}

# Names come from files that others may have written: a terminal obeys none of them.
strange_names() {
	local what

	base | sed 's/add/a\\u001b[2Jd\\u009bd/; s/ wheel/ whe\\nel/' | run version='1' kernel='6\u0007' |
		sed 's/"version": "1"/"version": "1\\u001b"/; s/QEMU/QE\\tMU/' > before
	sed 's/QE/qe/; s/u0007/u0008/; s/"seed": 1/"seed": 2/' before > after
	twbench compare before after > out 2>&1 || wrong "$(cat out)" || return
	says '^a\?\[2Jd\?d +whe\?el ' 'kernel 6\?,' 'processor differs, .*: QE\?MU, qe\?MU' || return
	what=$(printf 'a\033\nb')
	{
		sed 's/exact/ex\\u001bact/' before > after
		twbench compare before after
		sed 's/"tool": "twbench"/"tool": "\\u001b"/' before > after
		twbench compare before after
		twbench compare before "$what"
		cp before "$what"
		twbench compare before "$what"
		twbench compare before before "$what"
		twbench compare before before --fail "$what"
	} >> out 2>&1
	says '^twbench: after: written by \?' '^twbench: a\?\?b: No such file' '^after  a\?\?b: ' || return
	! LC_ALL=C grep -n '[[:cntrl:]]' out | cat -v | sed 's/^/# /' | grep .
}

other_machine() {
	base | run > before
	base | run kernel=6.1 > after
	complaint 0 "warning: the kernel differs, which may be what has changed the figures: 6.12, 6.1" \
		twbench compare before after || return
	base | run cpu_model=other > after
	complaint 0 "warning: the processor differs, " twbench compare before after || return
	base | run seed=18446744073709551615 > after
	complaint 0 "warning: the seeds differ, and so do the timeouts and orders: 1, 184467440737095" \
		twbench compare before after || return
	base | run lane=native > after
	complaint 2 "the lanes differ: exact and native; " twbench compare before after
}

api() {
	local line='1000 random add submit 50 50 51 50 50
1000 random rearm_later timerfd 100 101 100 100 100'

	run <<< "$line" | sed 's/workload/operation/; s/"order": "random", //' > before
	times 1.05 submit <<< "$line" | run | sed 's/workload/operation/' > after
	compares 1 && found 1 1 0 && says '^add +submit +0\.500 +0\.525 +\+5\.0 .* slower$' || return
	run <<< "$line 100" | sed 's/workload/operation/' > before
	awk '/add/ { NF = 5 } { print }' <<< "$line" | run | sed 's/workload/operation/' > after
	complaint 2 "no figure has two rounds" twbench compare before after || return
	compares 0 --absolute && found 1 0 0 && says '^Not judged, .*: 1\.$' || return
	base | run > after
	complaint 2 "only before was written by 'twbench api'; " twbench compare before after
}

# Memory is shown, and changes no status.
memory() {
	local with='s/^]}$/], "memory": [{"scheme": "wheel", "timer": "handle", "n": 5, "sum": 40.0},'
	with+='{"scheme": "wheel", "timer": "embedded", "n": 5, "sum": 50.0, "sum_rearmed": 60.0}]}/'

	base | run | sed "$with" > before
	base | run | sed "$with; s/ 40.0/ 50.0/; s/, .sum_rearmed.: 60.0//" > after
	compares 0 && says '^sum +wheel handle +5 +40\.0 +50\.0 +\+25\.0$' \
		'^sum +wheel embedded +5 +50\.0 +50\.0 +\+0\.0$' || return
	! grep rearmed out || return
	base | run > after
	compares 0 && ! grep memory out
}

command_line() {
	base | run > before
	cp before after
	complaint 2 "compare takes two files: " twbench compare &&
		complaint 2 "compare takes two files: " twbench compare before &&
		complaint 2 "compare takes two files, and 'more' is one more" \
			twbench compare before after more &&
		complaint 2 "--fail 'x' is not a percentage" twbench compare before after --fail x &&
		complaint 2 "--fail '5%%' is not a percentage" twbench compare before after --fail 5%% &&
		complaint 2 "--fail '-1' is not a percentage" twbench compare before after --fail -1 &&
		complaint 2 "compare has to come before any options" twbench -r 1 compare before after ||
		return
	twbench compare --none before after > out 2> err
	[ $? = 2 ] || wrong "an unknown option: $(cat err)" || return
	twbench compare --help > out && says '--absolute' '--fail=PERCENT' || return
	twbench compare - after < before > out && says '^before -: '
}

full_disk() {
	base | run > before
	cp before after
	complaint 2 "standard output: " eval 'twbench compare before after > /dev/full'
}

# The man page has exactly the options that --help lists; and all mixtures and their numbers.
man_page() {
	local page=$TOP/Documentation/man/twbench.1.scd word

	diff <({ twbench --help; twbench compare --help; twbench mix --help; } |
		sed -nE 's/^ +(-., )?(--[a-z]+).*/\2/p' | sort -u) \
		<(sed -nE 's/^\*(-.\*, \*)?(--[a-z]+)\*.*/\2/p' "$page" | sort -u) | sed 's/^/# /'
	[ "${PIPESTATUS[0]}" = 0 ] || return
	for word in $(twbench mix | sed -n 's/^\([a-z_]*\): .*/\1/p') \
		$(twbench mix | grep '^ ' | grep -oE '[a-z_]+=' | tr -d =); do
		grep -q "\*$word\*" "$page" || wrong "no $word in the man page" || return
	done
}

# keep NUMBER: a run is kept as this one.
keep() {
	echo "run $1" > bench/exact.json
	"$TOP/tools/keep-run" bench/exact.json > out || return
	[ "$(cat "bench/exact.$1.json")" = "run $1" ] || wrong "run $1: $(ls bench)"
}

keeps_runs() {
	local i command='^ +build/tools/twbench compare'

	mkdir bench
	touch bench/{exact.csv,exact.x.json,exact.1.csv,other.7.json}
	keep 1 && ! grep -q compare out || return
	for ((i = 2; i <= 12; i++)); do
		keep $i && says "$command bench/exact\.$((i - 1))\.json bench/exact\.$i\.json$" || return
	done
	[ "$(cd bench && echo exact.*.json)" = "$(
		echo exact.{10,11,12,3,4,5,6,7,8,9,x}.json)" ] || wrong "$(ls bench)" || return
	[ "$(cd bench && echo exact.csv exact.1.csv other.*)" = "exact.csv exact.1.csv other.7.json" ] ||
		wrong "$(ls bench)" || return
	! "$TOP/tools/keep-run" bench/nowhere.json 2> err
}

# The unit tests.
traces() {
	"$CHECK" "$tmp" > out 2>&1
	set -- $?
	sed 's/^/# /' out
	return "$1"
}

trace_command_lines() {
	complaint 2 "no mixture 'none'; there are: connections rpc" twbench mix none &&
		complaint 2 "--set x=1: a mixture has no such number" twbench mix rpc --set x=1 &&
		complaint 2 "--set length=10: not a time" twbench mix rpc --set length=10 &&
		complaint 2 "--set silent=101: not a share" twbench mix rpc --set silent=101 &&
		complaint 2 "--set silent=nan: not a share" twbench mix rpc --set silent=nan &&
		complaint 2 "rpc: timeout_max is less than timeout_min" \
			twbench mix rpc --set timeout_min=2s &&
		complaint 2 "rpc: its length is not" twbench mix rpc --set length=2h &&
		complaint 2 "rpc: next_max is nothing" \
			twbench mix rpc --set next_min=0 --set next_max=0 &&
		complaint 2 "retry: backoff is less than 1" twbench mix retry --set backoff=0.5 &&
		complaint 2 "--events is a list of timer, " twbench record x --events timer,timr &&
		complaint 2 "--events is a list of timer, " twbench record x --events timer, &&
		complaint 2 "replay needs a file" twbench replay &&
		complaint 2 "record needs a file" twbench record &&
		complaint 2 "--speed goes with replay" twbench mix rpc --speed 2 &&
		complaint 2 "--set and --write go with mix" twbench replay x --set length=1s &&
		complaint 2 "--write takes one mixture" twbench mix rpc cache --write x &&
		complaint 2 "--json does not go with --write" twbench mix rpc --write x --json y &&
		complaint 2 "--json does not go with record" twbench record x --json y &&
		complaint 2 "--scheme does not go with record" twbench record x -s heap &&
		complaint 2 "--lane does not go with --write" \
			twbench mix rpc --write x --lane guest &&
		complaint 2 "--margin does not go with --write" twbench mix rpc --write x --margin 9 &&
		complaint 2 "replay has to come before any options" twbench -r 1 replay x &&
		complaint 1 "none: No such file" twbench replay none
}

# What is changed on the command line is in the trace.
settings() {
	twbench mix rpc -n 100 --write a &&
		twbench mix rpc -n 100 --set length=4000ms --write b &&
		twbench mix rpc -n 100 --set pause_min=4s --write c &&
		twbench mix rpc -n 100 --seed 2 --write d || return
	cmp a b && ! cmp -s a c && ! cmp -s a d
}

no_traces() {
	printf 'TWTRACE' > short
	complaint 1 "short: this is no trace" twbench replay short &&
		complaint 1 "$TOP/VERSION: this is no trace" twbench replay "$TOP/VERSION" &&
		complaint 1 "/dev/zero: this is no trace" twbench replay /dev/zero &&
		complaint 1 ".: Is a directory" twbench replay . || return
	twbench mix storm -n 10 --write a || return
	(cat a && echo) > longer
	complaint 1 "longer: a damaged trace" twbench replay longer || return
	head -c -1 a > "cut"
	complaint 1 "cut: a damaged trace" twbench replay cut || return
	printf '\2' | dd of=a bs=1 seek=8 conv=notrunc 2> /dev/null
	complaint 1 "a: a trace of a version that is not known" twbench replay a
}

# The traces that come with it, which refuse to be replayed only for lack of a device, if any.
recorded() {
	local trace

	for trace in "$TOP"/tools/twbench/traces/*.trace; do
		twbench replay "$trace" > out 2>&1
		! grep "$trace" out || wrong "$trace is refused" || return
	done
	[ -e "$trace" ]
}

# What was there stays until all of a trace has been written, and nothing else is left beside it. A
# file that cannot be written is found before anything is recorded.
whole_files() {
	mkdir whole
	twbench mix storm -n 10 --write whole/keep && cp whole/keep good || return
	complaint 1 "whole/keep: File too large" \
		eval '(ulimit -f 8; exec twbench mix connections -n 10k --write whole/keep)' || return
	cmp good whole/keep && [ "$(ls whole)" = keep ] || wrong "$(ls whole)" || return
	complaint 1 "nowhere/x: No such file" twbench record nowhere/x --seconds 3600 &&
		complaint 1 "nowhere/x: No such file" twbench mix storm -n 10 --write nowhere/x || return
	! twbench record whole/keep --events none > out 2>&1 || return
	cmp good whole/keep && [ "$(ls whole)" = keep ] || wrong "$(ls whole)" || return
	# Its mode, and what a link is to.
	chmod 640 whole/keep
	ln -s keep whole/link
	twbench mix rpc -n 10 --write whole/link && [ -L whole/link ] && ! cmp -s good whole/keep || return
	[ "$(stat -c %a whole/keep)" = 640 ] || wrong "$(ls -l whole)" || return
	(umask 027 && twbench mix storm -n 10 --write whole/new) &&
		[ "$(stat -c %a whole/new)" = 640 ] || wrong "$(ls -l whole)" || return
	twbench mix storm -n 10 --write /dev/stdout | cmp - good &&
		complaint 1 "/dev/full: No space left" twbench mix storm -n 10 --write /dev/full &&
		[ -c /dev/full ]
}

tap_plan 32
tap "equal runs" equal
tap "5 % slower" slower
tap "just 5 % slower" just_slower
tap "faster" faster
tap "less than two runs differ by" small
tap "a slower machine" slower_machine
tap "noise that all schemes share" shared_noise
tap "noise is not taken for a change" noise
tap "samples that happen to be equal" equal_samples
tap "few rounds" few_rounds
tap "a change beyond noise" beyond_noise
tap "an interval that can be computed by hand" known_interval
tap "the median" median
tap "the same output each time" same_each_time
tap "a figure that one run does not have" missing
tap "nothing to compare" nothing_in_common
tap "one round only" one_round
tap "files that are not runs" bad_files
tap "names that are not names" strange_names
tap "another machine" other_machine
tap "runs of twbench api" api
tap "memory" memory
tap "the command line" command_line
tap "a full disk" full_disk
tap "traces are generated, prepared, written and read" traces
tap "wrong command lines about traces" trace_command_lines
tap "numbers of a mixture" settings
tap "files that are not traces" no_traces
tap "traces are written as a whole" whole_files
tap "the traces that come with it" recorded
tap "the man page has all options" man_page
tap "the last ten runs are kept" keeps_runs
tap_end
