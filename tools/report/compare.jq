# SPDX-License-Identifier: GPL-2.0-only
#
# Who is ahead: for each quantity, set, workload and n, the wheel and the best of all others.
include "common";

# What is compared: a class, for the first screen, and how the quantity is called. Of the lateness of
# programs, much is the machine's.
def in_set: if .set == "api" then "in a program" elif .set == "exact" then "in the kernel"
	elif .set | IN("programs", "user") then "in userspace"
	elif .set == "programs-sequential" then "in userspace, in memory order"
	else "in the kernel, \(.set)" end;

def about($class; $what): { class: $class, what: $what };

def kind:
	if .quantity == "cost" then
		about("cost " + (in_set | split(",")[0]); "\(.workload) \(in_set)")
	elif .set == "connections" then
		if .quantity == "timeouts" then about("CPU of a server"; "CPU for the timeouts of a server")
		elif .quantity == "late_p99" then about("lateness of a server"; "how late 99 % of idle connections were closed")
		elif .quantity == "memory" then about("memory"; "memory for each connection of a server")
		else null end
	elif .quantity == "memory" and .workload == "armed" then
		about("memory"; if .set == "kernel" then "memory in the kernel" elif .set == "api" then "memory of a program's timers" else "memory in userspace" end)
	elif .set | IN("mixtures", "traces") then
		if .quantity == "cpu" then about("CPU"; "CPU, \(.workload)")
		elif .quantity == "late_p99" then about("lateness"; "how late 99 % are, \(.workload)")
		elif .quantity == "softirq" then about("softirq"; "longest softirq, \(.workload)")
		else null end
	elif .quantity == "late" and .workload == "0.99" then about("lateness"; "how late 99 % are, \(.range | map(time) | join(" to "))")
	else null end;

# In the figures of replays the largest n counts: with few timers, they are hardly above 0.
def largest_only: .set | IN("mixtures", "traces");

# Less than a hundredth of a percent of a CPU is taken for that much. Ratios that are within the spread,
# or within a hundredth, are none.
def floor_of: if .quantity == "cpu" then 0.01 else 0 end;
def size: [.v, floor_of] | max;
def counts: size > 0;
def less($a; $b): $a.hi < $b.lo and ($b | size) > 1.01 * ($a | size);

def comparison($schemes):
	map(select(role($schemes) != "base"))
	| (map(select(role($schemes) == "wheel")) | first) as $wheel
	| map(select(role($schemes) == "other" and counts)) as $others
	| select($wheel and ($wheel | counts) and ($others | length) > 0)
	| ($others | sort_by(.v)) as $others
	| $others[0] as $best
	| ($wheel | kind + { quantity, set, workload, n, unit, timeout }) +
	  { by: $wheel.scheme, wheel: $wheel.v, other: $best.scheme, value: $best.v,
	    others: ($others | map({ scheme, v, ratio: (size / ($wheel | size)) })) }
	| if less($wheel; $best) then . + { verdict: "ahead", ratio: (($best | size) / ($wheel | size)) }
	  elif less($best; $wheel) then
		. + { verdict: "behind", ratio: (($wheel | size) / ($best | size)),
		      before: ($others | map(select(less(.; $wheel)) | .scheme)) }
	  else . + { verdict: "equal", ratio: 1 } end;

def comparisons($schemes):
	map(select(kind))
	| group_by([.quantity, .set, .workload])
	| map((map(.n) | max) as $max | map(select(.n == $max or (largest_only | not))))
	| add // []
	| group_by([.quantity, .set, .workload, .n, .timeout])
	| map(comparison($schemes));

# For the first screen: of each quantity, the n at which the ratio is largest; then the largest ratio
# of each class, then the second of each, and so on. Both verdicts are treated in the same way.
def foremost($verdict):
	map(select(.verdict == $verdict))
	| group_by(.what) | map(max_by(.ratio))
	| group_by(.class)
	| map(sort_by(-.ratio) | to_entries | map(.value + { rank: .key })) | add // []
	| sort_by(.rank, -.ratio);
