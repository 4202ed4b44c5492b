# SPDX-License-Identifier: GPL-2.0-only
#
# The body of the page. Input: { figures, plots, files }. A line "@svg NAME" is replaced by that plot,
# and "@features" by a table of the documentation.
include "common";
include "compare";

def html: tostring | clean | @html;
def bold: "<b>\(html)</b>";
def number: "<td class=\"number\">\(html)</td>";
def cell: "<td>\(html)</td>";
def whom($schemes): known($schemes; .).whom;

# ---- the first screen

# What a scheme without a remark is right for is not known.
def right_for($schemes): whom($schemes) | if . == "" then "what is not in the table of this report yet" else . end;

def with($unit): with_unit($unit) | html;

# $new: this scheme has not been named before, so it has to be said for whom it is.
def item($new; $schemes):
	. as $c
	| "<li><span class=\"ratio\">\(.ratio | digits)×</span> <b>\(.what | html)</b>, \(at_n | html): " +
	  if .verdict == "ahead" then
		"\(.wheel | with($c.unit)), the next, \(.other | html), \(.value | with($c.unit))</li>"
	  else
		"\(.other | bold) \(.value | with($c.unit)), the wheel \(.wheel | with($c.unit))" +
		(if .before | length > 1 then ". Ahead as well: \(.before[1:4] | join(", ") | html)" +
			(if .before | length > 4 then " and \(.before | length - 4) more" else "" end) + "."
		 else "" end) +
		(if $new then "<span class=\"whom\">\(.other | html): right for \(.other | right_for($schemes) | html).</span>" else "" end) +
		"</li>"
	  end;

def column($all; $verdict; $schemes):
	($all | map(select(.verdict == $verdict)) | length) as $nr
	| ($all | foremost($verdict) | .[:6] | sort_by(-.ratio)) as $first
	| "<div class=\"\($verdict)\"><h2>\(if $verdict == "ahead" then "The wheel is ahead" else "Another scheme is ahead" end)" +
	  " in \($nr) of \($all | length)</h2><ul>",
	  (if $verdict == "ahead" then "<li class=\"whom\">Right for \("wheel" | right_for($schemes) | html).</li>" else empty end),
	  (range($first | length) as $i | $first[$i]
	   | item(.other as $name | $first[:$i] | any(.other == $name) | not; $schemes)),
	  (if $nr == 0 then "<li>In none of these figures.</li>" else empty end),
	  "</ul></div>";

def first_screen($all; $schemes):
	. as $in
	| ($in.files | map(select(.missing | not))) as $there
	| "<h1>twheel and other ways to keep timeouts</h1>",
	  "<p class=\"lead\">twheel \($there | map(.version // empty) | unique | join(", ") | html) next to " +
	  "\($in.figures | map(select(role($schemes) == "other") | .scheme) | unique | length) other schemes, with " +
	  "\($in.figures | map(select(.set != "traces") | .n) | [min // 0, max // 0] | map(count) | join(" to ") | html) timers or connections, on Linux " +
	  "\($there | map(.kernel // empty) | unique | join(", ") | html): \($in.figures | length) figures from \($there | length) files. " +
	  "What can be compared is compared with the best of all others; the largest ratios of each kind are here, in both columns alike.</p>",
	  (if $all | length > 0 then
		"<div class=\"verdict\">", column($all; "ahead"; $schemes), column($all; "behind"; $schemes), "</div>",
		"<p class=\"small\">\($all | map(select(.verdict == "equal")) | length) are equal, within their spread or 1 %. " +
		"<a href=\"#all\">All of them</a>, <a href=\"#whom\">who should take another scheme</a>, <a href=\"#runs\">how to repeat this</a>.</p>"
	   else "<p class=\"gap\">There are no figures yet in which the wheel and others can be compared.</p>" end);

# ---- sections

def plot($name): "<figure>", "@svg \($name)", "</figure>";

# Those plots whose names match; what is missing if there is none, and which could not be drawn.
def plots_of($pattern):
	(.plots | map(select(test($pattern)))
	 | if length > 0 then "<div class=\"plots\">", (.[] | plot(.)), "</div>" else empty end),
	(.failed[] | select(.[0] | test($pattern))
	 | "<p class=\"gap\">The plot \(.[0] | html) cannot be drawn: \(.[1] | html).</p>");

def gap($what; $pattern; $of):
	.files as $files
	| if (.plots + (.failed | map(.[0]))) | any(test($pattern)) then empty
	  else
		"<p class=\"gap\">No figures of \($what): " +
		([$of[] as $name | $files[] | select(.name == $name)
		  | "<code>\(.file | html)</code> \(if .missing then "is not there" else "has none" end); <code>\(.target | html)</code> writes it"]
		 | join("; ")) + ".</p>"
	  end;

def section($title; $id): "<h2 id=\"\($id)\">\($title)</h2>";
def say($text): "<p>\($text)</p>";

def sections($schemes):
	section("Cost, at a glance"; "ratios"),
	say("One number for each scheme and workload: what it takes, divided by what the wheel takes, at the <i>n</i> where that is worst for the wheel."),
	plots_of("^ratios-"),
	gap("cost"; "^ratios-"; ["arena", "exact", "native", "programs", "api"]),

	section("Cost against n"; "cost"),
	say("Both axes are logarithmic. A band is the spread of the rounds, from the smallest to the largest; where there is none, all rounds agree within the line, or there was one."),
	"<h3>In the kernel, in instructions</h3>",
	plots_of("^cost-exact"),
	gap("instructions"; "^cost-exact"; ["arena", "exact"]),
	"<h3>In the kernel, at a processor's speed</h3>",
	plots_of("^cost-(native|guest)"),
	gap("times in the kernel"; "^cost-(native|guest)"; ["native"]),
	"<h3>Mixtures of operations, in the kernel</h3>",
	say("What all operations of a mixture take. A scheme without a curve takes less than a thousandth of a percent. <i>connections</i> is in <a href=\"#cpu\">another section</a>."),
	plots_of("^cost-mixtures"),
	gap("mixtures"; "^cost-mixtures"; ["mixtures"]),
	"<h3>In userspace, next to what programs use</h3>",
	plots_of("^cost-(programs|user)"),
	gap("times in userspace"; "^cost-(programs|user)"; ["programs", "user"]),

	section("Lateness"; "lateness"),
	say("Time is on a logarithmic axis to both sides of the deadline: what is early is on the shaded side."),
	plots_of("^percentiles$|^late-(mixtures|programs|connections)"),
	gap("percentiles"; "^percentiles$"; ["exact"]),
	gap("the lateness of mixtures"; "^late-mixtures"; ["mixtures"]),
	gap("the lateness of programs"; "^late-programs"; ["programs"]),
	gap("the lateness of a server"; "^late-connections"; ["connections"]),

	section("Memory"; "memory"),
	plots_of("^memory"),
	gap("memory in the kernel"; "^memory$"; ["arena", "exact"]),
	gap("memory against n"; "^memory-"; ["mixtures", "programs"]),

	section("CPU against connections and timeout"; "cpu"),
	say("What timeouts cost while connections are served."),
	plots_of("^cpu-"),
	gap("a mixture's CPU"; "^cpu-mixture"; ["mixtures"]),
	gap("a server's CPU"; "^cpu-connections"; ["connections"]),
	(if .plots | any(. == "cpu-timeout") then empty else
	 "<p class=\"gap\">CPU against the timeout takes several runs of <code>twbench connections</code> with a <code>--timeout</code> of their own, in files whose names begin with <code>connections</code>.</p>" end),

	section("Ticks per second"; "ticks"),
	plots_of("^ticks-"),
	gap("ticks"; "^ticks-"; ["mixtures"]),

	section("What replay gives"; "replay"),
	say("Recorded traces, and a mixture for comparison. The best is at the bottom left: late by little, at little CPU."),
	plots_of("^trade-|^late-traces"),
	gap("recorded traces"; "^trade-traces"; ["traces"]);

# ---- tables

def where($all): . as $name
	| $all | map(select(.verdict == "behind") | . as $c
		| .others[] | select(.scheme == $name) | .ratio as $ratio
		| select($c.before | index($name)) | $c | .ratio = 1 / $ratio)
	| group_by(.class)
	| map((group_by(.what) | length) as $nr | max_by(.ratio) | . + { nr: $nr }) | sort_by(-.ratio)
	| map("\(.ratio | digits)× \(.what | html), \(at_n | html)" +
	      if .nr > 1 then "; and \(.nr - 1) more like this" else "" end)
	| join("<br>");

def whom_table($all; $schemes):
	section("Who should take another scheme"; "whom"),
	say("Every scheme that is ahead of the wheel in a figure, for whom it is right, and where it is ahead: the largest ratio of each kind."),
	"<div class=\"scroll\"><table><tr><th>scheme</th><th>right for</th><th>ahead in</th></tr>",
	([$all[] | .before // empty | .[]] | unique | .[]
	 | "<tr><th>\(html)</th>\(right_for($schemes) | cell)<td class=\"wide\">\(where($all))</td></tr>"),
	"</table></div>";

def all_table($all):
	section("All comparisons"; "all"),
	"<div class=\"scroll\"><table><tr><th>what</th><th></th><th>the wheel</th><th>best of the others</th><th></th><th>ratio</th><th>ahead</th></tr>",
	($all | sort_by([.class, .what, .n])[] | . as $c
	 | "<tr>\(.what | cell)\(at_n | cell)\(.wheel | with_unit($c.unit) | number)\(.value | with_unit($c.unit) | number)\(.other | cell)\(.ratio | digits | number)" +
	   "\(if .verdict == "ahead" then "the wheel" elif .verdict == "equal" then "neither" else .other end | cell)</tr>"),
	"</table></div>";

def features:
	section("Features and guarantees"; "features"), "<div class=\"scroll\">", "@features", "</div>";

def run_table:
	section("Machine, kernel, seeds, and how to repeat this"; "runs"),
	say("In the lane <code>exact</code>, a guest counts instructions, which are the same on every machine; <code>native</code> and <code>user</code> are times of this processor."),
	"<div class=\"scroll\"><table><tr><th>file</th><th>what</th><th>to repeat</th><th>lane</th><th>kernel</th><th>processor</th><th>seed</th><th>command in there</th></tr>",
	(.files[] | select(.missing | not)
	 | "<tr><td><code>\(.file | html)</code></td>\(.what | cell)<td><code>\(.target | html)</code></td>" +
	   ([.lane, .kernel, .cpu_model, .seed] | map(if . == null then "<td>not recorded</td>" else cell end) | join("")) +
	   "<td class=\"wide\">\(if .command then "<code>\(.command | html)</code>" else "not recorded" end)</td></tr>"),
	"</table></div>",
	(.files | map(select(.missing)) | if length > 0 then
		"<p class=\"gap\">Not there: " + (map("<code>\(.file | html)</code> (\(.what | html); <code>\(.target | html)</code>)") | join(", ")) + ".</p>"
	 else empty end),
	(.files[] | select(.left_out > 0)
	 | "<p class=\"gap\">Of <code>\(.file | html)</code>, " +
	   "\(.left_out) \(if .left_out == 1 then "figure is" else "figures are" end) left out: beyond 10<sup>±15</sup>, or with less than one timer.</p>");

def page($schemes):
	(.figures | comparisons($schemes)) as $all
	| first_screen($all; $schemes),
	  sections($schemes), features, whom_table($all; $schemes), all_table($all), run_table;
