#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The runner's own tests: results get through, and no way of going wrong is a success.

set -u
. "$(dirname "$0")/../paths.sh"

mkdir -p "$BUILD"
tmp=$(mktemp -d "$BUILD/runner.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
number=0

ok() {
	local status=$?

	number=$((number + 1))
	if [ $status = 0 ]; then
		echo "ok $number $1"
	else
		sed 's/^/# /' "$tmp/output"
		echo "not ok $number $1"
	fi
}

# Expect a status of a run; its output is in $tmp/output.
expect() {
	local name=$1 status=$2

	shift 2
	"$TOP/tools/vm/run" "$@" > "$tmp/output" 2>&1
	[ $? = "$status" ]
	ok "$name"
}

echo "TAP version 13"

# shellcheck disable=SC2016 # the guest's shell expands these
expect "status of the command" 7 --out "$tmp/out" -- sh -c '
	uname -r
	echo "$1"
	insmod twheel.ko && rmmod twheel || exit 1
	su user -c id || exit 1
	echo back > /out/file
	exit 7' sh "it's \"one\" argument"
grep -qxF "it's \"one\" argument" "$tmp/output"
ok "arguments and output get through"
grep -q 'uid=1000(user)' "$tmp/output"
ok "another user"
[ "$(cat "$tmp/out/file")" = back ]
ok "files come back"

expect "warning of the kernel" 125 -- \
	'echo "<4>WARNING: CPU: 0 PID: 1 at nowhere" > /dev/kmsg'
# shellcheck disable=SC2016 # the guest's shell expands these
expect "warning while a test runs" 125 -- '
	mkdir selftests/own
	for name in good bad; do
		printf "%s\n" "#!/bin/sh" "echo TAP version 13; echo 1..1; echo ok 1 $name" \
			> selftests/own/$name
		echo own/$name
	done > selftests/list
	echo "echo \"<4>WARNING: CPU: 0 PID: 1 at nowhere\" > /dev/kmsg" >> selftests/own/bad
	chmod +x selftests/own/*
	selftests/run-in-guest.sh own'
grep -q '^#@ fault own/bad .*WARNING:' "$tmp/output" &&
	! grep -q '^#@ fault own/good' "$tmp/output"
ok "it is charged to that test"
expect "kernel that panics" 125 -- 'echo c > /proc/sysrq-trigger'
expect "guest that ends early" 126 -- 'reboot -f'
expect "guest that hangs" 124 --timeout 15 -- 'sleep 1000'
expect "kernel that does not exist" 122 --kernel ./nowhere -- true
expect "QEMU that does not start" 122 --mem 1 --smp none -- true
echo "1..$number"
