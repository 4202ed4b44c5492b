#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Checks that each test program runs somewhere, and where the table in testing.rst says. Run after
# `make tests`.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

page=$TOP/Documentation/testing.rst

# The table's lines "NAME CHECK REST ALL PARALLEL", the latter four like "6.1,6.12", or "-".
awk '
	/^=+( +=+)+$/ { inside = inside == 1 ? 2 : 0; next }
	/^What +check +check-rest +check-all +check-parallel$/ { inside = 1; next }
	inside == 2 {
		gsub(/`/, "")
		gsub(/, +/, ",")
		print $1, $2, $3, $4, $5
	}' "$page" > "$tmp/table"
[ "$(wc -l < "$tmp/table")" -gt 10 ]
ok "testing.rst has a table"

# Lines "LANE GUEST PROGRAM", except for what each guest has.
"$TOP/selftests/check/run" list > "$tmp/all" 2> "$tmp/output" && [ ! -s "$tmp/output" ] &&
	awk '$3 !~ /^(clock|load|unload|leaks)$/' "$tmp/all" > "$tmp/list"
ok "what is run where"

! cut -d ' ' -f 3 "$tmp/list" | sort -u | grep -vxF -f - "$BUILD/selftests/list" > "$tmp/output"
ok "each program of the guests is run somewhere"

# A program has a line of its own, or that of its directory.
awk '
	FILENAME == ARGV[1] {
		names[$1]
		said["check", $1] = $2
		said["rest", $1] = $3
		said["all", $1] = $4
		said["parallel", $1] = $5
		next
	}
	{
		name = $3
		if (!(name in names) && name ~ /\//)
			sub(/\/.*/, "/", name)
		if (!(name in names)) {
			print "not in the table: " $3
			next
		}
		where = $2 == $3 ? "here" : $2
		if (index("," said[$1, name] ",", "," where ",") == 0)
			print "the table does not say: " $0
		ran[$1, where, name]
	}
	END {
		for (key in said) {
			split(key, part, SUBSEP)
			claim(part[1], part[2], said[key])
		}
	}
	function claim(lane, name, where,    n, i, list) {
		n = where == "-" ? 0 : split(where, list, ",")
		for (i = 1; i <= n; i++)
			if (!((lane, list[i], name) in ran))
				print "the table says, and it is not so: " lane, list[i], name
	}' "$tmp/table" "$tmp/list" > "$tmp/output"
[ ! -s "$tmp/output" ]
ok "each where the table says"
finish
