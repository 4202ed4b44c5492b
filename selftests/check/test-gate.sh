#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The gate's own tests: whatever prevents tests from running, or results from being reported, is
# never a success. They run in a copy of the tree, in which stand-ins replace all that takes time.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

# The selftests' makefiles include some of it.
"$TOP/tools/fetch-source" || exit
kselftest=$CACHE/linux/tools/testing/selftests
tree=$tmp/tree
export TWHEEL_CACHE=$tmp/cache FAULT=$tmp/fault

# ---- the stand-ins: each of them begins with what $FAULT says

# What any of them may call. full: from then on, no disk has room for what a process writes, and
# those that it starts.
cat > "$tmp/faults" <<'EOF'
full() {
	prlimit --pid "$1" --fsize=0:0
}

parent() {
	local id

	read -r _ _ _ id _ < "/proc/$1/stat"
	echo "$id"
}
EOF

executable "$tree/passes" <<'EOF'
name=${NAME:-${0##*/}}
. "$FAULT"
echo "TAP version 13
1..1
ok 1 $name"
EOF

executable "$tree/does" <<'EOF'
name=${0##*/}
. "$FAULT"
EOF

make_tree() {
	local file programs

	mkdir -p "$tree"/{.ci,selftests/{uapi,unit,check,vm}}
	mkdir -p "$tree"/tools/{lib,bench-user,bench-programs,report,twbench,twctl}
	for file in .ci/run tools/paths.sh selftests/vm/patched-too-late \
		selftests/check/{run,judge.awk,torture} selftests/{allowed-skips,by-the-clock,select,seeds}; do
		cp "$TOP/$file" "$tree/$file"
	done
	for file in selftests/check/test-{judge,gate,lanes,layers,metrics,misuse,idle-load,units}.sh \
		selftests/check/{lint,refuses-32-bit} \
		selftests/vm/{test-run.sh,test-fetch.sh} tools/lib/check.sh \
		selftests/{uapi/check-header.sh,unit/fuzz.sh}; do
		cp "$tree/passes" "$tree/$file"
	done
	for file in fetch-kernel build-kernel fetch-software copy-python; do
		cp "$tree/does" "$tree/selftests/vm/$file"
	done
	for file in selftests/unit tools/bench-{user,programs} tools/report tools/tw{bench,ctl}; do
		printf 'check stress:\n\t@NAME=%s ../../passes\n' "${file##*/}" > "$tree/$file/Makefile"
	done
	# Those that the check itself names, and one of each directory.
	programs=$(grep -oE '\b(device|tcp|rules|fault|fuzz)/[a-z_]+(\.sh)?\b' "$TOP/selftests/check/run" | sort -u)
	programs+=' budgets/calls cli/twctl.sh long/timers periodic-tick/ticks isolated/cpu apps/nginx.sh'
	programs+=' isolated/partition python/python.sh'
	{
		echo '.PHONY: tools tests'
		echo 'tools:'
		printf '\t@./does\n'
		echo 'tests:'
		printf '\t@mkdir -p build/selftests\n'
		printf '\t@printf "%%s\\n" %s > build/selftests/list\n' "${programs//$'\n'/ }"
	} > "$tree/Makefile"
	for file in debug kcsan 6.12-rt uml-smp; do
		mkdir -p "$TWHEEL_CACHE/kernels/$file"
		echo 1 > "$TWHEEL_CACHE/kernels/$file/release"
	done
	executable "$tree/selftests/vm/run" <<'EOF'
name=guest
build=${0%/*}/../../build
. "$FAULT"
# It has files of its own.
echo console > "$build/run.$$" || exit 122
which=${!#}
which=${which#*run-in-guest.sh }
for program in clock load $("$build/../selftests/select" "$build/selftests/list" $which) unload; do
	echo "#@ begin $program
TAP version 13
1..1
ok 1 $program
#@ end $program 0 1"
done
case $* in
*"--kernel debug "*)
	echo "#@ begin leaks
TAP version 13
1..1
ok 1 none
#@ end leaks 0 1"
	;;
esac
EOF
}

# ---- make check

# gate NAME STATUS LAST-LINE [ARGUMENT...]: runs everything with the fault on standard input; the
# last line must match a pattern. Commands in $instead replace others. What was built before is
# kept if $keep is set.
instead=
gate() {
	local name=$1 status=$2 last=$3 got

	shift 3
	{ cat "$tmp/faults"; echo "gate=\$(cat '$tmp/pid')"; cat; } > "$FAULT"
	[ "${keep-}" ] || rm -rf "$tree/build"
	(
		# A write that finds no space should fail, not kill.
		trap '' XFSZ
		echo "$BASHPID" > "$tmp/pid"
		exec env PATH="${instead:+$instead:}$PATH" "$@"
	) < /dev/null 2>&1 | cat > "$tmp/output"
	got=${PIPESTATUS[0]}
	[ "$got" = "$status" ] && tail -n 1 "$tmp/output" | grep -Eqx "$last"
	ok "$name"
}

# The guests in which tests have passed.
guests() {
	awk '$1 == "ok" { print $2 }' "$tmp/output" | sort -u
}

all_well='[1-9][0-9]* passed, 0 failed'
one_skip='[1-9][0-9]* passed, 0 failed, [1-9][0-9]* skipped'
bad='[0-9]+ passed, [1-9][0-9]* failed(, [0-9]+ skipped)?'
check=$tree/selftests/check/run

# shellcheck disable=SC2016 # the stand-ins' shells expand these
make_check() {
	gate "all is well" 0 "$all_well" "$check" all < /dev/null
	guests > "$tmp/all"
	gate "all is well with what a newcomer runs" 0 "$all_well" "$check" < /dev/null
	guests > "$tmp/some"
	gate "all is well with the rest" 0 "$all_well" "$check" rest < /dev/null
	guests >> "$tmp/some"
	[ "$(sort -u "$tmp/some" | comm -3 - "$tmp/all" | tr -d '\t')" = $'newest-rt\nrunner-copy' ]
	ok "all of it is both, one more kernel, and the runner in a copy"
	gate "a suite fails" 1 "$bad" "$check" all <<< '[ $name != twctl ] || exit 1'
	gate "a suite tells its own end" 1 "$bad" "$check" \
		<<< '[ $name != twctl ] || { echo "#@ end twctl 0 1"; exit 1; }'
	gate "a guest does not start" 1 "$bad" "$check" all <<< '[ $name != guest ] || exit 122'
	grep -q '6.12+1: the run ended with status 122: .*selftests/vm/run --simulate' "$tmp/output"
	ok "how to repeat that is told"
	# make has its own flags for what it calls.
	gate "what is set for other programs" 0 "$all_well" env CDPATH="$tree" POSIXLY_CORRECT=1 \
		MAKEFLAGS=n O=nowhere CFLAGS=-bad TWHEEL_INJECT=y "$check" all \
		<<< '[ -z "${CDPATH-}${POSIXLY_CORRECT-}${O-}${CFLAGS-}${TWHEEL_INJECT-}" ]'
	gate "options of another shell" 0 "$all_well" \
		env SHELLOPTS=errexit:noglob:nounset:pipefail BASHOPTS=failglob "$check" < /dev/null
	gate "a seed that is no number" 1 '.*TWHEEL_SEED is a number.*' \
		env TWHEEL_SEED=x "$check" < /dev/null
	gate "standard error and input are closed" 0 "$all_well" \
		timeout 60 bash -c '"$0" <&- 2>&-' "$check" <<< '[ $name != twctl ] || echo "an error" >&2'
	gate "something is in what was built" 0 "$all_well" "$check" < /dev/null
	: > "$tree/build/selftests/left-behind"
	keep=1 gate "and something else, when it is run again" 0 "$all_well" "$check" < /dev/null
	[ ! -e "$tree/build/selftests/left-behind" ]
	ok "that is taken away"
	gate "a build fails" 1 "$bad" "$check" all <<< '[ $name != does ] || exit 1'
	instead=$tmp/little-room
	executable "$instead/df" <<-'EOF'
	echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
	echo "none 9999999 8000000 1999999 80% /"
	EOF
	gate "there is no room" 1 '.*1 GB of disk are free, and 2 are needed .*' "$check" all < /dev/null
	[ "$(wc -l < "$tmp/output")" = 2 ]
	ok "that is told of at once"
	instead=
	gate "the disk is full from some time on" 1 "$bad" "$check" all \
		<<< '[ $name != twctl ] || full "$gate"'
	gate "it is for the half that runs beside" 1 "$bad" "$check" all \
		<<< '[ $name != fuzz.sh ] || full "$(parent $PPID)"'
	gate "it is for the other half" 1 "$bad" "$check" all \
		<<< '[ "$name $1" != "fetch-kernel 6.1" ] || full "$PPID"'
	instead=$tmp/late
	executable "$instead/tee" <<-EOF
	for ((i = 0; i < 500000; i++)); do
		[[ \$1 == *6.1+1.errors ]] || break
	done
	exec $(command -v tee) "\$@"
	EOF
	gate "what a guest says comes late" 1 "$bad" "$check" all \
		<<< '[ $name != guest ] || { echo "it does not start" >&2; exit 122; }'
	instead=
	gate "a half is killed" 1 "$bad" "$check" all \
		<<< '[ $name != lint ] || kill -KILL "$(parent $PPID)"'
	# By then the shell has reported it, and no longer knows it.
	gate "a half is killed, and awaited later" 1 "$bad" "$check" all <<-'EOF'
	case $name in
	lint) kill -KILL "$(parent $PPID)"; : > "$FAULT.killed" ;;
	fetch-software) while [ ! -e "$FAULT.killed" ]; do :; done ;;
	esac
	EOF

	instead=$tmp/no-copies
	executable "$instead/cp" <<< 'exit 1'
	gate "the logs cannot be kept" 1 "$bad" "$check" all < /dev/null
	instead=$tmp/silent-judge
	executable "$instead/awk" <<-EOF
	case "\$*" in
	*guest=lint*) cat > /dev/null; exit 0 ;;
	esac
	exec $(command -v awk) "\$@"
	EOF
	gate "a suite leaves no count" 1 "$bad" "$check" all < /dev/null
	instead=

	gate "a kernel is not offered" 0 "$one_skip" "$check" all \
		<<< '[ "$name $1" != "fetch-kernel 6.1" ] || exit 4'
	gate "no kernel is offered" 1 "$bad" "$check" all <<< '[ $name != fetch-kernel ] || exit 4'
	gate "a kernel cannot be fetched" 1 "$bad" "$check" all \
		<<< '[ "$name $1" != "fetch-kernel 6.1" ] || exit 1'
	gate "nginx cannot be fetched" 1 "$bad" "$check" all <<< '[ $name != fetch-software ] || exit 1'
	printf 'debug 1 2 0 points device/ring\ndebug 1 3 0 points device/keys' >> "$tree/selftests/seeds"
	gate "cases to be looked at again, the last without an end" 0 "$all_well" "$check" rest \
		< /dev/null
	grep -q '^ok  *debug  *device/keys ' "$tmp/output" && grep -q '^ok  *debug  *device/ring ' "$tmp/output"
	ok "each is looked at"
	sed -i 's| isolated/[a-z]*||g' "$tree/Makefile"
	gate "a directory has no tests" 1 "$bad" "$check" all < /dev/null

	gate "a search on one kernel: all is well" 0 "$all_well" \
		env KERNELS=debug "$check" explore 1 1000 < /dev/null
	gate "a search: all is well" 0 "$all_well" "$check" explore 3 1000 < /dev/null
	[ "$(grep -c '^ok  *debug ' "$tmp/output")" = 15 ]
	ok "a search: three seeds on each kernel, of a program each"
	gate "a search: a guest fails" 1 "$bad" "$check" explore 1 1000 \
		<<< '[ $name != guest ] || exit 125'
	grep -q 'to be kept in selftests/seeds: 6.12 1 ' "$tmp/output" &&
		grep -q "it fails with less, too: TWHEEL_CACHE=.*inject_points=0" "$tmp/output"
	ok "a search: it tells how to repeat that"
	tail -n 1 "$tmp/output" | grep -q ' 11 failed'
	ok "a search: what fails with less is not counted again"
	gate "in parallel: all is well" 0 "$all_well" "$check" parallel < /dev/null
	gate "in parallel: a kernel is not offered" 0 "$one_skip" "$check" parallel \
		<<< '[ "$name $1" != "build-kernel uml-smp" ] || exit 4'
	gate "in parallel: no kernel is offered" 1 "$bad" "$check" parallel \
		<<< 'case $name in *-kernel) exit 4 ;; esac'
	gate "in parallel: a kernel is not built" 1 "$bad" "$check" parallel \
		<<< '[ "$name $1" != "build-kernel kcsan" ] || exit 1'
	gate "in parallel: the kernel was patching its code" 0 "$all_well" "$check" parallel < <(patched)
	[ "$(grep -c '^again ' "$tmp/output")" = 1 ]
	ok "in parallel: that is run once more"
	gate "the kernel was patching its code" 1 "$bad" "$check" all < <(patched)
	! grep '^again ' "$tmp/output"
	ok "that is not run once more"
	gate "in parallel: the disk is full" 1 "$bad" "$check" parallel \
		<<< '[ "$name $1" != "build-kernel uml-smp" ] || full "$gate"'
}

# A guest that has run into code that the kernel was patching, once.
# shellcheck disable=SC2016 # the stand-ins' shells expand these
patched() {
	cat <<-'EOF'
	if [ $name = guest ] && [[ $* == *"--kernel 6.1 "* ]] && mkdir "$build/oops" 2> /dev/null; then
		while [ "$1" != --log ]; do
			shift
		done
		printf '%s\n' 'int3: 0000 [#1] SMP' 'RIP: 0010:smp_call_function_many_cond' > "$2"
		exit 125
	fi
	EOF
}

# shellcheck disable=SC2016 # the stand-ins' shells expand these
torture() {
	local torture=$tree/selftests/check/torture

	gate "torture: a kernel is not offered" 0 '.*' "$torture" 1 \
		<<< '[ "$name $1" != "build-kernel uml-smp" ] || exit 4'
	gate "torture: no kernel is offered" 1 '.*' "$torture" 1 \
		<<< '[ $name != build-kernel ] || exit 4'
	gate "torture: a kernel is not built" 1 '.*' "$torture" 1 \
		<<< '[ "$name $1" != "build-kernel kcsan" ] || exit 1'
	gate "torture: a guest fails" 125 '.*' "$torture" 1 <<< '[ $name != guest ] || exit 125'
}

# ---- make test

# The programs that have passed, each after the guest that it ran in.
ran() {
	awk '$1 == "ok" && $3 ~ /\// { print $2, $3 }' "$tmp/output" | sort | paste -sd ' '
}

# shellcheck disable=SC2016 # the stand-ins' shells expand these
make_test() {
	gate "one program: all is well" 0 "$all_well" "$check" one 6.1 device/ring \
		<<< '[[ $name != guest || $* == *"--kernel 6.1 "*init_on*ROUNDS=3* ]] || exit 1'
	[ "$(ran)" = "6.1 device/ring" ] && ! grep -q '^ok  *6.1  *leaks ' "$tmp/output"
	ok "one program: on that kernel, and no other"
	[ -e "$tree/build/test/6.1+1.log" ] && [ ! -e "$tree/build/check" ]
	ok "one program: its log is kept, in a place of its own"
	gate "programs of two directories, on 6.12" 0 "$all_well" "$check" one 6.12 cli/twctl.sh \
		device/ring device/touch <<< '[[ $name != guest || $* != *TWHEEL_MANY* ]] || exit 1'
	[ "$(ran)" = "6.12 cli/twctl.sh 6.12 device/ring 6.12 device/touch" ]
	ok "programs of two directories: these have run"
	gate "a directory, on the debug kernel" 0 "$all_well" "$check" one debug fuzz \
		<<< '[[ $name != guest || $* == *--inject*FUZZ_PROGRAMS=* ]] || exit 1'
	[ "$(ran)" = "debug fuzz/fuzz.sh" ] && grep -q '^ok  *debug  *leaks ' "$tmp/output"
	ok "a directory, on the debug kernel: leaks are looked for"
	gate "one program: another seed" 0 "$all_well" \
		env TWHEEL_SEED=7 "$check" one 6.12 device/ring \
		<<< '[[ $name != guest || $* == *"--seed 7 "* ]] || exit 1'
	gate "one program: it fails" 1 "$bad" "$check" one 6.12 device/ring \
		<<< '[ $name != guest ] || exit 125'
	gate "one program: its kernel is not offered" 1 '0 passed, 0 failed, 1 skipped' \
		"$check" one 6.1 device/ring <<< '[ $name != fetch-kernel ] || exit 4'
	gate "one program: its kernel is not built" 1 "$bad" "$check" one debug device/ring \
		<<< '[ $name != build-kernel ] || exit 1'
	gate "one program: there is no such kernel" 1 'run: there is no kernel 6.0; there are .*' \
		"$check" one 6.0 device/ring < /dev/null
	[ "$(wc -l < "$tmp/output")" = 1 ]
	ok "one program: that is all it says"
	gate "one program: it does not exist" 1 'run: there is no test device/no-such' \
		"$check" one 6.12 device/ring device/no-such < /dev/null
	[ ! "$(ran)" ]
	ok "one program: then no other is run"
	gate "one program: on a kernel that lacks what it needs" 1 \
		'run: fuzz/fuzz.sh runs on debug only.*' "$check" one 6.12 fuzz/fuzz.sh < /dev/null
	gate "one program: it has a guest of its own" 1 'run: apps/nginx.sh needs a guest .*' \
		"$check" one 6.12 apps/nginx.sh < /dev/null
	gate "one program: none is named" 1 '.*usage: .*' "$check" one 6.12 < /dev/null

	make -n -C "$TOP" test T="device/ring rules" K=6.1 SEED=7 > "$tmp/output" 2>&1 &&
		grep -qx 'TWHEEL_SEED="7" selftests/check/run one "6.1" device/ring rules' \
			"$tmp/output"
	ok "make test"
	! make -n -C "$TOP" test > "$tmp/output" 2>&1 && grep -q 'which tests?' "$tmp/output"
	ok "make test: it needs T="
}

# ---- both of them, unattended

# $target is what make was called with.
# shellcheck disable=SC2016 # its stand-in's shell expands these
unattended() {
	local run=$tree/.ci/run target

	instead=$tmp/make
	executable "$instead/make" <<-'EOF'
	target=$1
	. "$FAULT"
	echo "3 passed, 0 failed, 1 skipped"
	EOF
	gate "unattended: all is well" 0 '6 passed, 0 failed, 2 skipped' "$run" < /dev/null
	gate "unattended: one fails, with options of another shell" 1 '5 passed, 2 failed, 1 skipped' \
		env SHELLOPTS=errexit:pipefail "$run" \
		<<< "[ \$target != check ] || { echo '2 passed, 2 failed'; exit 2; }"
	for target in check check-rest; do
		gate "unattended: $target fails" 1 '5 passed, 2 failed, 1 skipped' "$run" \
			<<< "[ \$target != $target ] || { echo '2 passed, 2 failed'; exit 2; }"
	done
	gate "unattended: one says that it passed, and failed" 1 "$bad" "$run" \
		<<< '[ $target != check ] || { echo "2 passed, 0 failed"; exit 2; }'
	gate "unattended: one says nothing" 1 "$bad" "$run" <<< '[ $target != check ] || exit 0'
	gate "unattended: the disk is full" 1 "$bad" "$run" <<< '[ $target = check ] || {
		full $PPID
		echo "2 passed, 1 failed"
		exit 2
	}'
	executable "$instead/mktemp" <<< 'exit 1'
	gate "unattended: no temporary file" 1 "$bad" "$run" < /dev/null
	! grep '^make check' "$tmp/output"
	ok "unattended: nothing is run in vain then"
	instead=
}

# ---- the checkers of style and of types

# lint_says NAME STATUS CHECK: the checkers' status, and that of one of them.
lint_says() {
	PATH=$tmp/silent:$PATH "$tmp/lint/selftests/check/lint" > "$tmp/output" 2>&1
	[ $? = "$2" ] && grep -Eq "^$([ "$2" = 0 ] || echo 'not ')ok [0-9]+ $3\$" "$tmp/output"
	ok "lint: $1"
}

# sparse NAME STATUS: the fault on standard input occurs while the modules are built.
sparse() {
	cat > "$FAULT"
	lint_says "$1" "$2" sparse
}

# manual NAME STATUS TEXT ROFF: this is a page of the manual, and what was made of it.
manual() {
	printf '%s\n' "; SPDX-License-Identifier: GPL-2.0-only" "$3" > \
		"$tmp/lint/Documentation/man/page.1.scd"
	printf '%s\n' "$4" > "$tmp/lint/build/man/page.1"
	lint_says "$1" "$2" manual
}

# in_tmp NAME STATUS LINE [FILE]: the file, a script of the host's, has this line.
in_tmp() {
	local file=$tmp/lint/${4-tools/script}

	printf '%s\n' '# SPDX-License-Identifier: GPL-2.0-only' "$3" > "$file"
	lint_says "$1" "$2" tmp
	rm "$file"
}

# shellcheck disable=SC2016 # a stand-in's shell expands these
lint() {
	local name lint=$tmp/lint shared=/tmp

	mkdir -p "$lint"/{build/man,Documentation/man,module,tools,selftests/{check,vm}}
	cp "$TOP/tools/paths.sh" "$lint/tools/"
	cp "$TOP"/selftests/check/{lint,layers} "$lint/selftests/check/"
	for name in one two; do
		echo '// SPDX-License-Identifier: GPL-2.0-only' > "$lint/module/$name.c"
	done
	executable "$lint/selftests/vm/fetch-kernel" < /dev/null
	executable "$lint/tools/fetch-source" < /dev/null
	for name in shellcheck perl mandoc make; do
		executable "$tmp/silent/$name" < /dev/null
	done
	executable "$lint/tools/build-modules" <<-'EOF'
	modules=$(cd "${0%/*}/.." && pwd)/build/modules/6.12/module
	files='one two'
	status=0
	case $* in
	*C=2*) . "$FAULT" ;;
	esac
	for file in $files; do
		echo "  CHECK   $modules/$file.c"
	done
	exit $status
	EOF
	# Checking these is not the checkers' job here.
	sed -i '1a # SPDX-License-Identifier: GPL-2.0-only' "$lint/selftests/vm/fetch-kernel" \
		"$lint/tools/fetch-source" "$lint/tools/build-modules"
	: > "$FAULT"
	manual "a table, and the first line says so" 0 'twheel(1)' "'\\\" t"$'\n.TS'
	manual "a table, and it does not" 1 'twheel(1)' $'.nh\n.TS'
	manual "a backslash that the page loses" 1 $'```\na \\n\n```' ''
	manual "a backslash that is doubled" 0 $'```\na \\\\n\n```' ''
	in_tmp "a fixed name in /tmp" 1 "ls > $shared/list"
	in_tmp "a name in /tmp that can be guessed" 1 "ls > \"$shared/list.\$\$\""
	in_tmp "a name in TMPDIR that can be guessed" 1 "ls > \${TMPDIR:-$shared}/list" \
		selftests/vm/script
	in_tmp "a name in /tmp that is made up" 0 "list=\$(mktemp $shared/list.XXXXXX)"
	in_tmp "the /tmp of a root" 0 "ls > \"\$root$shared/list\""
	in_tmp "the /tmp of a guest" 0 "ls > $shared/list" selftests/vm/init
	sparse "sparse finds nothing" 0 < /dev/null
	sparse "sparse finds something" 1 <<< 'echo "$modules/one.c:1:1: warning: a context imbalance"'
	sparse "sparse does not run" 1 <<< 'files='
	sparse "sparse has not read a file" 1 <<< 'files=one'
	sparse "the build for sparse fails" 1 <<< 'status=2'
	sparse "the test build for sparse fails" 1 <<< 'case $* in --inject*) status=2 ;; esac'
}

# ---- makefiles

directories() {
	local name dir=$tmp/selftests

	for name in one two three; do
		mkdir -p "$dir/$name"
		printf '# lib.mk\nemit_tests:\n\t@echo %s:program\n' "$name" > "$dir/$name/Makefile"
	done
	cp "$TOP/selftests/Makefile" "$dir/"
	make -C "$dir" list O="$tmp/list" > "$tmp/output" 2>&1 &&
		[ "$(sort "$tmp/list/list")" = $'one/program\nthree/program\ntwo/program' ]
	ok "selftests: the tests of all directories"
	printf '\t@false\n' >> "$dir/three/Makefile"
	! make -C "$dir" list O="$tmp/list" > "$tmp/output" 2>&1
	ok "selftests: a directory does not tell its tests"
}

# with_flags DIRECTORY VARIABLE...: everything there is compiled with the flags from the command
# line, and with our own.
with_flags() {
	local dir=$1

	shift
	make -n -C "$TOP/$dir" CFLAGS=-DTHEIRS "$@" > "$tmp/output" 2>&1 &&
		awk '/(^|[ \t])(gcc|cc|clang) .*\.c( |$)/ {
			compiled++
			if (!/ -DTHEIRS / || !/ -Werror /)
				bad++
		     }
		     END { exit bad || !compiled }' "$tmp/output"
	ok "CFLAGS on the command line: $dir"
}

flags() {
	local file dir

	# What the examples are linked with.
	mkdir -p "$tmp/out/lib"
	: > "$tmp/out/lib/libtwheel.a"
	for dir in lib twbench twctl bench-user bench-programs examples; do
		with_flags "tools/$dir" O="$tmp/out"
	done
	with_flags selftests/unit O="$tmp/out"
	for file in "$TOP"/selftests/*/Makefile; do
		# Not all of them have something to compile.
		if grep -q lib.mk "$file" && grep -q TEST_GEN "$file"; then
			dir=${file%/Makefile}
			with_flags "${dir#"$TOP"/}" OUTPUT="$tmp/out" KSELFTEST_DIR="$kselftest"
		fi
	done
}

special() {
	local name

	for name in 'a tree' a,tree a:tree a%tree; do
		mkdir "$tmp/$name"
		cp "$TOP/Makefile" "$tmp/$name/"
		! make -C "$tmp/$name" help > "$tmp/output" 2>&1 &&
			grep -q 'a path with a space or a special character' "$tmp/output"
		ok "a path of '$name' is refused"
	done
}

make_tree
make_test
make_check
torture
unattended
lint
directories
flags
special
finish
