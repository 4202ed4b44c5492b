# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts that test twctl, after tap.sh: what a command says.
# Its output goes to the file $OUT, its errors to $ERR.

# good COMMAND...: it succeeds and has nothing to complain of.
good() {
	"$@" > "$OUT" 2> "$ERR" || wrong "$*: status $?: $(cat "$ERR")" || return
	[ ! -s "$ERR" ] || wrong "$*: $(cat "$ERR")"
}

# says PATTERN: is there such a line in the output?
says() {
	grep -Eq -e "$1" "$OUT" || wrong "no '$1' in: $(cat "$OUT")"
}

# complaint STATUS PATTERN COMMAND...: it fails with this status and one line.
complaint() {
	status=$1
	pattern=$2
	shift 2
	"$@" > "$OUT" 2> "$ERR"
	got=$?
	[ $got = "$status" ] || wrong "$*: status $got" || return
	[ ! -s "$OUT" ] || wrong "$*: printed $(cat "$OUT")" || return
	[ "$(wc -l < "$ERR")" = 1 ] || wrong "$*: not one line: $(cat "$ERR")" || return
	grep -Eq "^twctl: .*$pattern" "$ERR" || wrong "$*: $(cat "$ERR")"
}

# json COMMAND...: prints JSON
json() {
	good "$@" --json || return
	./json.sh "$OUT" > "$ERR" || wrong "$*: $(cat "$ERR") in $(cat "$OUT")"
}

# member NAME: its value; the last one's, if there are several.
member() {
	sed -n "s/.*\"$1\": \\([^],}]*\\).*/\\1/p" "$OUT"
}

# same WHAT A B
same() {
	[ "$2" = "$3" ] || wrong "$1: '$2', not '$3'"
}
