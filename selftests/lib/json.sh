#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Checks that each line of the input is valid JSON: strictly RFC 8259, and no name twice in an
# object. Prints what is wrong. Guests have no JSON parser; tools/twctl/check.sh compares this one
# with real ones.

exec awk '
# The remainder of the line is in rest, followed by the pieces from next_piece on: awk would copy
# a long line for each token of it. A string of more than 500 bytes is not recognised.
function skip(n) {
	rest = substr(rest, n + 1)
	while (length(rest) < 500 && next_piece <= pieces)
		rest = rest "," piece[next_piece++]
}

# Checking the first byte is cheaper than matching a pattern.
function blanks() {
	if (index(" \t\r\n", substr(rest, 1, 1)) && match(rest, /^[ \t\r\n]+/))
		skip(RLENGTH)
}

function wrong(what) {
	if (!bad)
		print "line " NR ": " what " at: " substr(rest, 1, 40)
	bad = 1
	return 0
}

function take(text) {
	blanks()
	if (substr(rest, 1, length(text)) != text)
		return 0
	skip(length(text))
	return 1
}

# Stores what the last match() found in word, and skips it.
function matched() {
	word = substr(rest, 1, RLENGTH)
	skip(RLENGTH)
	return 1
}

# Most strings are plain, and a constant pattern is compiled only once. mawk does not support
# repetition counts in braces.
function string() {
	blanks()
	if (match(rest, /^"[0-9A-Za-z_ .-]*"/) ||
	    match(rest, "^\"([^\"\\\\" control "]|\\\\[\"\\\\/bfnrt]|\\\\u" hex hex hex hex ")*\""))
		return matched()
	return 0
}

function number() {
	return match(rest, /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/) && matched()
}

function members(depth,    names, first) {
	for (first = 1; !take("}"); first = 0) {
		if (!first && !take(","))
			return wrong("no comma or brace")
		if (!string())
			return wrong("no name")
		if (index(names, "," word ","))
			return wrong("name twice: " word)
		names = names "," word ","
		if (!take(":"))
			return wrong("no colon")
		if (!value(depth))
			return 0
	}
	return 1
}

function elements(depth,    first) {
	for (first = 1; !take("]"); first = 0) {
		if (!first && !take(","))
			return wrong("no comma or bracket")
		if (!value(depth))
			return 0
	}
	return 1
}

function value(depth) {
	if (take("{"))
		return members(depth + 1)
	if (take("["))
		return elements(depth + 1)
	if (number() || string() || take("true") || take("false") || take("null"))
		return 1
	return wrong("no value")
}

BEGIN {
	hex = "[0-9a-fA-F]"
	control = "\001-\037"
}

{
	bad = 0
	pieces = split($0, piece, ",")
	rest = piece[1]
	next_piece = 2
	skip(0)
	if (value(0)) {
		blanks()
		if (rest != "")
			wrong("more than a value")
	}
	failed += bad
}

END {
	if (!NR) {
		print "no line"
		failed = 1
	}
	exit failed != 0
}' "$@"
