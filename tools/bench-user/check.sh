#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that the benchmark runs. It fails if a timer is lost or fires twice.
# usage: check.sh PROGRAM
set -u

json=$(mktemp) || exit
trap 'rm -f "$json"' EXIT
status=0

result() {
	if [ "$1" = 0 ]; then
		echo "ok $2"
	else
		echo "not ok $2"
		status=1
	fi
}

echo "TAP version 13"
echo "1..3"
"$1" -n 1000 -r 2 --json "$json" | sed 's/^/# /'
[ "$(grep -c '"scheme"' "$json")" = 6 ]
result $? "1 every timer of every workload is accounted for"
"$1" -n 0 2> /dev/null
[ $? = 2 ]
result $? "2 a wrong command line is refused"
"$1" -n 1000 -r 1 > /dev/full 2> "$json"
[ $? = 1 ] && grep -q 'standard output: ' "$json"
result $? "3 a full disk is an error"
exit $status
