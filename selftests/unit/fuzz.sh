#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fuzzes wheel.c against the oracle, in two sizes at the same time. Prints TAP.
# usage: selftests/unit/fuzz.sh SECONDS
#        selftests/unit/fuzz.sh corpus	run the corpus in the tree, and nothing else
#        selftests/unit/fuzz.sh keep	add what was found to the corpus, and minimise it
#
# The corpus in the tree is only read; what is found goes to build/fuzz.

set -u
. "$(dirname "$0")/../../tools/paths.sh"

corpus=$TOP/selftests/unit/corpus
programs=$BUILD/selftests/unit
sizes=(2x3 6x9)

# An input is kept if it reaches code that no earlier one reaches.
keep() {
	local new=$BUILD/fuzz/corpus size

	rm -rf "$new"
	mkdir -p "$new"
	for size in "${sizes[@]}"; do
		mkdir -p "$BUILD/fuzz/$size"
		"$programs/fuzz-wheel-$size" -merge=1 -use_counters=0 "$new" "$corpus" \
			"$BUILD/fuzz/$size" > "$new.log" 2>&1 ||
			die "the merge failed, see $new.log"
	done
	rm -rf "$corpus"
	mv "$new" "$corpus"
	echo "$corpus: $(find "$corpus" -type f | wc -l) files"
}

fuzz() {
	local size=$1 seconds=$2 finds=$BUILD/fuzz/$1

	mkdir -p "$finds" "$finds-failed"
	if [ "$seconds" = corpus ]; then
		exec "$programs/fuzz-wheel-$size" -runs=0 -print_final_stats=1 \
			-artifact_prefix="$finds-failed/" "$corpus" > "$finds.log" 2>&1
	fi
	# Short programs find little, and very long ones are slow. The quarantine of freed memory
	# is kept small, enough for a few runs: each run frees some 40 kB.
	ASAN_OPTIONS=quarantine_size_mb=1 exec "$programs/fuzz-wheel-$size" \
		-max_total_time="$seconds" -max_len=512 -len_control=10 -timeout=60 \
		-print_final_stats=1 -artifact_prefix="$finds-failed/" \
		"$finds" "$corpus" > "$finds.log" 2>&1
}

# verdict NUMBER SIZE STATUS
verdict() {
	local name="$2 fuzzed against the oracle" log=$BUILD/fuzz/$2.log input

	if [ "$3" = 0 ]; then
		sed -n 's/^stat::number_of_executed_units: */# programs run: /p' "$log"
		echo "ok $1 $name"
		return
	fi
	sed 's/^/# /' "$log"
	input=$(sed -n 's/.*Test unit written to //p' "$log")
	[ ! "$input" ] || printf '# repeat with: %s\n# then add that file to %s\n' \
		"$programs/fuzz-wheel-$2 $input" "$corpus"
	echo "not ok $1 $name"
	failed=1
}

make -s -C "$TOP/selftests/unit" fuzz O="$programs" >&2 || die "the fuzzer does not build"
case ${1-} in
keep)
	keep
	exit
	;;
corpus) ;;
'' | *[!0-9]*)
	die "usage: selftests/unit/fuzz.sh SECONDS, corpus, or keep"
	;;
esac

echo "TAP version 13"
echo "1..${#sizes[@]}"
failed=0
pids=()
trap '[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2> /dev/null' EXIT
trap 'exit 130' INT TERM
for size in "${sizes[@]}"; do
	fuzz "$size" "$1" &
	pids+=($!)
done
for i in "${!sizes[@]}"; do
	wait "${pids[i]}"
	verdict $((i + 1)) "${sizes[i]}" $?
done
pids=()
[ "$1" = corpus ] || echo "# selftests/unit/fuzz.sh keep: add to the corpus what was found"
exit "$failed"
