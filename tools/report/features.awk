# SPDX-License-Identifier: GPL-2.0-only
#
# The table under the heading "How it compares" of a text in reStructuredText, a simple one, as HTML.

function escaped(text) {
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	while (match(text, /``[^`]+``/))
		text = substr(text, 1, RSTART - 1) "<code>" substr(text, RSTART + 2, RLENGTH - 4) "</code>" \
			substr(text, RSTART + RLENGTH)
	return text
}

function end_row(    i, tag) {
	if (!filled)
		return
	tag = row++ ? "td" : "th"
	printf "<tr>"
	for (i = 1; i <= columns; i++) {
		if (cell[i] == "\\")
			cell[i] = ""
		printf "<%s>%s</%s>", i == 1 ? "th" : tag, escaped(cell[i]), i == 1 ? "th" : tag
		cell[i] = ""
	}
	print "</tr>"
	filled = 0
}

/^How it compares$/ { here = 1; next }
here && /^=+( +=+)+ *$/ {
	if (!lines++) {
		rest = $0
		at = 1
		while (match(rest, /=+/)) {
			columns++
			start[columns] = at + RSTART - 1
			at += RSTART + RLENGTH - 1
			rest = substr(rest, RSTART + RLENGTH)
		}
		print "<table class=\"features\">"
	} else {
		end_row()
	}
	if (lines == 3) {
		print "</table>"
		exit
	}
	next
}
lines {
	if (substr($0, 1, 1) != " ")
		end_row()
	filled = 1
	for (i = 1; i <= columns; i++) {
		text = i < columns ? substr($0, start[i], start[i + 1] - start[i]) : substr($0, start[i])
		gsub(/^ +| +$/, "", text)
		if (text != "")
			cell[i] = cell[i] (cell[i] == "" ? "" : " ") text
	}
}
END { exit lines == 3 ? 0 : 1 }
