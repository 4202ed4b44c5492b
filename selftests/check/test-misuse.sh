#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a debugging kernel reports about modules that misuse the in-kernel API; and nothing about one
# that uses it properly.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

# shellcheck disable=SC2016 # the guest's shell expands these
guest='
	set -e
	insmod twheel.ko
	for how in nothing armed-is-freed armed-is-initialised not-initialised \
		   cancelled-not-initialised unknown-on-stack in-hard-interrupt end; do
		echo "twheel-misuse: $how begins" > /dev/kmsg
		[ $how != end ] || break
		modprobe twheel_misuse how=$how
		rmmod twheel_misuse
	done
	! modprobe twheel_misuse how=unknown
	rmmod twheel'

# said HOW: the kernel's log from the beginning of this one to that of the next.
said() {
	awk -v how="twheel-misuse: $1 begins" '
		/twheel-misuse: / { inside = index($0, how) != 0; found += inside }
		inside
		END { exit !found }' "$tmp/log"
}

# reported HOW PATTERN: was the first fault that it found the expected one?
reported() {
	said "$1" > "$tmp/output" &&
		"$TOP/selftests/vm/splat-scan" < "$tmp/output" > "$tmp/faults"
	head -n 1 "$tmp/faults" | grep -E "$2" > /dev/null
}

# The status is that of a kernel that has found a fault, and of a guest that has run to its end.
"$TOP/selftests/vm/run" --simulate --kernel debug --shift 0 --timeout 1800 --log "$tmp/log" -- \
	"$guest" > "$tmp/output" 2>&1
[ $? = 125 ] && said end > /dev/null
ok "all was tried, and the machine has survived it"
said nothing > "$tmp/output" && "$TOP/selftests/vm/splat-scan" < "$tmp/output" > "$tmp/faults"
ok "a module that does as it should"
reported armed-is-freed 'ODEBUG: free active .* object type: twheel_timer hint: do_nothing'
ok "an armed timer is freed"
reported armed-is-initialised 'ODEBUG: init active .* object type: twheel_timer'
ok "an armed timer is initialised"
reported not-initialised 'ODEBUG: assert_init not available .* object type: twheel_timer'
ok "a timer is armed that was not initialised"
reported cancelled-not-initialised \
	'ODEBUG: assert_init not available .* object type: twheel_timer'
ok "a timer is cancelled that was not initialised"
reported unknown-on-stack 'ODEBUG: object .* is on stack .* but NOT annotated'
ok "a timer on the stack is initialised as one that is not"
reported in-hard-interrupt 'WARNING: .* twheel_rearm\+'
ok "a timer is armed in a hard interrupt"
finish
