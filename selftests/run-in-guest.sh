#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Run all kselftests in the guest, in /twheel.  The output is for tools/check/judge.awk,
# which also says what the lines "#@" mean.
# usage: run-in-guest.sh DIRECTORY

# Longer than any program should take: the judge wants to know which one hung.
LIMIT=${LIMIT:-240}

# What the kernel has complained of since this program began.
faults() {
	dmesg | awk -v mark="twheel-test: $1 begins" \
		'index($0, mark) { found = 1 } found
		 END { if (!found) print "BUG: the kernel log lacks the mark of the test" }' |
		splat-scan
}

run() {
	name=$1
	shift
	echo "#@ begin $name"
	echo "twheel-test: $name begins" > /dev/kmsg
	"$@" < /dev/null 3<&- 2>&1
	status=$?
	faults "$name" | while read -r line; do
		echo "#@ fault $name $line"
	done
	# Whatever the program wrote last, this begins a line.
	echo
	echo "#@ end $name $status"
}

# One test, which passes if the command does.
single() {
	echo "TAP version 13"
	echo "1..1"
	if "$@"; then
		echo "ok 1 $*"
	else
		echo "not ok 1 $*"
		return 1
	fi
}

loaded() {
	grep -q '^twheel ' /proc/modules
}

in_directory() {
	(cd "selftests/${1%/*}" && exec timeout -k 5 "$LIMIT" "./${1##*/}")
}

run load single insmod twheel.ko
grep "^$1/" selftests/list > /tmp/list
while read -r program <&3; do
	loaded || insmod twheel.ko
	run "$program" in_directory "$program"
done 3< /tmp/list
loaded || insmod twheel.ko
run unload single rmmod twheel
echo "twheel-test: end" > /dev/kmsg
