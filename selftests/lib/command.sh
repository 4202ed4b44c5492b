# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts that test twctl, after tap.sh: checks what a command prints.
# A command's output goes to the file $OUT, its errors to $ERR. Checks that are made for every
# command start no process, and the others as few as they can.

# good COMMAND...: it succeeds, and prints no error.
good() {
	"$@" > "$OUT" 2> "$ERR" || wrong "$*: status $?: $(cat "$ERR")" || return
	[ ! -s "$ERR" ] || wrong "$*: $(cat "$ERR")"
}

# says PATTERN...: each pattern matches a line of the output.
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

# one_line FILE: the file has exactly one line, which is stored in $LINE.
one_line() {
	more=
	{ IFS= read -r LINE && ! IFS= read -r more && [ -z "$more" ]; } < "$1"
}

# prints TEXT: the output is this one line.
prints() {
	{ one_line "$OUT" && [ "$LINE" = "$1" ]; } || wrong "not '$1', but: $(cat "$OUT")"
}

# complaint STATUS PATTERN COMMAND...: it fails with this status and prints one line of error. The
# pattern is a shell pattern; a $ at its end matches the end of the line.
complaint() {
	status=$1
	pattern=$2
	shift 2
	"$@" > "$OUT" 2> "$ERR"
	got=$?
	[ $got = "$status" ] || wrong "$*: status $got" || return
	[ ! -s "$OUT" ] || wrong "$*: printed $(cat "$OUT")" || return
	one_line "$ERR" || wrong "$*: not one line: $(cat "$ERR")" || return
	# shellcheck disable=SC2254 # a pattern on purpose
	case $LINE\$ in
	"twctl: "*$pattern*) ;;
	*) wrong "$*: $LINE" ;;
	esac
}

# json COMMAND...: with --json, it prints valid JSON.
json() {
	good "$@" --json || return
	(set -- "$OUT" && . ../lib/json.sh) > "$ERR" || wrong "$*: $(cat "$ERR") in $(cat "$OUT")"
}

# has NAME VALUE...: the JSON members NAME have these values. If a name occurs more than once in a
# line, its last one counts.
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

# same WHAT A B: A and B are equal.
same() {
	[ "$2" = "$3" ] || wrong "$1: '$2', not '$3'"
}

# lines NUMBER: the output has this many lines.
lines() {
	nr_lines=0
	while read -r _; do
		nr_lines=$((nr_lines + 1))
	done < "$OUT"
	same lines $nr_lines "$1"
}
