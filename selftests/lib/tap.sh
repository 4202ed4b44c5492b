# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts of this directory: TAP, and the module. A process takes a tenth of a
# second on a slow kernel: what is asked often is asked with what the shell has built in.

tap_number=0
tap_failed=0
DEBUGFS=/sys/kernel/debug
HOLDING=/tmp/holding

tap_plan() {
	echo "TAP version 13"
	echo "1..$1"
}

# A test: tap NAME COMMAND... passes if the command does.
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

# tap_skip NAME REASON
tap_skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number $1 # SKIP $2"
}

tap_end() {
	echo "# Totals: pass:$((tap_number - tap_failed)) fail:$tap_failed"
	[ "$tap_failed" = 0 ]
}

# Says why a test fails, and is false.
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

# A network namespace goes some time after its programs, and takes its rules along: until then they
# keep the module.
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

# Is all of the module there, or all of it gone?
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

# A number of debugfs's totals.
total() {
	while IFS=': ' read -r key value; do
		[ "$key" != "$1" ] || echo "$value"
	done < "$DEBUGFS/twheel/totals"
}

parameter() {
	read -r value < "/sys/module/twheel/parameters/$1" && echo "$value"
}

# held COMMAND...: starts what says "holding" when it holds something, and does until it is
# killed. $HOLDER is the process.
held() {
	[ -p "$HOLDING" ] || mkfifo "$HOLDING"
	"$@" > "$HOLDING" &
	HOLDER=$!
	# Ends with the line, or with the process.
	read -r line < "$HOLDING" && [ "$line" = holding ]
}

release() {
	kill -9 "$HOLDER"
	wait "$HOLDER" 2> /dev/null
	true
}
