#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The runner's own tests: results get through, and nothing that goes wrong is a success.
# usage: selftests/vm/test-run.sh		in simulated time, and what is refused
#        selftests/vm/test-run.sh parallel	what depends on real time, and User-mode Linux
#        selftests/vm/test-run.sh copy		the same simulation in another directory
#        selftests/vm/test-run.sh uml-smp	its kernel with several processors

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

# Options of each run.
always=()

# Checks the exit status of a run; its output is in $tmp/output.
expect() {
	local name=$1 status=$2

	shift 2
	"$TOP/selftests/vm/run" "${always[@]}" "$@" > "$tmp/output" 2>&1
	[ $? = "$status" ]
	ok "$name"
}

# Waits until a command fails, for a limited number of seconds.
until_not() {
	local end=$((SECONDS + $1))

	shift
	while "$@" > /dev/null; do
		[ "$SECONDS" -le "$end" ] || return 1
		sleep 0.1
	done
}

# A runner that is killed cannot end its guest.
killed() {
	local kernel=$1 mark=twheel_mark=$$ runner

	"$TOP/selftests/vm/run" --kernel "$kernel" --append "$mark" -- 'echo here; sleep 1000' \
		> "$tmp/output" 2>&1 &
	runner=$!
	# The shell would report how it ends.
	disown
	until_not 240 sh -c "! grep -qx here '$tmp/output'" && pgrep -f "$mark" > /dev/null
	ok "$kernel: a guest to be orphaned"
	kill -KILL $runner
	until_not 10 pgrep -f "$mark"
	ok "$kernel: it ends with a runner that is killed"
}

# The same, once the guest has said "here". Everything that the runner starts keeps the pipe open,
# so its end means that all of them are gone. Only a failure waits for the whole timeout.
killed_simulated() {
	local mark=twheel_mark=$$ pipe=$tmp/killed held runner guest files line=

	mkfifo "$pipe"
	"$TOP/selftests/vm/run" "${always[@]}" --append "$mark" -- 'echo here; while :; do :; done' \
		> "$pipe" 2>&1 7>&1 &
	runner=$!
	# The shell would report how it ends.
	disown
	exec {held}< "$pipe"
	while [ "$line" != here ] && read -r line <&"$held"; do
		echo "$line"
	done > "$tmp/output"
	guest=$(pgrep -f "^[^ ]*qemu-system-[^ ]* .* $mark")
	ok "simulated: a guest to be orphaned"
	files=$(tr '\0' '\n' < "/proc/$guest/cmdline" | sed -n 's/\/initrd$//p')
	kill -KILL "$runner"
	timeout 60 cat <&"$held" > "$tmp/output" || { kill -KILL "$guest"; false; }
	ok "simulated: it ends with a runner that is killed"
	exec {held}<&-
	# The runner could not do so.
	[ ! "$files" ] || rm -r "$files"
}

# killed_guest NAME WHEN ARGUMENT...: others kill the guest long before its time is up, after it has
# said "here" and the function WHEN, which gets its pid, has returned.
killed_guest() {
	local name=$1 when=$2 mark=twheel_mark=$$ statuses

	shift 2
	"$TOP/selftests/vm/run" "${always[@]}" --append "$mark" "$@" 2>&1 |
		kill_guest "$mark" "$when" > "$tmp/output"
	statuses=${PIPESTATUS[*]}
	[ "$statuses" = "126 0" ]
	ok "$name"
}

# Did it get that far?
kill_guest() {
	local mark=$1 when=$2 line pid status=1

	while read -r line; do
		echo "$line"
		[ "$line" = here ] || continue
		pid=$(pgrep -f "^[^ ]*qemu-system-[^ ]* .* $mark") && "$when" "$pid" &&
			kill -KILL "$pid" && status=0
	done
	return "$status"
}

# The guest's result is a file of QEMU's.
result_comes() {
	local result

	result=$(tr '\0' '\n' < "/proc/$1/cmdline" | sed -n 's/^file:\(.*\/result\)$/\1/p')
	grep -aqm 1 'end$' <(tail -c +1 -f --pid "$1" "$result")
}

# What applies to every machine. $panic makes it panic.
# shellcheck disable=SC2016 # the guest's shell expands these
any_machine() {
	local kernel=$1 panic=$2

	expect "$kernel: status of the command" 7 --kernel "$kernel" --out "$tmp/$kernel" -- \
		sh -c '
		uname -r
		echo "$1"
		insmod twheel.ko && rmmod twheel || exit 1
		su user -c id || exit 1
		echo back > /out/file
		exit 7' sh "it's \"one\" argument"
	grep -qxF "it's \"one\" argument" "$tmp/output"
	ok "$kernel: arguments and output get through"
	grep -q 'uid=1000(user)' "$tmp/output"
	ok "$kernel: another user"
	[ "$(cat "$tmp/$kernel/file")" = back ]
	ok "$kernel: files come back"
	expect "$kernel: kernel that panics" 125 --kernel "$kernel" -- "$panic"
	expect "$kernel: guest that ends early" 126 --kernel "$kernel" -- 'reboot -f'
}

# The guest has delivered its result, and hangs instead of ending.
hangs_in_the_end() {
	mkdir "$tmp/hangs"
	sed 's/^reboot -f$/while :; do :; done/' "$TOP/selftests/vm/init" > "$tmp/hangs/init"
	chmod +x "$tmp/hangs/init"
	killed_guest "a guest that does not end after its result" result_comes \
		--add "$tmp/hangs" -- echo here
}

# What applies to every machine in real time. $hang is how long to wait when it hangs. In simulated
# time, a test makes the kernel warn.
real_time() {
	local kernel=$1 hang=$2

	expect "$kernel: warning of the kernel" 125 --kernel "$kernel" -- \
		'echo "<4>WARNING: CPU: 0 PID: 1 at nowhere" > /dev/kmsg'
	expect "$kernel: guest that hangs" 124 --kernel "$kernel" --timeout "$hang" -- \
		'sleep 1000'
	killed "$kernel"
}

# User-mode Linux has no sysrq.
uml_panic='echo 1 > /proc/sys/vm/panic_on_oom
	mount -o remount,size=4G /tmp
	cat /dev/zero > /tmp/full'

qemu_panic='echo c > /proc/sysrq-trigger'

if [ "${1-}" = uml-smp ]; then
	any_machine uml-smp "$uml_panic"
	real_time uml-smp 5
	# shellcheck disable=SC2016 # the guest's shell expands these
	expect "uml-smp: as many processors as are asked for" 0 --kernel uml-smp --smp 3 -- \
		'[ $(nproc) = 3 ] && taskset -p 4 $$ && taskset -p 1 $$'
	finish
	exit
fi

# Our own selftests for a guest.
# shellcheck disable=SC2016 # the guest's shell expands these
own_tests='
	mkdir selftests/own
	for name in good alone bad late slow forges fills mounts after; do
		printf "%s\n" "#!/bin/sh" "echo TAP version 13; echo 1..1; echo ok 1 $name" \
			> selftests/own/$name
		echo own/$name
	done > selftests/list
	echo "echo \"<4>WARNING: CPU: 0 PID: 1 at nowhere\" > /dev/kmsg" >> selftests/own/bad
	for name in bad late slow; do
		echo "[ -e /$name ] || ! : > /$name" >> selftests/own/$name
	done
	echo "sleep 1000 & setsid sleep 1001 &" >> selftests/own/good
	echo "echo 0 > /sys/devices/system/cpu/cpu1/online" >> selftests/own/good
	echo "! pidof sleep && grep -qx 1 /sys/devices/system/cpu/cpu1/online" >> selftests/own/alone
	echo "echo \"#@ end own/forges 0 1\"; echo not ok 2; exit 3" >> selftests/own/forges
	echo "cat /dev/zero > /tmp/full 2> /dev/null; exit 3" >> selftests/own/fills
	echo "mount -t tmpfs none /twheel && rm -f /run/guest/pipe; exit 3" >> selftests/own/mounts
	echo "[ ! -e /tmp/full ]" >> selftests/own/after
	printf "%s\n" own/bad own/late > selftests/by-the-clock
	chmod +x selftests/own/*
	KMEMLEAK=/proc/version selftests/run-in-guest.sh own'

charged() {
	expect "warning while a test runs" 125 -- "$own_tests"
	grep -q '^#@ fault own/bad .*WARNING:' "$tmp/output" &&
		! grep -q '^#@ fault own/good' "$tmp/output"
	ok "it is charged to that test"
	grep -q '^#@ end own/alone 0 ' "$tmp/output"
	ok "what a program leaves behind is ended, and processors are on again"
	[ "$(grep '^#@ [a-z]* own/forges' "$tmp/output" | cut -d ' ' -f 1-4)" = \
		$'#@ begin own/forges\n#@ end own/forges 3' ]
	ok "no program tells its own end"
	grep -q '^#@ end own/fills 3 ' "$tmp/output" && grep -q '^#@ end own/mounts 3 ' "$tmp/output" &&
		grep -q '^#@ end own/after 0 ' "$tmp/output"
	ok "one that leaves no room, and one that mounts, have their status, and the next one too"
	grep -q '^not ok 1 no_leaks' "$tmp/output"
	ok "what does not look for leaks has not found that there are none"
}

# What has to be reproduced: a race of threads.
racing=device/verdicts

# exact NAME TREE OPTION...: runs that in a tree's guest, with its times and files, to $tmp/NAME.
exact() {
	local name=$1 tree=$2

	shift 2
	"$tree/selftests/vm/run" --simulate "$@" --log "$tmp/$name.log" -- \
		"selftests/run-in-guest.sh $racing && cat /proc/interrupts && ls -lnR /twheel" \
		> "$tmp/$name.output" 2>&1 && cat "$tmp/$name.log" "$tmp/$name.output" > "$tmp/$name"
}

# Next to busy loops, the same run is identical, to the byte; and another seed is another schedule.
exactly() {
	local loops=() pid

	exact here "$TOP"
	ok "a race in simulated time"
	for _ in 1 2; do
		while :; do :; done &
		loops+=($!)
	done
	exact there "$TOP"
	ok "the same beside busy loops"
	for pid in "${loops[@]}"; do
		kill "$pid"
		wait "$pid" 2> /dev/null
	done
	cmp "$tmp/here" "$tmp/there" > "$tmp/output" 2>&1
	ok "it was the same to the byte"
	exact other "$TOP" --seed 2
	! cmp -s "$tmp/here" "$tmp/other"
	ok "with another seed it is not"
}

# Built in a directory with a longer name, as for a user whose files are writable by the group, too,
# the same run is identical.
exactly_in_a_copy() {
	local other=$tmp/another/directory

	mkdir -p "$other" && tar -C "$TOP" --exclude=./build --exclude=./.git -c . |
		tar -C "$other" -x && chmod -R g+w "$other" &&
		make -s -C "$other" tools tests > "$tmp/output" 2>&1
	ok "another copy, built"
	exact here "$TOP"
	ok "a race in simulated time"
	TWHEEL_CACHE=$CACHE exact there "$other"
	ok "that of the copy"
	cmp "$tmp/here" "$tmp/there" > "$tmp/output" 2>&1
	ok "it was the same to the byte"
}

# A QEMU whose main loop runs when it likes may go another way in each run.
takes_no_turns() {
	local cc

	cc=$(command -v cc)
	executable "$tmp/no-turns/cc" <<-EOF
	while [ "\$1" != -o ]; do
		shift
	done
	echo 'int takes_no_turns;' | exec "$cc" -shared -fPIC -o "\$2" -x c -
	EOF
	PATH=$tmp/no-turns:$PATH "$TOP/selftests/vm/run" --simulate -- true > "$tmp/output" 2>&1
	[ $? = 126 ] && grep -q 'took no turns' "$tmp/output"
	ok "a QEMU that takes no turns"
}

# A dependence on when this machine schedules QEMU's threads showed in one of some fifteen runs.
again_and_again() {
	local i same=0 racing=device/ring

	exact first "$TOP"
	for ((i = 0; i < 20; i++)); do
		exact next "$TOP" && cmp -s "$tmp/first" "$tmp/next" && same=$((same + 1))
	done
	[ "$same" = 20 ]
	ok "twenty runs went the same way"
}

# In gdb's own protocol: the guest continues, and stops when interrupted, although it is never idle.
interrupted_by_gdb() {
	local runner gdb='' reply end=$((SECONDS + 60))

	"$TOP/selftests/vm/run" --simulate --gdb --timeout 120 -- \
		'echo spins; while :; do :; done & while :; do :; done' > "$tmp/output" 2>&1 &
	runner=$!
	until { exec {gdb}<> /dev/tcp/127.0.0.1/1234; } 2> /dev/null; do
		[ "$SECONDS" -le "$end" ] || break
		sleep 0.2
	done
	# shellcheck disable=SC2016 # not the shell's, but gdb's
	[ "$gdb" ] && printf '+$c#63' >&"$gdb" &&
		until_not 60 sh -c "! grep -qx spins '$tmp/output'" && printf '\003' >&"$gdb" &&
		read -r -t 20 -d '#' reply <&"$gdb" && [[ $reply = *'$T02'* ]]
	ok "gdb interrupts a guest that spins"
	kill "$runner"
	wait "$runner"
}

if [ "${1-}" = copy ]; then
	exactly_in_a_copy
	finish
	exit
fi

if [ "${1-}" = parallel ]; then
	again_and_again
	interrupted_by_gdb
	any_machine 6.12 "$qemu_panic"
	real_time 6.12 15
	any_machine uml "$uml_panic"
	real_time uml 5
	expect "uml that does not start" 122 --kernel uml --mem 100P -- true
	charged
	[ "$(grep -c '^#@ again' "$tmp/output")" = 1 ] &&
		grep -q '^#@ again own/late 1 ' "$tmp/output" &&
		grep -q '^#@ end own/late 0 ' "$tmp/output"
	ok "only what goes by the clock is run once more, and not after a warning"
	# More of the guest's time than the run may take of ours.
	expect "waiting is over at once" 0 --kernel uml --time-travel --timeout 60 -- 'sleep 900'
	BOOT_LIMIT=0 expect "guest that does not boot in time" 126 -- true
	[ "$(grep -c 'no sign of life' "$tmp/output")" = 4 ]
	ok "it is given three chances"
	expect "guest whose clock runs too fast" 126 --append tsc_early_khz=100000 -- sleep 60
	[ "$(grep -c 'clock runs too fast' "$tmp/output")" = 4 ]
	ok "it is given three chances, too"
	# shellcheck disable=SC2016 # the guest's shell expands this
	expect "processors that run in turn" 0 --smp 3 --in-turn -- '[ $(nproc) = 3 ]'
	finish
	exit
fi

always=(--simulate)
any_machine 6.12 "$qemu_panic"
charged
! grep -q '^#@ again' "$tmp/output" && grep -q '^#@ end own/late 1 ' "$tmp/output"
ok "nothing is run once more"
# shellcheck disable=SC2016 # the guest's shell expands this
expect "processors of any number and speed, and waiting" 0 --smp 3 --shift 3 --out "$tmp/late" -- \
	'[ $(nproc) = 3 ] && sleep 100 && { sleep 1000 & head -c 300000 /dev/zero > /out/large; }'
[ "$(stat -c %s "$tmp/late/large")" = 300000 ]
ok "all comes back, and what is left behind holds nothing up"
exactly
takes_no_turns
killed_guest "a guest that is killed" true -- 'echo here; while :; do :; done'
hangs_in_the_end
killed_simulated
expect "a guest that is off, but not idle" 126 --timeout 120 -- 'poweroff -f'
expect "a seed that is no number" 122 --seed x -- true
expect "a speed that is none" 122 --shift 10 -- true
expect "instructions counted in two ways" 122 --icount -- true
expect "processors in turn, twice" 122 --in-turn -- true
expect "uml in simulated time" 122 --kernel uml -- true
always=()
expect "a seed in real time" 122 --seed 1 -- true
expect "waiting for gdb in real time" 122 --gdb -- true
expect "uml-smp with processors that run in turn" 122 --kernel uml-smp --in-turn -- true
expect "uml with two processors" 122 --kernel uml --smp 2 -- true
expect "uml-smp with more processors than it can have" 122 --kernel uml-smp --smp 9 -- true
expect "uml-smp with an unknown number of processors" 122 --kernel uml-smp --smp none -- true
expect "uml-smp that travels in time" 122 --kernel uml-smp --time-travel -- true
expect "uml-smp that counts instructions" 122 --kernel uml-smp --icount -- true
expect "uml that counts instructions" 122 --kernel uml --icount -- true
expect "QEMU that travels in time" 122 --time-travel -- true
expect "kernel that does not exist" 122 --kernel ./nowhere -- true
expect "files that do not exist" 122 --add ./nowhere -- true
expect "QEMU that does not start" 122 --mem 1 --smp none -- true
finish
