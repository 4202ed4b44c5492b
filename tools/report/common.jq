# SPDX-License-Identifier: GPL-2.0-only
#
# What the comparison, the plots and the page have in common.

# Strings come from files, and go into lines of text.
def clean: gsub("[[:cntrl:]]"; " ");

# $schemes is schemes.tsv: an object of the columns of each, by name.
def known($schemes; $name):
	$schemes[$name] // { scheme: $name, role: "other", colour: "#666666", dash: 5, point: 1, whom: "" };
def role($schemes): known($schemes; .scheme).role;

# The lines of a table as arrays. Those that begin with # are comments.
def rows: split("\n") | map(select(. != "" and (startswith("#") | not)) | split("\t"));

def schemes:
	rows | map({ key: .[0], value: { scheme: .[0], role: .[1], colour: .[2], dash: (.[3] | tonumber),
					 point: (.[4] | tonumber), whom: .[5] } }) | from_entries;

# Three digits that count.
def digits:
	if . == 0 then "0"
	else (if . < 0 then "-" else "" end) as $sign
	| (if . < 0 then -. else . end)
	| (log10 | floor) as $e
	| if $e >= 2 then "\($sign)\(round)"
	  else pow(10; 2 - $e) as $m | ((. * $m | round) / $m) as $x
	  | "\($sign)\($x | tostring)"
	  end
	end;

# The same with the suffixes k and M.
def short:
	if . >= 999500 then "\(. / 1000000 | digits)M"
	elif . >= 9995 then "\(. / 1000 | digits)k"
	else digits end;

# A number of timers is never rounded.
def count:
	if . >= 1000000 and . % 100000 == 0 then "\(. / 1000000)M"
	elif . >= 1000 and . % 100 == 0 then "\(. / 1000)k"
	else tostring end;

# ns as a time.
def time:
	if . >= 999500000 then "\(. / 1000000000 | digits) s"
	elif . >= 999500 then "\(. / 1000000 | digits) ms"
	elif . >= 999.5 then "\(. / 1000 | digits) µs"
	else "\(digits) ns" end;

# A figure's value, with its unit.
def with_unit($unit):
	if $unit == "ns" then time
	elif $unit == "% of a CPU" then "\(digits) % of a CPU"
	elif $unit == "" then digits
	else "\(short) \($unit)" end;

# How a workload is called with its number of timers.
def at_n:
	if .timeout then "\(.n | count) connections, timeout \(.timeout) s"
	elif .set == "traces" then "\(.n) at once"
	else "n = \(.n | count)" end;
