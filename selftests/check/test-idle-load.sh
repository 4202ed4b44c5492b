#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rule files, as far as they need no module: what `twctl idle load --check` says about them. The
# tests in guests are in selftests/cli/idle_load.sh.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

twctl=$BUILD/tools/twctl
file=$tmp/rules.conf

# file LINE...
file() {
	printf '%s\n' "$@" > "$file"
}

# reads TEXT [PATH]: the rules are printed like this.
reads() {
	"$twctl" idle load --check "${2-$file}" > "$tmp/output" 2>&1 &&
		diff - "$tmp/output" <<< "$1" > "$tmp/difference" && return
	cat "$tmp/difference" >> "$tmp/output"
	return 1
}

# refuses MESSAGE [PATH]: this is the whole output, and it fails.
refuses() {
	"$twctl" idle load --check "${2-$file}" > "$tmp/output" 2>&1
	[ $? = 1 ] && [ "$(cat "$tmp/output")" = "twctl: $1" ]
}

forms() {
	# Only a # at the beginning of a word begins a comment.
	file '' $' \t' '--port 80 --timeout 60s# a comment'
	refuses "$file:3: --timeout '60s#' is not one like 300ms, 1.5s, 2m, 1h or 10; see 'twctl idle --help'" ||
		return
	file '# a comment' '' $' \t' '  --port 80 --timeout 60s # a comment' \
		"-p'8'1 \"-t\" 1\\m -d" $'\t--uid=0\t-l 1d\r' ''
	reads '--port 80 --timeout 1m
--port 81 --timeout 1m --dry-run
--uid 0 --lifetime 1d' || return
	# The last line does not need a newline.
	printf -- '--port 80 --timeout 1m' > "$file"
	reads '--port 80 --timeout 1m' && reads '--port 80 --timeout 1m' - < "$file" || return
	reads '--port 80 --timeout 1m' /dev/stdin < "$file"
}

line_7() {
	file '# Web' '--port 80 --timeout 1m' '--port 443 --timeout 1m' '' '# Database' \
		'--port 5432 --lifetime 1d' '--port 3306 --livetime 1d' '--port 80 --timeout x'
	refuses "$file:7: there is no option '--livetime'; see 'twctl idle --help'" &&
		refuses "standard input:7: there is no option '--livetime'; see 'twctl idle --help'" \
			- < "$file"
}

quoting() {
	local escape

	file "--port '80"
	refuses "$file:1: a quotation mark has no partner; quote as in a shell" || return
	file '--port "80\"'
	refuses "$file:1: a quotation mark has no partner; quote as in a shell" || return
	file "--port 80 \\"
	refuses "$file:1: nothing follows the backslash; quote as in a shell" || return
	# shellcheck disable=SC2016 # Nothing is expanded.
	file '--cgroup "$HOME \"`*' "'" '--port 80'
	refuses "$file:1: a quotation mark has no partner; quote as in a shell" || return
	# shellcheck disable=SC2016
	file "--cgroup '\$HOME \"\`\\*'\\''' --timeout 1m"
	refuses "$file:1: cgroup '\$HOME \"\`\\*'': No such file or directory; see what there is in /sys/fs/cgroup" ||
		return
	# Bytes that no terminal should be sent.
	file "--port \$'8\\060' --timeout \$'\\061'm"
	reads '--port 80 --timeout 1m' || return
	file "--cgroup a\$'\\\\\\'\\033\\302\\233\\303\\274\\377' --timeout 1m"
	refuses "$file:1: cgroup 'a\\'???$(printf '\303\274')?': No such file or directory; see what there is in /sys/fs/cgroup" ||
		return
	for escape in 000 08 400 n '"'; do
		file "--port \$'\\$escape' --timeout 1m"
		refuses "$file:1: between \$' and ' a backslash takes three octal digits, \\ or '; quote as in a shell" ||
			return
	done
	file "--port \$'80"
	refuses "$file:1: a quotation mark has no partner; quote as in a shell" || return
	file "--port 80 --timeout $(printf 'x %.0s' {1..70})"
	refuses "$file:1: there are too many words; quote as in a shell"
}

only_for_command_lines() {
	local option

	for option in --json --help -h; do
		file "--port 80 --timeout 1m $option"
		[ $option = -h ] && option=--help
		refuses "$file:1: $option has no meaning in a file; remove it" || return
	done
	file "--pid $$ --timeout 1m"
	refuses "$file:1: --pid is not for files: processes end at a reboot; use --cgroup or --uid"
}

# The same parser reads both: whatever is wrong with a command line is wrong with a line, and is
# reported in the same words.
as_command_line() {
	local options message

	while read -r options; do
		# shellcheck disable=SC2086 # These are words.
		message=$("$twctl" idle $options 2>&1)
		[ $? = 2 ] || { echo "idle $options: $message" > "$tmp/output"; return 1; }
		file "# $options" "$options"
		refuses "$file:2: ${message#twctl: idle: }" || return
	done <<-'EOF'
		--port 80
		--timeout 1m
		--port 0 --timeout 1m
		--port 65536 --timeout 1m
		--remote-port x --timeout 1m
		--uid nosuchuser --timeout 1m
		--port 80 --timeout 0
		--port 80 --timeout 1x
		--port 80 --lifetime
		--port 80 --timeout 1m --rate 0
		--port 80 --timeout 1m --rate 1/m
		--port 80 --timeout 1m --action kill
		--port 80 --lifetime 1m --activity sent
		--port 80 --timeout 1m extra
		--port 80 --timeout 1m --dry-run=1
		--nothing
		-x
	EOF
}

no_text() {
	printf -- '--port 80\0 --timeout 1m\n' > "$file"
	refuses "$file:1: there is a zero byte; this is not a text file" || return
	printf -- '--port 80 --timeout 1m\n--port \1\33[2J --timeout 1m' > "$file"
	refuses "$file:2: --port '??[2J' is not a number from 1 to 65535; see 'twctl idle --help'"
}

# options SEED: rules of all kinds, written differently from how they are printed. Each has a port of
# its own, so that none takes what another one is for.
options() {
	awk -v seed="$1" '
	function pick(n) { return int(rand() * n) }
	function time() { return pick(100000000) + 1 unit[pick(7)] }
	BEGIN {
		srand(seed)
		CONVFMT = OFMT = "%.0f"
		split("ns us ms s m s", words, " ")
		for (i = 0; i < 7; i++)
			unit[i] = words[i]
		for (i = 0; i < 300; i++) {
			line = "-p " 200 * i + pick(200) + 1
			if (pick(2)) line = line " --remote-port=" pick(65535) + 1
			if (pick(2)) line = "-u " pick(4294967295) " " line
			line = line " --timeout " time()
			if (pick(2)) line = line " -l" time()
			if (pick(2)) line = line " --spread " time()
			if (pick(2)) line = line " --activity " (pick(2) ? "sent" : "received")
			if (pick(2)) line = line " --action " (pick(2) ? "abort" : "shutdown")
			if (pick(2)) line = line " -R " pick(4294967295) + 1 "/s"
			if (pick(2)) line = line " -d"
			print line
		}
	}'
}

# The printed form means the same: it is printed as itself.
round_trip() {
	local seed=${TWHEEL_SEED:-1}

	options "$seed" > "$file"
	"$twctl" idle load --check "$file" > "$tmp/once" 2> "$tmp/output"
	if [ "$(wc -l < "$tmp/once")" != 300 ] || ! reads "$(cat "$tmp/once")" "$tmp/once"; then
		echo "seed $seed" >> "$tmp/output"
		return 1
	fi
}

directory() {
	local directory=$tmp/idle.d name

	mkdir "$directory" || return
	[ -z "$("$twctl" idle load --check "$directory" 2>&1)" ] || return
	echo '--port 10 --timeout 1m' > "$directory/10.conf"
	echo '--port 9 --timeout 1m' > "$directory/9.conf"
	echo '--port 2 --timeout 1m' > "$directory/B.conf"
	echo '--port 1 --timeout 1m' > "$directory/a.conf"
	ln -s /dev/null "$directory/masked.conf"
	for name in README .hidden.conf a.conf~ a.conf.dpkg-dist conf; do
		echo 'no rule' > "$directory/$name"
	done
	reads '--port 10 --timeout 1m
--port 9 --timeout 1m
--port 2 --timeout 1m
--port 1 --timeout 1m' "$directory/" || return
	echo '--port 1' >> "$directory/9.conf"
	refuses "$directory/9.conf:2: give a --timeout, or a --lifetime, or both, or --keep; see 'twctl idle --help'" \
		"$directory/" || return
	ln -sf /nowhere "$directory/9.conf"
	refuses "$directory/9.conf: No such file or directory; give a file, a directory, or - for standard input" \
		"$directory"
}

ok_if() {
	local name=$1

	shift
	: > "$tmp/output"
	"$@"
	ok "$name"
}

ok_if "comments, blanks, quotes" forms
ok_if "an error in line 7 is named" line_7
ok_if "quotes that do not match, and what is not expanded" quoting
ok_if "what has a meaning on command lines only" only_for_command_lines
ok_if "a line is read as a command line is" as_command_line
ok_if "what is no text" no_text
ok_if "what is printed is read as the same" round_trip
ok_if "a directory" directory
finish
