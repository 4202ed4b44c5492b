#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that the programs run, and that they find a timer that is lost, fires twice, early or after
# it was cancelled. The clock of these programs is simulated; make bench-programs checks those that
# wait for a real one, before it measures them.
# usage: check.sh DIRECTORY
set -u

out=$1
run=$(cd "$(dirname "$0")" && pwd)/run
output=$(mktemp) || exit
json=$output.json
trap 'rm -f "$output" "$json"' EXIT
number=0
status=0

result() {
	local passed=$?

	number=$((number + 1))
	if [ $passed = 0 ]; then
		echo "ok $number $1"
	else
		sed 's/^/# /' "$output"
		echo "not ok $number $1"
		status=1
	fi
}

# finds FAULT MODE MESSAGE: is the fault an error, for which this is the message?
finds() {
	! FAULT=$1 "$out/broken" "$2" 100 1 > "$output" 2>&1 && grep -q "$3" "$output"
	result "$2: a timer with the fault $1 is found"
}

# Lines of a program that measures 500 timers: five operations in two orders, and the memory.
is_complete() {
	awk '
		/^[a-z_]+ 500 (random|sequential) (add|rearm_later|rearm_earlier|cancel|expire) [0-9.]+$/ {
			figures++
			next
		}
		/^[a-z_]+ 500 - bytes [0-9.]+$/ { bytes++; next }
		{ exit }
		END { exit !(figures == 10 && bytes == 1) }' "$output"
}

echo "TAP version 13"
echo "1..18"
FAULT=none "$out/broken" check 100 1 > "$output" 2>&1 && grep -q 'fired 86.000' "$output"
result "check: without a fault, 86 of 100 timers fire and 14 are cancelled"
finds lost check '1 of 86 timers have not fired'
finds twice check 'timer 26 has fired 2 times'
finds early check 'timer 26 has fired [0-9]* ns early'
finds late-cancel check 'timer 27 was cancelled, and has fired'
finds lost measure 'timer 26 has fired 0 times'
finds twice measure 'timer 26 has fired 2 times'
finds late-cancel measure 'after cancel, timer 27 is pending'

"$out/wheel" check 1000 1 > "$output" 2>&1 && grep -q 'fired 858.000' "$output" &&
	grep -q 'early 0.000' "$output"
result "check: the wheel fires each timer once, and none early"
"$out/wheel" measure 500 1 > "$output" 2>&1 && is_complete
result "measure: all figures of the wheel"
"$out/limit" measure 500 1 > "$output" 2>&1 && is_complete
result "measure: all figures of the limit line"

FAULT=few "$out/broken" measure 1000 1 > "$output" 2>&1 && is_complete
result "measure: with half as many timers as wanted, that is their number"

"$out/wheel" measure 0 1 > "$output" 2>&1
[ $? = 2 ]
result "a wrong command line is refused"
echo "wheel 500 random add fast" | "$out/report" > "$output" 2>&1
[ $? = 1 ] && grep -q 'line 1 is no figure' "$output"
result "report: a line that is no figure is an error"
printf 'wheel 5 random add %s\n' 2 4 3 | "$out/report" --json - > "$output" 2>&1 &&
	grep -q '"median": 3.000, "min": 2.000, "max": 4.000, "x_wheel": 1.000' "$output"
result "report: the median of the rounds"

# refuses LIST PEER: there is no such peer.
refuses() {
	"$run" --peers "$1" --check > "$output" 2>&1
	[ $? = 2 ] && [ "$(cat "$output")" = "run: there is no peer $2" ]
}

refuses nosuch nosuch && refuses limit,../../x ../../x && refuses limit,,wheel "" && refuses all all &&
	refuses $'limit\nwheel' 'limit?wheel' && refuses '*' '*' && refuses "wheel " "wheel "
result "run: a peer that there is not"
"$run" --peers "" --check > "$output" 2>&1
[ $? = 2 ] && grep -q '^run: there is no peer $' "$output"
result "run: no peer"
"$run" --peers limit,wheel,limit --timers 500 --rounds 1 --json "$json" > "$output" 2>&1 &&
	[ "$(jq -c '[.records[] | select(.operation == "add" and .order == "random") | [.peer, (.samples | length)]]' \
		"$json")" = '[["limit",1],["wheel",1]]' ]
result "run: a peer that is named twice is measured once"
exit $status
