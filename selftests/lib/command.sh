# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts that test twctl, after tap.sh: what a command says.
# Its output goes to the file $OUT, its errors to $ERR. What is asked for each command takes no
# process, and the rest as few as it can.

# good COMMAND...: it succeeds and has nothing to complain of.
good() {
	"$@" > "$OUT" 2> "$ERR" || wrong "$*: status $?: $(cat "$ERR")" || return
	[ ! -s "$ERR" ] || wrong "$*: $(cat "$ERR")"
}

# says PATTERN...: is there such a line in the output for each?
says() {
	awk '
	BEGIN {
		for (; ARGC > 2; ARGC--)
			missing[ARGV[ARGC - 1]]
	}
	{
		for (pattern in missing)
			if ($0 ~ pattern)
				delete missing[pattern]
	}
	END {
		for (pattern in missing) {
			print "# no " pattern
			failed = 1
		}
		exit failed
	}' "$OUT" "$@" || wrong "in: $(cat "$OUT")"
}

# one_line FILE: it is $LINE, and no other.
one_line() {
	more=
	{ IFS= read -r LINE && ! IFS= read -r more && [ -z "$more" ]; } < "$1"
}

# prints TEXT: is this line the output?
prints() {
	{ one_line "$OUT" && [ "$LINE" = "$1" ]; } || wrong "not '$1', but: $(cat "$OUT")"
}

# complaint STATUS PATTERN COMMAND...: it fails with this status and one line. The pattern is
# the shell's; a $ at its end is the end of the line.
complaint() {
	status=$1
	pattern=$2
	shift 2
	"$@" > "$OUT" 2> "$ERR"
	got=$?
	[ $got = "$status" ] || wrong "$*: status $got" || return
	[ ! -s "$OUT" ] || wrong "$*: printed $(cat "$OUT")" || return
	one_line "$ERR" || wrong "$*: not one line: $(cat "$ERR")" || return
	# shellcheck disable=SC2254 # it is a pattern
	case $LINE\$ in
	"twctl: "*$pattern*) ;;
	*) wrong "$*: $LINE" ;;
	esac
}

# json COMMAND...: prints JSON
json() {
	good "$@" --json || return
	(set -- "$OUT" && . ../lib/json.sh) > "$ERR" || wrong "$*: $(cat "$ERR") in $(cat "$OUT")"
}

# has NAME VALUE...: the members of these names; the last of each, if there are several.
has() {
	awk '
	BEGIN {
		for (; ARGC > 2; ARGC -= 2)
			wanted[ARGV[ARGC - 2]] = ARGV[ARGC - 1]
	}
	{
		for (name in wanted)
			if (match($0, ".*\"" name "\": [^],}]*")) {
				got[name] = substr($0, RSTART, RLENGTH)
				sub(/.*": /, "", got[name])
			}
	}
	END {
		for (name in wanted)
			if (got[name] "" != wanted[name] "") {
				print "# " name " is " got[name] ", not " wanted[name]
				failed = 1
			}
		exit failed
	}' "$OUT" "$@" || wrong "in: $(cat "$OUT")"
}

# same WHAT A B
same() {
	[ "$2" = "$3" ] || wrong "$1: '$2', not '$3'"
}

# lines NUMBER: so many are in the output.
lines() {
	nr_lines=0
	while read -r _; do
		nr_lines=$((nr_lines + 1))
	done < "$OUT"
	same lines $nr_lines "$1"
}
