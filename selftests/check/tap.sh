# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced, after paths.sh, by scripts that are tests themselves: they print TAP, and have a
# directory $tmp.

mkdir -p "$BUILD"
tmp=$(mktemp -d "$BUILD/${0##*/}.XXXXXX") || exit
trap 'rm -rf "$tmp"' EXIT
echo "TAP version 13"
number=0
failed=0

# ok NAME: did the command before this succeed? If not, the file $tmp/output says why.
ok() {
	local status=$?

	number=$((number + 1))
	if [ $status = 0 ]; then
		echo "ok $number $1"
	else
		failed=$((failed + 1))
		[ ! -s "$tmp/output" ] || sed 's/^/# /' "$tmp/output"
		echo "not ok $number $1"
	fi
}

# executable FILE: makes a bash script from standard input.
executable() {
	mkdir -p "$(dirname "$1")"
	{ echo '#!/bin/bash'; cat; } > "$1"
	chmod +x "$1"
}

# The last call of such a script. Returns whether everything has passed.
finish() {
	echo "1..$number"
	[ $failed = 0 ]
}
