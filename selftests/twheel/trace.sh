#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The tracepoints: what they tell is what was done, by the counts in debugfs and by the
# events' own order.

cd "$(dirname "$0")" || exit
. ./tap.sh

TRACING=/sys/kernel/tracing
N=1000
ARM='timer function now deadline slot cpu level remote'

# What each event tells.
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

has_fields() {
	format=$TRACING/events/twheel/$1/format
	[ -r "$format" ] || wrong "no event $1" || return
	shift
	for field; do
		grep -q "field:.*[ *]$field;" "$format" || wrong "no field $field" || return
	done
}

all_events() {
	fields | while read -r event names; do
		# shellcheck disable=SC2086 # words
		has_fields "$event" $names || wrong "$event" || exit
	done || return
	set -- $TRACING/events/twheel/*/
	[ $# = "$(fields | wc -l)" ] || wrong "other events: $*"
}

COUNTED='adds rearms cancels remote_cancels expiries cascades ticks'

counts() {
	for key in $COUNTED; do
		echo "$key $(total "$key")"
	done
}

# Does everything there is, traced. /tmp/trace has the events, /tmp/before and /tmp/after
# what debugfs says.
record() {
	echo 16384 > $TRACING/buffer_size_kb || return
	echo nop > $TRACING/current_tracer
	echo > $TRACING/trace
	counts > /tmp/before
	echo 1 > $TRACING/events/twheel/enable || return
	./exercise use $N && ./exercise across $N
	status=$?
	# The hrtimer may come once more for what is gone.
	sleep 0.1
	echo 0 > $TRACING/events/twheel/enable
	counts > /tmp/after
	grep -v '^#' $TRACING/trace > /tmp/trace
	cat $TRACING/per_cpu/cpu*/stats | awk '/^(overrun|dropped events): [^0]/ { exit 1 }' ||
		wrong "events were lost" || return
	return $status
}

# Lines of the trace are:	task-pid [cpu] flags time: event: name=value...
cat > /tmp/trace.awk <<'EOT'
function bad(why) {
	print "# " why ": " $0
	failed = 1
}
{
	for (i = 1; $i !~ /^twheel_[a-z_]+:$/; i++)
		if (i > NF) {
			bad("no event")
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
EOT

# events_are PROGRAM: goes through the trace with awk. A condition that does not hold calls
# bad().
events_are() {
	{ cat /tmp/trace.awk; echo "$1"; echo 'END { exit failed }'; } > /tmp/program.awk
	awk -f /tmp/program.awk /tmp/trace > /tmp/complaints && return
	head -n 5 /tmp/complaints
	return 1
}

# As often as debugfs counts it.
count_of() {
	before=$(sed -n "s/^$1 //p" /tmp/before)
	after=$(sed -n "s/^$1 //p" /tmp/after)
	count=$(grep -c " twheel_$2: .*$3" /tmp/trace)
	[ "$count" != 0 ] || wrong "no $2 $3" || return
	[ "$count" = $((after - before)) ] ||
		wrong "$count times $2 $3, but $((after - before)) $1"
}

counted() {
	count_of adds timer_add && count_of rearms timer_rearm &&
		count_of cancels timer_cancel pending=1 &&
		count_of remote_cancels timer_cancel 'pending=1 remote=1' &&
		count_of expiries timer_expire_entry && count_of expiries timer_expire_exit &&
		count_of cascades timer_cascade &&
		count_of ticks tick_entry && count_of ticks tick_exit
}

initialised() {
	events_are 'event == "timer_init" && is["function"] !~ /^twheel_/ { bad("function") }
		END { if (!seen["timer_init"]) bad("no timer_init") }'
}

never_early() {
	# shellcheck disable=SC2016 # awk's
	events_are '
	event == "timer_expire_entry" && is["now"] + 0 < is["deadline"] + 0 { bad("early") }
	event == "timer_expire_entry" && is["function"] !~ /^twheel_/ { bad("function") }'
}

# On a CPU the callbacks of a tick come one after the other.
in_pairs() {
	events_are '
	event == "timer_expire_entry" {
		if (timer[is["cpu"]])
			bad("the one before has not returned")
		# A string: some addresses look like numbers.
		timer[is["cpu"]] = "" is["timer"]
	}
	event == "timer_expire_exit" {
		if (timer[is["cpu"]] != "" is["timer"])
			bad("not the one that was called")
		timer[is["cpu"]] = ""
	}
	event == "tick_entry" {
		if (ticking[is["cpu"]]++)
			bad("within another")
	}
	event == "tick_exit" && --ticking[is["cpu"]] { bad("no entry") }'
}

# A deadline is the one of the last event that set it.
deadlines() {
	events_are '
	event == "timer_add" || event == "timer_rearm" { deadline[is["timer"]] = is["deadline"] }
	event == "timer_expire_entry" || event == "timer_cascade" ||
	event == "timer_cancel" && is["pending"] + 0 {
		if (deadline[is["timer"]] != is["deadline"])
			bad("armed for " deadline[is["timer"]])
	}'
}

# A slot lies ahead, and not after the tick to which the deadline is rounded up (or the next
# one, if it has passed).
slots() {
	tick=$(total tick_ns)
	events_are '
	event == "timer_cascade" || event == "timer_add" || event == "timer_rearm" {
		if (is["slot"] % '"$tick"')
			bad("not a tick")
		last = is["deadline"] > is["now"] + 0 ? is["deadline"] : is["now"]
		if (is["slot"] + 0 >= last + 2 * '"$tick"')
			bad("too late")
		if (is["level"] + 0 > 8)
			bad("level")
		levels[is["level"]]++
	}
	END {
		if (length(levels) < 2)
			bad("all on one level")
	}'
}

across_cpus() {
	events_are '
	event == "timer_cancel" && is["remote"] + 0 && is["pending"] + 0 { cancels++ }
	event == "timer_rearm" && is["remote"] + 0 { rearms++ }
	END {
		if (cancels < '$((N / 4))')
			bad(cancels + 0 " cancels from another CPU")
		if (rearms < '$((N / 4))')
			bad(rearms + 0 " re-arms from another CPU")
	}'
}

# With the events off again, nothing is traced.
silent() {
	echo > $TRACING/trace
	./exercise use 100 || return
	! grep -q twheel_ $TRACING/trace
}

unload_enabled() {
	echo 1 > $TRACING/events/twheel/enable || return
	./exercise use 100 || return
	unload || wrong "does not unload with its events enabled" || return
	[ ! -e $TRACING/events/twheel ] || wrong "the events are left" || return
	load
}

is_loaded || load
mount -t tracefs tracefs $TRACING 2> /dev/null
tap_plan 11
tap "every event is there, with its fields" all_events
tap "timers are used, and traced" record
tap "as many events as debugfs counts" counted
tap "timers are initialised" initialised
tap "never early" never_early
tap "entries and exits come in pairs" in_pairs
tap "deadlines are those that were set" deadlines
tap "slots are ahead, and in time" slots
tap "cancelled and moved from another CPU" across_cpus
tap "silent when off" silent
tap "unloads with its events enabled" unload_enabled
tap_end
