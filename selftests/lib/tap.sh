# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the shell tests: TAP, and the module. A process takes a tenth of a second on a slow
# kernel: what is needed often uses only shell builtins.

tap_number=0
tap_failed=0
DEBUGFS=/sys/kernel/debug
HOLDING=/tmp/holding

tap_plan() {
	echo "TAP version 13"
	echo "1..$1"
}

# tap NAME COMMAND...: a test, which passes if the command succeeds.
tap() {
	tap_name=$1
	shift
	tap_number=$((tap_number + 1))
	if "$@"; then
		echo "ok $tap_number $tap_name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_number $tap_name"
	fi
}

# tap_skip NAME REASON: a test that is skipped.
tap_skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number $1 # SKIP $2"
}

tap_end() {
	echo "# Totals: pass:$((tap_number - tap_failed)) fail:$tap_failed"
	[ "$tap_failed" = 0 ]
}

# wrong TEXT...: prints why a test fails, and returns false.
wrong() {
	echo "# $*"
	return 1
}

load() {
	modprobe twheel "$@" 2> /dev/null
}

try_unload() {
	rmmod twheel 2> /dev/null
}

# A network namespace is removed, with its rules, some time after its last process has exited. Until
# then the rules hold a reference to the module.
unload() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		read -r users 2> /dev/null < /sys/module/twheel/refcnt || break
		[ "$users" != 0 ] || break
		sleep 1
	done
	try_unload
}

is_loaded() {
	while read -r module _; do
		[ "$module" != twheel ] || return 0
	done < /proc/modules
	return 1
}

# All of the module is there (is_there), or all of it is gone (is_gone).
is_there() {
	is_loaded || wrong "not in /proc/modules" || return
	[ -c /dev/twheel ] || wrong "no /dev/twheel" || return
	for file in totals cpus levels lateness; do
		[ -r "$DEBUGFS/twheel/$file" ] || wrong "no $file in debugfs" || return
	done
}

is_gone() {
	! is_loaded || wrong "in /proc/modules" || return
	[ ! -e /dev/twheel ] || wrong "/dev/twheel is left" || return
	[ ! -e "$DEBUGFS/twheel" ] || wrong "debugfs/twheel is left" || return
	[ ! -e /sys/module/twheel ] || wrong "/sys/module/twheel is left" || return
	[ ! -e /sys/class/misc/twheel ] || wrong "the device is left" || return
}

# total NAME: prints a counter of twheel/totals in debugfs.
total() {
	while IFS=': ' read -r key value; do
		[ "$key" != "$1" ] || echo "$value"
	done < "$DEBUGFS/twheel/totals"
}

parameter() {
	read -r value < "/sys/module/twheel/parameters/$1" && echo "$value"
}

# held COMMAND...: starts a command that prints "holding" once it holds a resource, and holds it
# until it is killed. $HOLDER is its process.
held() {
	[ -p "$HOLDING" ] || mkfifo "$HOLDING"
	"$@" > "$HOLDING" &
	HOLDER=$!
	# Returns when the line is read, or the process exits.
	read -r line < "$HOLDING" && [ "$line" = holding ]
}

release() {
	kill -9 "$HOLDER"
	wait "$HOLDER" 2> /dev/null
	true
}
