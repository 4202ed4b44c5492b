#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The tracepoints: what they report is what was done, according to the counts in debugfs and to
# the order of the events.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

TRACING=/sys/kernel/tracing
# A slow kernel may use fewer.
N=1000
if [ "${TWHEEL_MANY-}" ]; then
	N=300
fi
ARM='timer function now deadline slot cpu level remote'

# The fields of each event.
fields() {
	cat <<-EOT
	twheel_timer_init		timer function
	twheel_timer_add		$ARM
	twheel_timer_rearm		$ARM
	twheel_timer_cancel		timer function now deadline cpu pending remote
	twheel_timer_expire_entry	timer function now deadline cpu
	twheel_timer_expire_exit	timer function now cpu
	twheel_timer_cascade		timer function now deadline slot cpu level
	twheel_kick			cookie idle rule flags
	twheel_watch			timer skaddr sport dport now deadline found action
	twheel_tick_entry		now programmed cpu
	twheel_tick_exit		now programmed cpu entries
	EOT
}

all_events() {
	fields | awk -v events=$TRACING/events/twheel '
		function fields_of(event,    format, line) {
			format = events "/" event "/format"
			delete has
			while ((getline line < format) > 0)
				if (sub(/^\tfield:/, "", line)) {
					sub(/;.*/, "", line)
					sub(/.*[ *]/, "", line)
					has[line]
				}
			close(format)
		}
		{
			fields_of($1)
			for (i = 2; i <= NF; i++)
				if (!($i in has)) {
					print "# " $1 " has no field " $i
					failed = 1
				}
		}
		END { exit failed }' || return
	set -- $TRACING/events/twheel/*/
	[ $# = "$(fields | wc -l)" ] || wrong "other events: $*"
}

# Programs that read the formats know no constants of the module.
only_numbers() {
	! grep -H 'TWHEEL_' $TRACING/events/twheel/*/format
}

# Does everything there is to do, traced. /tmp/trace gets the events, /tmp/before and /tmp/after
# the counts in debugfs.
record() {
	echo 16384 > $TRACING/buffer_size_kb || return
	echo nop > $TRACING/current_tracer
	echo > $TRACING/trace
	cat "$DEBUGFS/twheel/totals" > /tmp/before
	echo 1 > $TRACING/events/twheel/enable || return
	cat "$DEBUGFS/twheel/totals" > /tmp/enabled
	../cli/exercise use $N && ../cli/exercise across $N
	status=$?
	# The hrtimer may fire once more for timers that are gone.
	sleep 0.1
	cat "$DEBUGFS/twheel/totals" > /tmp/disabling
	echo 0 > $TRACING/events/twheel/enable
	cat "$DEBUGFS/twheel/totals" > /tmp/after
	grep -v '^#' $TRACING/trace > /tmp/trace
	cat $TRACING/per_cpu/cpu*/stats | awk '/^(overrun|dropped events): [^0]/ { exit 1 }' ||
		wrong "events were lost" || return
	return $status
}

# The trace is read only once, which takes long enough. Its lines are:
#	task-pid [cpu] flags time: event: name=value...
# Complaints are lines with the check and what is wrong, and a line "end" follows.
cat > /tmp/trace.awk <<'EOT'
function bad(check, why) {
	print check, why ": " $0
}

# The number of events must be what debugfs counts; what is counted while the events are being
# enabled or disabled may have been traced or not.
function counted(key, number, what,    least, most) {
	least = total["disabling", key] - total["enabled", key]
	most = total["after", key] - total["before", key]
	if (!number)
		print "counted no " what
	if (number < least || number > most)
		print "counted " number + 0 " times " what ", but " least " to " most " " key
}

# The deadline is that of the last event that set it.
function check_deadline() {
	if (event == "timer_add" || event == "timer_rearm")
		deadline[is["timer"]] = is["deadline"]
	else if (deadline[is["timer"]] != is["deadline"])
		bad("deadlines", "armed for " deadline[is["timer"]])
}

# A slot is in the future, and not after the tick to which the deadline is rounded up (or the
# next one, if the deadline has passed).
function check_slot(    last) {
	if (is["slot"] % total["after", "tick_ns"])
		bad("slots", "not a tick")
	last = is["deadline"] > is["now"] + 0 ? is["deadline"] : is["now"]
	if (is["slot"] + 0 >= last + 2 * total["after", "tick_ns"])
		bad("slots", "too late")
	if (is["level"] + 0 > 8)
		bad("slots", "level")
	levels[is["level"]]++
}

# On one CPU, callbacks run one after the other.
function check_entry() {
	if (is["now"] + 0 < is["deadline"] + 0)
		bad("early", "early")
	if (is["function"] !~ /^twheel_/)
		bad("early", "function")
	if (timer[is["cpu"]])
		bad("pairs", "the one before has not returned")
	# A string: some addresses look like numbers.
	timer[is["cpu"]] = "" is["timer"]
}

function check_exit() {
	if (timer[is["cpu"]] != "" is["timer"])
		bad("pairs", "not the one that was called")
	timer[is["cpu"]] = ""
}

FILENAME != "trace" {
	sub(/:/, "", $1)
	total[FILENAME, $1] = $2
	next
}

{
	for (i = 1; i <= NF && $i !~ /^twheel_[a-z_]+:$/; i++)
		;
	if (i > NF) {
		bad("events", "no event")
		next
	}
	event = substr($i, 8, length($i) - 8)
	seen[event]++
	delete is
	while (++i <= NF) {
		split($i, part, "=")
		is[part[1]] = part[2]
	}
}

event == "timer_init" && is["function"] !~ /^twheel_/ { bad("initialised", "function") }

event == "timer_add" || event == "timer_rearm" || event == "timer_cascade" {
	check_deadline()
	check_slot()
}

event == "timer_rearm" && is["remote"] + 0 { moved++ }

event == "timer_cancel" && is["pending"] + 0 {
	check_deadline()
	cancels++
	if (is["remote"] + 0)
		remote_cancels++
}

event == "timer_expire_entry" {
	check_deadline()
	check_entry()
}

event == "timer_expire_exit" { check_exit() }

event == "tick_entry" && ticking[is["cpu"]]++ { bad("pairs", "within another") }

event == "tick_exit" && --ticking[is["cpu"]] { bad("pairs", "no entry") }

END {
	counted("adds", seen["timer_add"], "timer_add")
	counted("rearms", seen["timer_rearm"], "timer_rearm")
	counted("cancels", cancels, "timer_cancel")
	counted("remote_cancels", remote_cancels, "timer_cancel of another CPU")
	counted("expiries", seen["timer_expire_entry"], "timer_expire_entry")
	counted("expiries", seen["timer_expire_exit"], "timer_expire_exit")
	counted("cascades", seen["timer_cascade"], "timer_cascade")
	counted("ticks", seen["tick_entry"], "tick_entry")
	counted("ticks", seen["tick_exit"], "tick_exit")
	if (!seen["timer_init"])
		print "initialised no timer_init"
	if (length(levels) < 2)
		print "slots all on one level"
	if (remote_cancels < n / 4)
		print "across " remote_cancels + 0 " cancels from another CPU"
	if (moved < n / 4)
		print "across " moved + 0 " re-arms from another CPU"
	print "end"
}
EOT

read_trace() {
	(cd /tmp && awk -v n="$N" -f trace.awk before enabled disabling after trace > complaints) &&
		holds events
}

# holds CHECK: nothing in the trace contradicts it.
holds() {
	awk -v check="$1" '
		$1 == check && ++n <= 5 { sub(/[a-z]* /, "# "); print }
		{ last = $0 }
		END { exit n || last != "end" }' /tmp/complaints
}

# With the events disabled again, nothing is traced.
silent() {
	echo > $TRACING/trace
	../cli/exercise use 100 || return
	! grep -q twheel_ $TRACING/trace
}

unload_enabled() {
	echo 1 > $TRACING/events/twheel/enable || return
	../cli/exercise use 100 || return
	unload || wrong "does not unload with its events enabled" || return
	[ ! -e $TRACING/events/twheel ] || wrong "the events are left" || return
	load
}

is_loaded || load
mount -t tracefs tracefs $TRACING 2> /dev/null
# To record the names of tasks, the first event would have the scheduler's code patched while
# other processors run it: QEMU's TCG cannot always cope with that.
echo 0 > $TRACING/options/record-cmd
tap_plan 13
tap "every event is there, with its fields" all_events
tap "their formats have no names of constants" only_numbers
tap "timers are used, and traced" record
tap "every line of the trace is an event" read_trace
tap "as many events as debugfs counts" holds counted
tap "timers are initialised" holds initialised
tap "never early" holds early
tap "entries and exits come in pairs" holds pairs
tap "deadlines are those that were set" holds deadlines
tap "slots are ahead, and in time" holds slots
tap "cancelled and moved from another CPU" holds across
tap "silent when off" silent
tap "unloads with its events enabled" unload_enabled
tap_end
