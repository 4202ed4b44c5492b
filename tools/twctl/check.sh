#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests what needs no module: twctl's command line, its completion, its man page, and the checker of
# its JSON. selftests/cli/twctl.sh tests the rest. Prints TAP.
# usage: check.sh TWCTL
set -u

TOP=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
. "$TOP/selftests/lib/tap.sh"
. "$TOP/selftests/lib/command.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
OUT=$tmp/out
# shellcheck disable=SC2034 # for command.sh
ERR=$tmp/err

commands() {
	local command

	for command in $(twctl --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
		echo "$command"
		twctl "$command" --help | sed -nE "s/^  ($command [a-z]+).*/\\1/p"
	done
}

# options COMMAND [SUBCOMMAND]
options() {
	twctl "$@" --help | sed -nE 's/^  -., --([a-z-]+) .*/\1/p'
}

# complete_words WORD...: prints what is offered for the last word.
complete_words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=(left over)
	_twctl
	echo "${COMPREPLY[*]}"
}

# offered WORDS LINE...: exactly WORDS are offered for the last word of LINE.
offered() {
	local words=$1 got

	shift
	got=$(complete_words twctl "$@")
	[ "$got" = "$words" ] || wrong "after '$*': '$got', not '$words'"
}

completion() {
	# shellcheck source=tools/twctl/completion.bash
	. "$TOP/tools/twctl/completion.bash"
	[ "$(complete -p twctl)" = "complete -F _twctl twctl" ] || return
	offered "status sleep" s || return
	offered "status watch list histogram metrics info sleep add idle --help --version" "" || return
	offered "--version" --v || return
	offered "--json --count --help" watch -- || return
	offered "--json" watch 1 --j || return
	offered "--period" add 1s --p || return
	offered "monotonic boottime realtime" sleep --clock "" || return
	offered "boottime" add 1s -c b || return
	offered "" sleep "" || return
	offered "" nonsense -- || return
	offered "add set list show stats watch log remove load save" idle "" || return
	offered "--port --pid" idle --p || return
	offered "--json --count --help" idle show -- || return
	offered "all" idle remove "" || return
	offered "" idle show "" || return
	offered "--check --help" idle load - || return
	offered "$TOP/VERSION" idle load "$TOP/VERS" || return
	offered "$TOP/VERSION" idle load --check "$TOP/VERS" || return
	offered "$TOP/VERSION" idle load -c "$TOP/VERS" || return
	offered "$TOP/VERSION" metrics --file "$TOP/VERS" || return
	offered "$TOP/VERSION" metrics -f "$TOP/VERS" || return
	offered "--help" idle save - || return
	offered "abort" idle --port 80 --action a || return
	offered "received" idle --port 80 -a r || return
	offered "inet inet6" idle --family in || return
	offered "inet inet6" idle -f in || return
	offered "inet inet6" idle add -F "" || return
	offered "root" idle --uid roo || return
	[[ " $(complete_words twctl add 1s -- ec) " == *" echo "* ]] || wrong "no echo" || return
	[[ " $(complete_words twctl add 1s -- env ec) " == *" echo "* ]] || wrong "no echo"
}

# typed TEXT: types TEXT into an interactive shell, in which twctl prints its arguments.
typed() {
	cat > "$tmp/rc" <<-EOF
		PS1=
		cd() { builtin cd "\${1/#\/sys\/fs\/cgroup/$tmp\/names}"; }
		. "$TOP/tools/twctl/completion.bash"
		twctl() {
			case " \$* " in
			*" --help "*) command twctl "\$@" ;;
			" list ") echo 'PID \$(touch ran)'; echo '\$(touch\${IFS}ran) x' ;;
			*) printf '<%s>' "\$@"; echo ;;
			esac
		}
	EOF
	(cd "$tmp/names" && printf '%b\nexit\n' "$1" |
		HISTFILE='' PATH=$tmp/names:$PATH bash --noprofile --rcfile "$tmp/rc" -i 2> /dev/null)
}

# Names chosen by others are inserted literally, and nothing in them is run.
completion_runs_nothing() {
	# shellcheck disable=SC2016 # not to be expanded
	local name='ev;touch ran $(touch ran) `touch ran` & touch ran' line

	mkdir "$tmp/names" "$tmp/names/$name" "$tmp/names/x y" || return
	printf '#!/bin/sh\n' > "$tmp/names/zz;touch ran" && chmod +x "$tmp/names/zz;touch ran" || return
	[ "$(typed 'twctl idle --cgroup x\t')" = '<idle><--cgroup><x y/>' ] ||
		wrong "$(typed 'twctl idle --cgroup x\t')" || return
	for line in 'twctl idle --cgroup ev\t' 'twctl idle load ev\t' 'twctl list \t' \
		'twctl add 1s -- zz\t' 'twctl idle --cgroup "ev\t' "twctl idle load 'ev\t"; do
		typed "$line" > "$OUT"
		[ ! -e "$tmp/names/ran" ] || wrong "$line has run what it is named: $(cat "$OUT")" ||
			return
		[ "$line" = 'twctl list \t' ] || grep -q ';touch ran' "$OUT" ||
			wrong "$line: $(cat "$OUT")" || return
	done
}

# The man page has exactly the commands and options that --help lists.
man_page() {
	local page=$TOP/Documentation/man/twctl.1.scd command option wanted

	wanted=$(commands | while read -ra command; do
		echo "## ${command[*]}"
		for option in $(options "${command[@]}"); do
			[ "$option" = help ] || echo "--$option"
		done
	done | sort -u)
	diff <(echo "$wanted") <(sed -nE -e 's/^## ([a-z ]+)$/## \1/p' \
		-e 's/^\*-.\*, \*(--[a-z-]+)\*.*/\1/p' "$page" | sort -u) | sed 's/^/# /'
	[ "${PIPESTATUS[0]}" = 0 ]
}

# judge STATUS DOCUMENT: both json.sh and perl return STATUS for DOCUMENT.
judge() {
	local perl ours

	printf '%s\n' "$2" | "$TOP/selftests/lib/json.sh" > /dev/null
	ours=$?
	# shellcheck disable=SC2016 # perl's variables
	printf '%s\n' "$2" | perl -MJSON::PP -e '
		local $/;
		exit !defined eval { JSON::PP->new->allow_nonref->decode(<>); 1 }'
	perl=$?
	[ "$ours $perl" = "$1 $1" ] || wrong "$2: we say $ours, perl $perl"
}

json_judge() {
	local text

	for text in '{}' '[]' '{"a": 1}' '[1, -0.5e+3, 0, 10, 1.25]' '"a\u00e4\n\"\\"' \
		'[{"x": [true, false, null]}, {}]' '{"a,b": "c,,d", "": [[]]}' ' [ ] ' 'null'; do
		judge 0 "$text" || return
	done
	for text in '' ' ' '{"a": 1,}' '[1,]' ',' '[,]' '[1 2]' '[1, 2' '[1]]' '{"a" 1}' \
		'{a: 1}' "{'a': 1}" '{"a": 1' '{1: 1}' '{"a"}' '"a' '"\x"' '"\u12"' \
		$'"a\tb"' 01 1. .5 +1 -- 0x1 1e nul True 'null x' NaN; do
		judge 1 "$text" || return
	done
	# JSON allows a name twice in an object, but no good comes of it.
	if echo '{"a": 1, "a": 2}' | "$TOP/selftests/lib/json.sh" > /dev/null; then
		wrong "a name twice"
	fi
}

# Only the full name of an option is accepted, whatever other options begin with the same.
abbreviations() {
	local option

	for option in --remote-p --remote-p=80 --remot --re --dr --dry-ru; do
		complaint 2 "idle: there is no option '$option'; see 'twctl idle --help'" \
			twctl idle --port 80 "$option" 80 --timeout 1s --help || return
	done
	complaint 2 "there is no option '--time'" twctl idle --port 80 --time || return
	complaint 2 "there is no option '--js=1'" twctl list --js=1 || return
	complaint 2 "there is no option '-x'" twctl list --json -xj || return
	complaint 2 "--timeout needs a value: DURATION" twctl idle --timeout || return
	good twctl idle --json --port 80 --remote-port=1 -dp1 -t 1 --help
}

no_such_part() {
	complaint 2 "idle: there is no command 'idle bogus'; see 'twctl idle --help'" \
		twctl idle bogus --port 80 --timeout 1s || return
	complaint 2 "idle: 'bogus' is too much" twctl idle --port 80 --timeout 1s bogus
}

no_such_day() {
	local time

	for time in "2026-02-31 00:00" "2027-02-29 12:00" "2026-04-31 00:00:00" "2026-01-00 00:00"; do
		complaint 2 "sleep: --until '$time' is not @SECONDS, " twctl sleep --until "$time" ||
			return
	done
	# These exist, so they get as far as the next error.
	for time in "2028-02-29 12:00" "2026-01-31 00:00" 00:00 23:59:59; do
		twctl sleep --until "$time" --clock boottime > "$OUT" 2> "$ERR"
		grep -q "a time of day or a date is one of --clock realtime" "$ERR" ||
			wrong "$time: $(cat "$ERR")" || return
	done
}

# An option that would have no effect is an error.
kept_and_closed() {
	local option

	for option in "--timeout 1s" "--lifetime none" "--dry-run" "--live" "--rate 5" \
		"--spread 1s" "--stalled 1s" "--activity sent" "--action abort"; do
		# shellcheck disable=SC2086 # the option and its value
		complaint 2 "idle set: with --keep nothing is closed; leave out " \
			twctl idle set web --keep $option || return
	done
}

# loads LINE OPTIONS: 'idle load' reads LINE, and prints it as OPTIONS.
loads() {
	local text

	text=$(echo "$1" | twctl idle load --check -) || wrong "'$1' is refused" || return
	[ "$text" = "$2" ] || wrong "'$1' is '$text', not '$2'"
}

# Every list that a rule can have, whoever added it: what is saved can be loaded.
all_lists() {
	loads "--port 80 --not-port 81 --remote-port 1-9 --not-remote-port 5 --family inet --keep" \
		"--port 80 --not-port 81 --remote-port 1-9 --not-remote-port 5 --family inet --keep" &&
		loads "--not-family inet6 --not-remote ::1 --keep" \
			"--not-remote ::1 --not-family inet6 --keep"
}

# IPv4-mapped addresses, as ss and 'idle show' print them for an IPv6 socket.
mapped_addresses() {
	loads "--remote ::ffff:10.1.2.3 --keep" "--remote 10.1.2.3 --keep" || return
	loads "--remote ::ffff:10.1.2.3/104 --keep" "--remote 10.0.0.0/8 --keep" || return
	loads "--remote ::ffff:0:0/96,::ffff:0:0/95 --keep" "--remote 0.0.0.0/0,::fffe:0:0/95 --keep" ||
		return
	loads "--not-remote ::1,::/0,10.0.0.0/8 --keep" "--not-remote 10.0.0.0/8,::/0,::1 --keep"
}

version() {
	[ "$(twctl --version)" = "twctl $(cat "$TOP/VERSION")" ]
}

tap_plan 11
tap "the version" version
tap "options are not abbreviated" abbreviations
tap "a part that there is not" no_such_part
tap "a day that there is not" no_such_day
tap "an exception closes nothing" kept_and_closed
tap "all lists" all_lists
tap "addresses of IPv4 as IPv6 shows them" mapped_addresses
tap "completion" completion
tap "completion runs nothing" completion_runs_nothing
tap "the man page tells of all commands and options" man_page
tap "the judge of JSON agrees with another one" json_judge
tap_end
