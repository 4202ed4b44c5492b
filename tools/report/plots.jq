# SPDX-License-Identifier: GPL-2.0-only
#
# The plots, each as { name, title, script }, a script of gnuplot's that style.gp precedes; or as
# { name, error }, if there is none. Only numbers and quoted strings of a file get into a script.
include "common";

# An error costs one plot, and not all.
def attempt($name; plot): [try plot catch { name: $name, error: tostring }][];

# In single quotes, gnuplot has no special character but the quote.
def quoted: "'" + (clean | gsub("'"; "''")) + "'";

# Each value once, in the order in which they come.
def in_order(values): reduce values as $v ([]; if index([$v]) then . else . + [$v] end);

def wheel_like($schemes): role($schemes) == "wheel";
def width($schemes): if wheel_like($schemes) then 3.5 elif .scheme | IN("timer_list", "hrtimer") then 2 else 1.1 end;

# The start of a script.
def terminal($name; $title; $height):
	"set terminal svg size 480,\($height) dynamic noenhanced background '#ffffff' font 'sans-serif,13' name \($name | gsub("[^a-z0-9]"; "_") | quoted)\n" +
	"set label \($title | quoted) at screen 0.012, screen \(1 - 14 / $height) left font 'sans-serif bold,13.5'";

def dash: [null, "solid", "(8,3)", "(2,2.5)", "(9,3,2,3)", "(1.5,4)"][.];

# ---- curves with a band, and labels at the right

# Places labels at distances of at least $gap, as close as possible to where they should be, .want of
# 0 to 1: neighbours that are too close are pooled around their mean.
def spread($gap):
	sort_by(.want)
	| . as $all
	| reduce range(length) as $i ([];
		. + [{ sum: ($all[$i].want - $i * $gap), nr: 1 }]
		| until(length < 2 or .[-2].sum / .[-2].nr <= .[-1].sum / .[-1].nr;
			.[:-2] + [{ sum: (.[-2].sum + .[-1].sum), nr: (.[-2].nr + .[-1].nr) }]))
	| [.[] | range(.nr) as $_ | .sum / .nr]
	| . as $at
	| ([1 - ($all | length - 1) * $gap, 0] | max) as $top
	| [range($all | length) as $i
	   | $all[$i] + { at: (([([$at[$i], $top] | min), 0] | max) + $i * $gap) }];

# Tics of a logarithmic axis: three in a decade if there are few decades.
def log_tics($from; $to):
	((($to / $from) | log10) < 2.2) as $fine
	| [range(($from | log10 | floor); ($to | log10 | ceil) + 1) as $e
	   | (1, if $fine then 2, 5 else empty end) * pow(10; $e) | select(. >= $from and . <= $to)
	   | "\(short | quoted) \(.)"] | join(", ");

# Curves: an array of { scheme, points: [[x, y, lo, hi], ...] }; $axes: x and y, what is written there,
# and log for a logarithmic y axis. Coordinates are logarithms of y already if it is "own".
def curves($name; $title; $axes; $schemes):
	# Labels of an axis would meet where each scheme had a number of its own.
	(map(.points[][0]) | group_by(.) | first((map(select(length > 1)), .) | select(length > 0)) | map(.[0])) as $xs
	| (map(.points[][2:4][]) | min) as $low | (map(.points[][2:4][]) | max) as $high
	| (map(.points[][0]) | min) as $left | (map(.points[][0]) | max) as $right
	| (if $axes.y_range then $axes.y_range
	   else [$low / 1.25, ([$high * 1.25, $low * 3] | max)] end) as [$bottom, $top]
	| ($axes.height // 400) as $height
	| def place: if $axes.own then (. - $bottom) / ($top - $bottom)
		     else ((. / $bottom) | log) / (($top / $bottom) | log) end;
	  map(. + { want: (.points[-1][1] | place) })
	| spread(15 / ($height * 0.8))
	| . as $curves
	| [ terminal($name; $title; $height),
	    "set xlabel \($axes.x | quoted) offset 0, 0.7",
	    "set lmargin at screen 0.115; set rmargin at screen 0.735",
	    "set tmargin at screen 0.92; set bmargin at screen 0.135",
	    (if $axes.x_range then "set xrange [\($axes.x_range[0]):\($axes.x_range[1])]"
	     elif $left == $right then "set xrange [\($left / 2):\($right * 2)]"
	     else "set xrange [\(if $axes.own then $left else $left * 0.98 end):\($right)]" end),
	    "set yrange [\($bottom):\($top)]",
	    (if $axes.own then empty
	     else "set logscale xy; set ytics (\(log_tics($bottom; $top)))",
		  "set xtics (\(if $axes.x_range then log_tics($axes.x_range[0]; $axes.x_range[1])
				else $xs | map("\(short | quoted) \(.)") | join(", ") end))" end),
	    ($axes.lines // [])[],
	    ($curves | to_entries[]
	     | .key as $i | .value | known($schemes; .scheme) as $s
	     | "$d\($i) << END", (.points[] | map(tostring) | join(" ")), "END",
	       ("set arrow from first \(.points[-1][0]), first \(.points[-1][1]) to graph 1.03, graph \(.at)" +
		" nohead lc rgb \($s.colour | quoted) lw 0.8 dt (1.5,2.5)"),
	       ("set label \((.label // .scheme) | quoted) at graph 1.045, graph \(.at) left" +
		(if role($schemes) | IN("wheel", "own") then " font 'sans-serif bold,12.5'" else " font 'sans-serif,12'" end))),
	    "plot " + ([
		($curves | to_entries[] | .key as $i | .value | known($schemes; .scheme) as $s
		 | select(.points | length > 1 and any(.[2] != .[3]))
		 | "$d\($i) using 1:3:4 with filledcurves lc rgb \($s.colour | quoted) fs transparent solid 0.18 noborder title \("\(.scheme), spread" | quoted)"),
		($curves | to_entries | reverse[] | .key as $i | .value | known($schemes; .scheme) as $s
		 | "$d\($i) using 1:2 with linespoints lc rgb \($s.colour | quoted) lw \(width($schemes))" +
		   " dt \($s.dash | dash) pt \($s.point) ps \(if wheel_like($schemes) then 0.7 else 0.55 end) title \(.scheme | quoted)")
	    ] | join(", \\\n  ")) ]
	| { name: $name, title: $title, script: join("\n") };

# Figures as curves against n.
def against_n:
	group_by(.scheme)
	| map({ scheme: .[0].scheme, points: (sort_by(.n) | map([.n, .v, .lo, .hi])) })
	| map(select(.points | all(.[2] > 0)));

def n_axes($unit): { x: "timers (n)", unit: $unit };

def cost_plots($schemes):
	map(select(.quantity == "cost" and .workload != "rmw"))
	| . as $all | in_order(.[] | { set, workload })[] as $of
	| $all | map(select(.set == $of.set and .workload == $of.workload))
	| select(.[0].set | IN("exact", "native", "guest", "programs", "user"))
	| .[0] as $one | "cost-\($one.set)-\($one.workload)" as $name
	| attempt($name; against_n | select(length > 0)
		| curves($name; "\($one.workload): \($one.unit) per operation, \($one.set)"; n_axes($one.unit);
			 $schemes));

# What mixtures of operations take. That of connections is drawn next to a server's: cpu_plots().
def mixture_plots($schemes):
	map(select(.quantity == "cpu" and .set == "mixtures" and .workload != "connections" and role($schemes) != "base"))
	| . as $all | in_order(.[].workload)[] as $of | "cost-mixtures-\($of)" as $name
	| attempt($name; $all | map(select(.workload == $of)) | against_n | select(length > 0)
		| curves($name; "\($of), a mixture: % of a CPU"; n_axes("%"); $schemes));

# ---- a table of numbers in colours

# Cells: [{ row, column, text, share }], share from -1 (another is ahead) over 0 to 1 (the wheel is);
# or grey, from 0 to 1, instead.
def mix($from; $to; $share): [range(3) as $i | $from[$i] + ($to[$i] - $from[$i]) * $share | round];
def colour: (if .grey then mix([255, 255, 255]; [150, 150, 150]; [.grey, 1] | min)
	     elif .share < 0 then mix([255, 255, 255]; [230, 159, 0]; [-.share, 1] | min)
	     else mix([255, 255, 255]; [86, 180, 233]; [.share, 1] | min) end)
	| .[0] * 65536 + .[1] * 256 + .[2];

def heat($name; $title; $rows; $columns; $notes):
	. as $cells | ($columns | length) as $nr | ($rows | length) as $height
	| (if $nr > 6 then 84 else 62 end) as $head
	| ($head + 22 * $height + 14 + 15 * ($notes | length)) as $size
	| [ terminal($name; $title; $size),
	    "unset border; unset xtics; unset ytics",
	    "set lmargin at screen 0.26; set rmargin at screen 0.995",
	    "set tmargin at screen \(1 - $head / $size); set bmargin at screen \((12 + 15 * ($notes | length)) / $size)",
	    "set xrange [0:\($nr)]; set yrange [\($height):0]",
	    ($columns | to_entries[] | .key as $i | .value
	     | if $nr > 6 then "set label \(quoted) at first \($i + 0.4), graph 1 offset 0, 0.4 rotate by 38 left font 'sans-serif,11.5'"
	       else split("_") as $words
	       | range($words | length) as $w
	       | "set label \($words[$w] | quoted) at first \($i + 0.5), graph 1 offset 0, \((($words | length) - $w) * 1.02 - 0.35) center font 'sans-serif,11.5'"
	       end),
	    ($rows | to_entries[] | "set label \(.value | quoted) at graph 0, first \(.key + 0.5) offset -0.7, 0 right font 'sans-serif,12'"),
	    ($cells[] | . as $c | ($rows | index($c.row)) as $y | ($columns | index($c.column)) as $x
	     | "set label \(.text | quoted) at first \($x + 0.5), first \($y + 0.5) center front font 'sans-serif,12'"),
	    (range($notes | length) as $i
	     | "set label \($notes[$i] | quoted) at screen 0.012, screen \((8 + 15 * (($notes | length) - 1 - $i)) / $size) left font 'sans-serif,11'"),
	    "$d << END",
	    ($cells[] | . as $c | ($rows | index($c.row)) as $y | ($columns | index($c.column)) as $x
	     | "\($x + 0.5) \($y + 0.5) 0.48 0.46 \($c | colour)"),
	    "END",
	    "plot $d using 1:2:3:4:5 with boxxyerror fs solid noborder lc rgb variable title 'ratios'" ]
	| { name: $name, title: $title, script: join("\n") };

# What others take, as a multiple of the wheel's, at the n that is worst for the wheel.
def ratio_plot($set; $schemes):
	map(select(.quantity == "cost" and .set == $set)) as $all
	| ($all | map(.n) | unique | map(count)) as $sizes
	| ($all | map(select(role($schemes) == "wheel" and .v > 0) | { key: "\(.workload) \(.n)", value: .v }) | from_entries) as $wheel
	| [$all[] | select(role($schemes) == "other" and .v >= 0) | . + { ratio: (.v / ($wheel["\(.workload) \(.n)"] // empty)) }]
	| group_by([.scheme, .workload]) | map(min_by(.ratio))
	| select(length > 0)
	| in_order($all[].workload) as $order
	| . as $worst
	| ($order | map(select(. as $w | $worst | any(.workload == $w)))) as $columns
	| (in_order($all[].scheme)
	   | map(select(. as $s | $worst | any(.scheme == $s)))) as $rows
	| map({ row: .scheme, column: .workload, text: (.ratio | digits),
		share: ((.ratio | log) / (4 | log) | if . > 0.007 then 0.1 + . elif . < -0.007 then . - 0.1 else 0 end) })
	| heat("ratios-\($set)"; "What others take, as a multiple of the wheel's (\($set))"; $rows; $columns;
	       ["Blue: the wheel is ahead. Orange: the other is.",
		if $sizes | length > 1 then "Of n = \($sizes | join(", ")), the worst for the wheel." else "n = \($sizes[0])." end]);

def tick_plot($quantity; $name; $schemes):
	map(select(.quantity == $quantity and .set == "mixtures" and role($schemes) != "base"))
	| (map(.n) | max) as $n | map(select(.n == $n)) | select(length > 0)
	| in_order(.[].scheme) as $rows
	| in_order(.[].workload) as $columns
	| map({ row: .scheme, column: .workload, text: (.v | short), grey: ((([.v, 0] | max) + 1 | log10) / 5) })
	| heat("ticks-\($quantity)"; "\($name) per second, n = \($n | count)"; $rows; $columns;
	       ["Those above what the same trace takes without timers."]);

# ---- lateness, with the early side

# From 0, logarithmic to both sides from 1 µs on; ns become a position.
def position: (if . < 0 then -. else . end) as $x | ((1 + $x / 1000) | log10) * (if . < 0 then -1 else 1 end);

def position_tics:
	[[1e4, "10 µs"], [1e6, "1 ms"], [1e8, "100 ms"], [1e10, "10 s"]]
	| [.[] | "\(.[1] | quoted) \(.[0] | position)"] + [.[] | "\("−" + .[1] | quoted) \(-.[0] | position)"] + ["'0' 0"]
	| join(", ");

# Rows: [{ scheme, early, half, most, worst }] in ns, early being 0 or negative.
def lateness_rows($name; $title; $note; $schemes):
	map(select(.half != null)) | select(length > 0)
	| (length * 21 + 98) as $size
	| ([(map(.early) | min), -2000000] | min | position * 1.08) as $left
	| ([(map(.worst // .most // .half) | max), 2000000] | max | position * 1.05) as $right
	| to_entries
	| map(. + { s: known($schemes; .value.scheme), y: (.key + 0.5) }) as $rows
	| [ terminal($name; $title; $size),
	    "set lmargin at screen 0.26; set rmargin at screen 0.97",
	    "set tmargin at screen \(1 - 44 / $size); set bmargin at screen \(48 / $size)",
	    "unset ytics; set border 1",
	    "set xrange [\($left):\($right)]; set yrange [\($rows | length):0]",
	    "set xtics (\(position_tics)) nomirror font 'sans-serif,11'",
	    "set grid x",
	    "set object rectangle from graph 0, graph 0 to first 0, graph 1 fc rgb '#f3e3c3' fs solid 0.6 noborder behind",
	    "set arrow from first 0, graph 0 to first 0, graph 1 nohead lc rgb '#555555' lw 1",
	    "set label 'early' at first 0, graph 1 offset -0.6, 0.5 right font 'sans-serif,11.5'",
	    "set label 'late' at first 0, graph 1 offset 0.6, 0.5 left font 'sans-serif,11.5'",
	    "set label \($note | quoted) at screen 0.012, screen \(10 / $size) left font 'sans-serif,11'",
	    ($rows[] | "set label \(.value.scheme | quoted) at graph 0, first \(.y) offset -0.7, 0 right font 'sans-serif\(if .s.role == "wheel" then " bold" else "" end),12'"),
	    ($rows[] | .value as $v
	     | if $v.worst then "set arrow from first \($v.half | position), first \(.y) to first \($v.worst | position), first \(.y) nohead lc rgb \(.s.colour | quoted) lw \(if .s.role == "wheel" then 3 else 1.6 end)" else empty end,
	       if $v.early < 0 then "set arrow from first 0, first \(.y) to first \($v.early | position), first \(.y) nohead lc rgb \(.s.colour | quoted) lw 1.6" else empty end),
	    "$d << END",
	    ($rows[] | .y as $y | (.s.colour | ltrimstr("#")) as $c | .value
	     | (.half | "\(position) \($y) 0x\($c) 7"),
	       (.most // empty | "\(position) \($y) 0x\($c) 6"),
	       (.worst // empty | "\(position) \($y) 0x\($c) 2"),
	       (.early | select(. < 0) | "\(position) \($y) 0x\($c) 9")),
	    "END",
	    "plot $d using 1:2:4:3 with points pt variable lc rgb variable ps 0.75 title 'lateness'" ]
	| { name: $name, title: $title, script: join("\n") };

def value($quantity): map(select(.quantity == $quantity) | .v) | first;

def replay_lateness($schemes):
	map(select(.quantity | IN("late_p50", "late_p99", "late_max"))) | group_by([.set, .workload])[]
	| .[0] as $one | (map(.n) | max) as $n
	| map(select(.n == $n)) | group_by(.scheme)
	| select($one.set | IN("mixtures", "traces"))
	| "late-\($one.set)-\($one.workload)" as $name
	| attempt($name; map({ scheme: .[0].scheme, early: 0, half: value("late_p50"), most: value("late_p99"), worst: value("late_max") })
	| sort_by(.most)
	| lateness_rows($name;
		"\($one.workload), \(if $one.set == "traces" then "\($n) at once" else "n = \($n | count)" end): how late";
		"● half of them   ○ 99 in 100   × the worst.   An early one is an error."; $schemes));

def kick_lateness($schemes):
	map(select(.set == "connections" and (.quantity | IN("late_p50", "late_p99", "late_max", "false")) and role($schemes) != "base"))
	| select(length > 0) | max_by(.n) as $one | map(select(.n == $one.n and .timeout == $one.timeout))
	| (map(select(.quantity == "false") | .v) | add) as $false
	| group_by(.scheme)
	| map({ scheme: .[0].scheme, early: 0, half: value("late_p50"), most: value("late_p99"), worst: value("late_max") })
	| sort_by(.most)
	| lateness_rows("late-connections"; "\($one | at_n): when silent ones were closed";
		"● half of them   ○ 99 in 100   × the last one.   Too early: \($false)"; $schemes);

def program_lateness($schemes):
	map(select(.set == "programs" and (.quantity | IN("late", "earliest")))) | group_by(.scheme)
	| map({ scheme: .[0].scheme, early: -(value("earliest") // 0), half: (value("late") // 0) })
	| select(length > 0) | sort_by(.half)
	| lateness_rows("late-programs"; "Timers of programs: how early, how late"; "● half of the timers are later than this   ▲ the earliest"; $schemes);

# Percentiles of timers with timeouts of all lengths; the axis has a tick for each nine.
def percentile_plot($schemes):
	map(select(.set == "timeouts")) | select(length > 0)
	| (map(select(.quantity == "early") | .v) | add) as $early
	| map(select(.quantity == "late")) | select(length > 0) | .[0].n as $n | .[0].range as $range
	| group_by(.scheme)
	| map({ scheme: .[0].scheme,
		points: (map((.workload | tonumber) as $p
			     | [(if $p == 1 then 5 else -((1 - $p) | log10) end), (.v | position)]
			     | . + [.[1], .[1]]) | sort) })
	| (map(.points[][1]) | max) as $max
	| curves("percentiles"; "How late \($n | count) timers are, of \($range | map(time) | join(" to "))";
		 { x: "so many of the timers", own: true, y_range: [-1, $max * 1.04],
		   lines: ["set xtics ('half' 0.30103, '90 %%' 1, '99 %%' 2, '99.9 %%' 3, '99.99 %%' 4, 'all' 5)",
			   "set ytics (\(position_tics))", "set lmargin at screen 0.135", "set grid y",
			   "set object rectangle from graph 0, graph 0 to graph 1, first 0 fc rgb '#f3e3c3' fs solid 0.6 noborder behind",
			   "set label \("early: \($early) of all" | quoted) at graph 0.03, first -0.5 left font 'sans-serif,11.5'"] };
		 $schemes);

# ---- memory

def memory_bars($schemes):
	map(select(.quantity == "memory" and .set == "kernel"))
	| (map(.n) | max) as $n | map(select(.n == $n)) | select(length > 0)
	| group_by(.scheme)
	| map({ scheme: .[0].scheme, object: .[0].object,
		armed: (map(select(.workload == "armed") | .v) | first),
		moved: (map(select(.workload == "re-armed") | .v) | first) })
	| sort_by(.armed)
	| (length * 21 + 98) as $size | ([.[] | .armed // 0, .moved // 0] | max | if . > 0 then . else 1 end) as $max
	| to_entries | map(. + { s: known($schemes; .value.scheme), y: (.key + 0.5) }) as $rows
	| [ terminal("memory"; "Bytes per timer, n = \($n | count)"; $size),
	    "set lmargin at screen 0.26; set rmargin at screen 0.80",
	    "set tmargin at screen \(1 - 34 / $size); set bmargin at screen \(58 / $size)",
	    "unset ytics; set border 1; set grid x",
	    "set xrange [0:\($max * 1.08)]; set yrange [\($rows | length):0]",
	    "set xtics nomirror font 'sans-serif,11'",
	    "set label 'Dark: in the object. Light: elsewhere. Circle: the most while all are moved.' at screen 0.012, screen \(10 / $size) left font 'sans-serif,11'",
	    ($rows[] | "set label \(.value.scheme | quoted) at graph 0, first \(.y) offset -0.7, 0 right font 'sans-serif\(if .s.role == "wheel" then " bold" else "" end),12'"),
	    ($rows[] | "set label \(.value | (.armed | digits) + (if (.moved // 0) > 1.01 * .armed then ", moved: \(.moved | digits)" else "" end) | quoted) at first \([.value.armed, .value.moved // 0] | max), first \(.y) offset 0.9, 0 left font 'sans-serif,11.5'"),
	    "$object << END", ($rows[] | "0 \(.y) 0 \(.value.object) \(.y - 0.34) \(.y + 0.34) 0x\(.s.colour | ltrimstr("#"))"), "END",
	    "$rest << END", ($rows[] | "0 \(.y) \(.value.object) \(.value.armed) \(.y - 0.34) \(.y + 0.34) 0x\(.s.colour | ltrimstr("#"))"), "END",
	    "$moved << END", ($rows[] | select(.value.moved) | "\(.value.moved) \(.y)"), "END",
	    "plot $object using 1:2:3:4:5:6:7 with boxxyerror fs solid noborder lc rgb variable title 'in the object', \\",
	    " $rest using 1:2:3:4:5:6:7 with boxxyerror fs transparent solid 0.35 noborder lc rgb variable title 'elsewhere', \\",
	    " $moved using 1:2 with points pt 6 ps 0.7 lc rgb '#000000' title 'moved'" ]
	| { name: "memory", title: "Bytes per timer", script: join("\n") };

def memory_plots($schemes):
	attempt("memory"; memory_bars($schemes)),
	attempt("memory-mixture"; map(select(.quantity == "bytes" and .set == "mixtures" and .workload == "connections")) | against_n | select(length > 0)
	 | curves("memory-mixture"; "connections, a mixture: bytes per timer"; n_axes("bytes"); $schemes)),
	attempt("memory-programs"; map(select(.quantity == "memory" and .set == "programs" and .v >= 1)) | against_n | select(length > 0)
	 | curves("memory-programs"; "Timers of programs: bytes per timer"; n_axes("bytes"); $schemes));

# ---- CPU for connections

def cpu_plots($schemes):
	attempt("cpu-mixture"; map(select(.quantity == "cpu" and .set == "mixtures" and .workload == "connections" and role($schemes) != "base"))
	 | against_n | select(length > 0)
	 | curves("cpu-mixture"; "connections, a mixture: % of a CPU"; n_axes("%"); $schemes)),
	attempt("cpu-connections"; map(select(.quantity == "per_second" and role($schemes) != "base")) as $all
	 | ($all | group_by(.timeout) | max_by(map(.n) | unique | length) // []) as $same
	 | $same | select(length > 0) | .[0] as $one | against_n | select(length > 0)
	 | curves("cpu-connections"; "A server, timeout \($one.timeout) s: \($one.unit)";
		  n_axes("") + { x: "connections" }; $schemes)),
	attempt("cpu-timeout"; map(select(.quantity == "per_second" and role($schemes) != "base")) as $all
	 | ($all | group_by(.n) | max_by(map(.timeout) | unique | length) // []) as $same
	 | $same | select(map(.timeout) | unique | length > 1) | .[0] as $one
	 | map(.n = .timeout) | against_n | select(length > 0)
	 | curves("cpu-timeout"; "A server, \($one.n | count) connections: \($one.unit)";
		  n_axes("") + { x: "timeout in seconds" }; $schemes));

# ---- replays

# Each scheme is a point: CPU against lateness.
def trade_plots($schemes):
	map(select((.quantity == "cpu" or .quantity == "late_p99") and (.set == "traces" or .workload == "connections")))
	| group_by([.set, .workload])[] | .[0] as $one | (map(.n) | max) as $n
	| "trade-\($one.set)-\($one.workload)" as $name
	| attempt($name; map(select(.n == $n)) | group_by(.scheme)
	| map({ scheme: .[0].scheme, cpu: value("cpu"), late: value("late_p99") }
	      | select((.cpu // 0) > 0 and (.late // 0) > 0))
	| map({ scheme, points: [[.cpu, .late / 1000000] | . + [.[1], .[1]]] }) | select(length > 0)
	| (map(.points[0][0]) | [min / 1.3, max * 1.3]) as [$left, $right]
	| curves($name;
		"\($one.workload), \(if $one.set == "traces" then "\($n) at once" else "n = \($n | count)" end): ms late (99 %), against CPU";
		{ x: "% of a CPU", x_range: [$left, $right] };
		$schemes));

# Names of files, each of which there is once.
def unique_names:
	reduce .[] as $plot ({ seen: {}, plots: [] };
		.seen as $seen | ($plot.name | gsub("[^A-Za-z0-9_-]"; "_")) as $base
		| first($base, (range(2; infinite) | "\($base)-\(.)") | select($seen[.] | not)) as $name
		| .seen[$name] = true | .plots += [$plot | .name = $name])
	| .plots;

# All of them, as an array.
def plots($schemes):
	def ratios($set): attempt("ratios-\($set)"; ratio_plot($set; $schemes));
	def ticks($quantity; $name): attempt("ticks-\($quantity)"; tick_plot($quantity; $name; $schemes));
	[ratios("exact"), ratios("native"), ratios("programs"), ratios("user"), ratios("api"),
	 cost_plots($schemes), mixture_plots($schemes), attempt("percentiles"; percentile_plot($schemes)), replay_lateness($schemes),
	 attempt("late-programs"; program_lateness($schemes)),
	 attempt("late-connections"; kick_lateness($schemes)), memory_plots($schemes), cpu_plots($schemes),
	 ticks("softirqs"; "Timer softirqs"), ticks("interrupts"; "Timer interrupts"),
	 trade_plots($schemes)]
	| unique_names;
