#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The judge's own tests, and those of what is reported to it about the kernel: it must see
# through every way of not passing.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

echo 'g p may be skipped' > "$tmp/allowed"
echo p > "$tmp/repeatable"

# A program's log: lines and an exit status.
log() {
	echo "#@ begin p"
	printf '%s\n' "${@:1:$#-1}"
	echo "#@ end p ${!#}"
}

# The judge's verdict on a log, which is given as for log(), or in $tmp/log.
expect() {
	local name=$1 counts=$2 got

	shift 2
	[ $# = 0 ] || log "$@" > "$tmp/log"
	: > "$tmp/counts"
	awk -f "$TOP/selftests/check/judge.awk" -v guest=g -v counts="$tmp/counts" \
		-v allowed="$tmp/allowed" -v repeatable="$tmp/repeatable" \
		-v expected="$programs" \
		"$tmp/log" > "$tmp/report"
	got=$(cat "$tmp/counts")
	{ echo "'$got' instead of '$counts'"; cat "$tmp/report"; } > "$tmp/output"
	[ "$got" = "$counts" ]
	ok "$name"
}

programs=p
tap='TAP version 13'

# passed, failed, skipped
expect "all passed" "2 0 0" "$tap" 1..2 'ok 1 a' 'ok 2' 0
expect "one failed" "1 1 0" "$tap" 1..2 'ok 1 a' 'not ok 2 b' 1
expect "failed with status 0" "1 1 0" "$tap" 1..2 'ok 1 a' 'not ok 2 b' 0
expect "plan at the end" "1 0 0" "$tap" 'ok 1 a' 1..1 0
expect "no plan" "1 1 0" "$tap" 'ok 1 a' 0
expect "fewer than planned" "2 1 0" "$tap" 1..3 'ok 1 a' 'ok 2 b' 0
expect "more than planned" "2 1 0" "$tap" 1..1 'ok 1 a' 'ok 2 b' 0
expect "two plans" "2 1 0" "$tap" 1..2 1..2 'ok 1 a' 'ok 2 b' 0
expect "a number twice" "3 1 0" "$tap" 1..3 'ok 1 a' 'ok 1 a' 'ok 3 b' 0
expect "status without a failed test" "1 1 0" "$tap" 1..1 'ok 1 a' 1
expect "killed" "1 1 0" "$tap" 1..1 'ok 1 a' 139
expect "failed and killed" "1 2 0" "$tap" 1..2 'ok 1 a' 'not ok 2 b' 139
expect "bailed out" "1 1 0" "$tap" 1..1 'ok 1 a' 'Bail out! no' 0
expect "bailed out, in small letters" "1 1 0" "$tap" 1..1 'ok 1 a' 'bail out! no' 0
expect "a plan that is none" "1 1 0" "$tap" 1..1abc 'ok 1 a' 0
expect "a number that is none" "1 1 0" "$tap" 1..1 'ok 1x a' 0
expect "another one" "1 1 0" "$tap" 1..1 'ok 0x1 a' 0
expect "one failed, with two spaces" "1 1 0" "$tap" 1..1 'not  ok 1 a' 'ok 1 a' 0
expect "one failed, behind a line without an end" "1 1 0" \
	"$tap" 1..1 'here is not ok 1 a' 'ok 1 a' 0
expect "one failed, in large letters" "1 1 0" "$tap" 1..1 'NOT OK 1 a' 'ok 1 a' 0
expect "one failed, by its own count" "1 1 0" \
	"$tap" 1..1 'ok 1 a' '# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0' 0
expect "a comment about one that failed" "1 0 0" "$tap" 1..1 '# not ok 1 before' 'ok 1 a' 0
expect "nothing planned" "0 1 0" "$tap" 1..0 0
expect "no output" "0 1 0" '' 0
expect "no version line" "1 3 0" 1..1 'ok 1 a' 0
expect "skip that is allowed" "1 0 1" \
	"$tap" 1..2 'ok 1 a' 'ok 2 # SKIP may be skipped' 0
expect "skip that is not allowed, behind a tab" "1 1 0" \
	"$tap" 1..2 'ok 1 a' $'ok 2 #\tSKIP no' 0
for directive in todo XFAIL error; do
	expect "$directive that is not allowed" "1 1 0" "$tap" 1..2 'ok 1 a' "ok 2 # $directive no" 0
done
expect "skip that is not allowed" "1 1 0" \
	"$tap" 1..2 'ok 1 a' 'ok 2 b # SKIP for no reason' 0
expect "skip, lower case" "0 1 0" "$tap" 1..1 'ok 1 a # skip this' 0
expect "expected failure" "0 1 0" "$tap" 1..1 'ok 1 a # XFAIL known' 0
expect "all skipped, allowed" "0 0 1" "$tap" '1..0 # SKIP may be skipped' 0
expect "all skipped, allowed, and told by the status" "0 0 1" \
	"$tap" '1..0 # SKIP may be skipped' 4
expect "the status of a skip without one" "1 1 0" "$tap" 1..1 'ok 1 a' 4
expect "all skipped, not allowed" "0 1 0" "$tap" '1..0 # SKIP whatever' 0
expect "two documents" "2 0 0" "$tap" 1..1 'ok 1 a' "$tap" 1..1 'ok 1 b' 0
expect "first of two documents cut off" "2 1 0" \
	"$tap" 1..2 'ok 1 a' "$tap" 1..1 'ok 1 b' 0
expect "kernel fault" "1 1 0" "$tap" 1..1 'ok 1 a' '#@ fault p BUG: x' 0
expect "what only looks like results" "1 0 0" \
	"$tap" 1..1 '    not ok 1 nested' 'ok 1 a' '# not ok 2' 0

expect "an end of its own" "1 3 0" "$tap" 1..2 'ok 1 a' '#@ end p 0 1' 'not ok 2 b' 1
expect "the end of another" "1 1 0" "$tap" 1..1 'ok 1 a' '#@ end q 0 1' 0
expect "a line of the log's that means nothing" "1 1 0" "$tap" 1..1 'ok 1 a' '#@ what' 0
expect "no status" "1 2 0" "$tap" 1..1 'ok 1 a' ''
expect "a status that is none" "1 2 0" "$tap" 1..1 'ok 1 a' unknown
expect "a test that should have failed" "0 1 0" "$tap" 1..1 'ok 1 a # XPASS' 0

log "$tap" 1..1 'ok 1 a' 0 > "$tmp/whole"
head -n 3 "$tmp/whole" > "$tmp/log"
expect "cut off before the result" "0 2 0"
head -n 4 "$tmp/whole" > "$tmp/log"
expect "cut off after the result" "1 1 0"
: > "$tmp/log"
expect "empty log" "0 1 0"
cat "$tmp/whole" "$tmp/whole" > "$tmp/log"
expect "a program twice" "2 1 0"
cp "$tmp/whole" "$tmp/log"
programs='p q'
expect "a program missing" "1 1 0"

# A program that is run again, after a run with these lines.
again() {
	echo "#@ begin p"
	printf '%s\n' "${@:1:$#-1}"
	echo "#@ again p ${!#} 3"
	cat "$tmp/whole"
} > "$tmp/log"

programs=p
again "$tap" 1..2 'not ok 1 a' 'ok 2 b' 1
expect "passed when run once more" "2 0 0"
grep -q '^again g .* 1 failed in 3 s' "$tmp/report" && grep -q ' not ok 1 a' "$tmp/report"
ok "what failed before is told"
again "$tap" 1..3 'not ok 1 a' 'ok 2 b' 'ok 3 # SKIP may be skipped' 1
expect "what need not be run once more counts" "2 0 1"
again "$tap" 1..2 'ok 1 a' 'not ok 2 b' 1
expect "another test is run once more" "1 1 0"
again "$tap" 1..2 'ok 1 c' 'not ok 2 b' 1
sed -i 's/^ok 1 a$/ok 1 b # SKIP may be skipped/' "$tmp/log"
expect "skipped when run once more" "1 1 1"
again "$tap" 1..1 'not ok 1 a' 1
sed -i 's/^ok 1 a$/not ok 1 a/; s/^#@ end p 0/#@ end p 1/' "$tmp/log"
expect "failed when run once more" "0 1 0"
again "$tap" 1..1 'not ok 1 a' '#@ fault p BUG: x' 1
expect "run once more after a kernel fault" "1 4 0"
again "$tap" 1..1 'not ok 1 a' 139
expect "run once more after a signal" "1 3 0"
again "$tap" 1..2 'not ok 1 a' 1
expect "run once more after a test without a result" "1 4 0"
again "$tap" 1..1 'ok 1 a' 0
expect "run once more after it passed" "2 2 0"
again "$tap" 1..1 'not ok 1 a' 1
head -n 5 "$tmp/log" > "$tmp/twice"
cat "$tmp/log" >> "$tmp/twice"
mv "$tmp/twice" "$tmp/log"
expect "run once more, twice" "1 3 0"
again "$tap" 1..1 'not ok 1 a' 1
head -n 5 "$tmp/log" > "$tmp/cut" && mv "$tmp/cut" "$tmp/log"
expect "to be run once more, and was not" "0 1 0"
for program in p q r; do
	echo "$program" >> "$tmp/repeatable"
	again "$tap" 1..1 'not ok 1 a' 1
	sed "s/^\\(#@ [a-z]*\\) p/\\1 $program/" "$tmp/log"
done > "$tmp/three"
mv "$tmp/three" "$tmp/log"
programs='p q r'
expect "three that are run once more" "3 3 0"
programs=p
echo q > "$tmp/repeatable"
again "$tap" 1..1 'not ok 1 a' 1
expect "run once more what does not go by the clock" "1 3 0"

# What kernels report without a stack trace.
while read -r line; do
	! echo "[    2.0] $line" | "$TOP/selftests/vm/splat-scan" > "$tmp/output"
	ok "fault: $line"
done <<'EOF'
softirq: huh, entered softirq 4 TIMER 00000000d1a5 with preempt_count 00000100, exited with 00000101?
IPv4: Attempt to release TCP socket in state 1 00000000d1a5
IPv4: Attempt to release alive inet socket 00000000d1a5
unregister_netdevice: waiting for lo to become free. Usage count = 2
percpu ref (css_release) <= 0 (-1) after switching to atomic
ref_tracker: reference already released.
NOHZ tick-stop error: local softirq work is pending, handler #200!!!
debugfs: Directory 'twheel' with parent '/' already present!
rcu: rcu_preempt kthread starved for 2100 jiffies! g1 f0x2 RCU_GP_WAIT_FQS(5)
kmemleak: Kernel memory leak detector disabled
BUG: workqueue leaked atomic, lock or RCU: kworker/0:1[9]
cpu_stop: twheel_hotplug(0) leaked preempt count
BUG kmalloc-64 (Tainted: G           OE     ): Right Redzone overwritten
VFS: Busy inodes after unmount of tmpfs (tmpfs)
** 7 printk messages dropped **
stack segment: 0000 [#1] SMP
EOF
! printf 'a\0b\n[    2.0] WARNING: CPU: 0 PID: 1 at here\n' | "$TOP/selftests/vm/splat-scan" > "$tmp/output"
ok "fault: behind a NUL"

# How KCSAN reports a race between two functions, each with its caller.
race() {
	echo "=================================================================="
	echo "BUG: KCSAN: data-race in $1 / $3"
	echo "write to 0xffff888000af0d00 of 8 bytes by task 172 on cpu 3:"
	printf ' %s\n' "$1" "$2"
	echo "read to 0xffff888000af0d00 of 8 bytes by interrupt on cpu 0:"
	printf ' %s\n' "$3" "$4"
	echo "=================================================================="
}

# Does splat-scan count a race?
expect_race() {
	local name=$1 counts=$2 got=yes

	shift 2
	if race "$@" | "$TOP/selftests/vm/splat-scan" > "$tmp/output"; then
		got=no
	fi
	[ "$got" = "$counts" ]
	ok "$name"
}

expect_race "a race of ours" yes 'f [twheel]' sys_ioctl 'g [twheel]' softirq
expect_race "a race of the kernel with us" yes 'f [twheel]' sys_ioctl memcpy softirq
expect_race "a race in what both of us call" yes memcpy 'f [twheel]' memset 'g [twheel_test]'
expect_race "a race in what one of us calls" no pollwake 'f [twheel]' poll sys_poll
expect_race "a race in what we call, with an interrupt" no schedule 'f [twheel]' \
	hrtimer_wakeup $'asm_sysvec_apic_timer_interrupt\n schedule\n f [twheel]'
expect_race "a race in the buffer of what both of us trace" no \
	rb_move_tail 'trace_event_raw_event_twheel_tick_entry+0x44 [twheel]' \
	ring_buffer_unlock_commit 'trace_event_raw_event_twheel_timer_init+0x79 [twheel]'
expect_race "a race in what we trace" yes \
	'trace_event_raw_event_twheel_tick_entry+0x44 [twheel]' twheel_tick memset softirq
expect_race "a race inside of a lock that both of us take" no \
	osq_lock 'f [twheel]' osq_unlock 'g [twheel]'
expect_race "a lock that one of us sets up while the other takes it" yes \
	__mutex_init 'f [twheel]' osq_lock 'g [twheel]'
expect_race "a race of the kernel" no pollwake softirq poll sys_poll

# How a kernel reports that it kills a program because of a lack of memory, or that something else
# is wrong meanwhile.
full() {
	printf '%s\n' "[    2.0] p invoked oom-killer: gfp_mask=0xcc0" "[    2.0] Call Trace:" \
		"[    2.1] ${2:-memory: usage 8192kB}" "[    2.1] oom-kill:constraint=$1,task=p"
}

# Does splat-scan count that?
expect_full() {
	local name=$1 counts=$2 got=yes

	shift 2
	if full "$@" | "$TOP/selftests/vm/splat-scan" > "$tmp/output"; then
		got=no
	fi
	[ "$got" = "$counts" ]
	ok "$name"
}

expect_full "a memory cgroup that is full" no CONSTRAINT_MEMCG
expect_full "a machine without memory" yes CONSTRAINT_NONE
expect_full "a memory cgroup that is full, and has no programs" no NOT_TOLD \
	'Memory cgroup stats for /group:'
expect_full "a fault while a memory cgroup is full" yes CONSTRAINT_MEMCG 'BUG: something'

# How kernels report an oops at a breakpoint.
oops() {
	printf '%s\n' "[    2.0] something else" "[    3.1] $1" "[    3.1] CPU: 0 PID: 0" \
		"[    3.1] RIP: 0010:$2" "[    3.1] Call Trace:" "[    3.2] RIP: 0010:$3"
}

# Was that QEMU's fault?
expect_patched() {
	local name=$1 late=$2 got=no

	shift 2
	if oops "$@" | "$TOP/selftests/vm/patched-too-late"; then
		got=yes
	fi
	[ "$got" = "$late" ]
	ok "$name"
}

expect_patched "code patched too late" yes 'Oops: int3: 0000 [#1] PREEMPT SMP NOPTI' \
	ttwu_do_activate+0x8d/0x220 'f+0x8/0x10 [twheel]'
expect_patched "code patched too late, as told by 6.1" yes 'int3: 0000 [#1] PREEMPT SMP NOPTI' \
	ttwu_do_activate+0x8d/0x220 pv_native_safe_halt+0xf/0x20
expect_patched "a breakpoint of ours" no 'Oops: int3: 0000 [#1] PREEMPT SMP NOPTI' \
	'f+0x8d/0x220 [twheel]' pv_native_safe_halt+0xf/0x20
expect_patched "another oops" no 'Oops: 0000 [#1] PREEMPT SMP NOPTI' \
	ttwu_do_activate+0x8d/0x220 pv_native_safe_halt+0xf/0x20
finish
