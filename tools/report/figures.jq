# SPDX-License-Identifier: GPL-2.0-only
#
# What a JSON file of a benchmark says, as a list of figures that all look the same. A figure has
#	quantity	what it is: cost, memory, cpu, late_p50 and others
#	set		what it was measured in: a lane, mixtures, traces, api, connections, programs
#	workload, scheme, n, unit
#	v, lo, hi	the median, the smallest and the largest of the rounds
# and, with connections, timeout in s; with memory in the kernel, object, bytes in the object;
# with timeouts, range, the shortest and the longest in ns.
include "common";

# Names become labels, and names of files. Two that are too long, and differ, do so when they are cut.
def cut: if length <= 60 then . else .[:48] + "…\(explode | reduce .[] as $c (0; (. * 31 + $c) % 1000000007))" end;
def text($name): if type == "string" then clean | cut else error("\($name) is no string") end;
# A sum is written in the same way by all versions of jq, what it was read from is not.
def real($name): if type == "number" then . + 0 else error("\($name) is no number") end;
def list($name): if type == "array" then . else error("\($name) is no list") end;

def figure($quantity; $set; $workload; $unit; $v; $lo; $hi):
	{ quantity: $quantity, set: ($set | clean | cut), workload: ($workload | text("workload")),
	  scheme: ((.scheme // .peer) | text("scheme")), n: (.n | real("n")),
	  unit: ($unit | text("unit")), v: ($v | real("median")), lo: ($lo | real("min")),
	  hi: ($hi | real("max")) };

def figure($quantity; $set; $workload; $unit; $v): figure($quantity; $set; $workload; $unit; $v; $v; $v);

# Of an order, only random has no name of its own.
def in_order($set): if (.order // "random") == "random" then $set else "\($set)-\(.order)" end;

# ---- twbench, on timers in the kernel

# The percentiles that a histogram shows: at b, it has the number of those less than 2^b ns late.
def percentiles:
	. as $r | (.late | add) as $all
	| [0.5, 0.9, 0.99, 0.999, 0.9999][]
	| select($all > 0 and (1 - .) * $all >= 0.99) as $p
	| first(foreach range($r.late | length) as $b (0; . + $r.late[$b];
		select(. >= $p * $all) | $b)) as $b
	| $r | figure("late"; "timeouts"; "\($p)"; "ns"; [pow(2; $b), .worst_ns] | min);

def lateness:
	.lateness | list("lateness")[]
	| { range: [.min_ns, .max_ns | real("a timeout")] } as $range
	| (percentiles,
	   figure("late"; "timeouts"; "1"; "ns"; .worst_ns),
	   figure("early"; "timeouts"; "early"; ""; .early)) + $range;

def memory_in_kernel:
	.memory | list("memory")[]
	| . as $m | (if .timer == "handle" then .scheme += "_handle" else . end)
	| figure("memory"; "kernel"; "armed"; "bytes"; .sum) + { object: ($m.in_object | real("in_object")) },
	  if has("sum_rearmed") then
		figure("memory"; "kernel"; "re-armed"; "bytes"; .sum_rearmed) + { object: ($m.in_object | real("in_object")) }
	  else empty end;

def in_kernel:
	(.records | list("records")[] | select(.workload != "rmw" or .scheme == "limit")
	 | figure("cost"; in_order(.lane | text("lane")); .workload; .unit; .median; .min; .max)),
	memory_in_kernel, lateness;

# ---- twbench mix, twbench replay

def replay_quantities: [
	["cpu_percent", "cpu", "% of a CPU"], ["late_p50_ns", "late_p50", "ns"],
	["late_p99_ns", "late_p99", "ns"], ["late_max_ns", "late_max", "ns"],
	["longest_softirq_ns", "softirq", "ns"], ["longest_interrupt_ns", "interrupt", "ns"],
	["interrupts_per_s", "interrupts", "per second"], ["softirqs_per_s", "softirqs", "per second"],
	["bytes_per_timer", "bytes", "bytes"], ["arm", "arm", ""], ["move", "move", ""],
	["cancel", "cancel", ""], ["expiry", "expiry", ""] ];

def replays:
	.replays | list("replays")[]
	| . as $r | replay_quantities[] as [$from, $quantity, $unit]
	| select($r[$from] != null)
	| $r | .[$from] as $s
	| (if .trace | endswith(".trace") then "traces" else "mixtures" end) as $set
	| figure($quantity; $set; .trace | rtrimstr(".trace"); if $unit == "" then .unit else $unit end;
		 $s.median; $s.min; $s.max);

# ---- twbench api, twbench connections

def api:
	(.records | list("records")[]
	 | figure("cost"; "api"; .operation; .unit; .median; .min; .max)),
	(.memory | list("memory")[] | figure("memory"; "api"; "armed"; "bytes"; .pages));

def connections:
	{ timeout: (.timeout | real("timeout")), heartbeat: (.heartbeat | real("heartbeat")) } as $plan
	| .records | list("records")[]
	| (figure("timeouts"; "connections"; "timeouts"; .unit; .timeouts),
	   figure("server"; "connections"; "server"; .unit; .server),
	   figure("per_second"; "connections"; "timeouts"; "\(.unit) per second"; .per_second),
	   figure("arming"; "connections"; "arming"; .unit; .arming),
	   figure("memory"; "connections"; "memory"; "bytes"; .memory),
	   figure("late_p50"; "connections"; "kicks"; "ns"; .late_p50_ns),
	   figure("late_p99"; "connections"; "kicks"; "ns"; .late_p99_ns),
	   figure("false"; "connections"; "kicks"; ""; .false_kicks),
	   figure("late_max"; "connections"; "kicks"; "ns"; .late_max_ns)) + $plan;

# ---- bench-user, bench-programs

def user:
	.records | list("records")[]
	| figure("cost"; "user"; .workload; "ns"; .ns.median; .ns.min; .ns.max),
	  if has("bytes_per_timer") then
		figure("memory"; "user"; "armed"; "bytes"; .bytes_per_timer)
	  else empty end;

# Memory of the kernel is not counted there, and a timer of the kernel has hardly any other. In PHP it is
# that of connections with heartbeats, which is not to be compared with a timer's.
def programs:
	.records | list("records")[]
	| if .operation == "bytes" then
		select(.peer | IN("timerfd", "posix_timer", "limit") | not)
		| (if .peer | startswith("php_") then "heartbeats" else "armed" end) as $workload
		| figure("memory"; "programs"; $workload; "bytes"; .median; .min; .max)
	  elif .operation | IN("fired", "early") then
		figure(.operation; "programs"; .operation; ""; .median)
	  elif .operation | IN("earliest_us", "late_us") then
		figure(.operation | rtrimstr("_us"); "programs"; .operation; "ns"; .median * 1000)
	  else
		figure("cost"; in_order("programs"); .operation; "ns"; .median; .min; .max)
	  end;

def figures:
	if type != "object" then error("this is not what a benchmark here writes")
	elif .tool == "bench-user" then user
	elif .tool == "bench-programs" then programs
	elif .tool != "twbench" then error("this is not what a benchmark here writes")
	elif has("replays") then replays
	elif has("heartbeat") then connections
	elif has("lateness") then in_kernel
	else api end;

# Figures that are none: no benchmark measures such, and no axis has room for them.
def within: . == 0 or (. >= 1e-15 and . <= 1e15) or (. <= -1e-15 and . >= -1e15);
def is_figure:
	.n >= 1 and all(.n, .v, .lo, .hi, (.timeout, .heartbeat, .object, .range[]? | . // 0); within);

# What a file has; left_out is the number of figures that are none.
def read:
	[figures] | map(select(is_figure)) as $good
	| { figures: $good, left_out: (length - ($good | length)) };

# What a reader needs to do the same again.
def head:
	{ tool: .tool, version: .version, kernel: .kernel, cpu_model: .cpu_model, lane: .lane,
	  seed: .seed, command: .command }
	| map_values(if type == "string" then clean elif type | IN("object", "array") then null else . end);
