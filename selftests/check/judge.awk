# SPDX-License-Identifier: GPL-2.0-only
#
# Judges the log of a test run, strictly: whatever is not a test that ran to its end and
# passed, or an allowed skip, is a failure.  No line that a program prints begins with "#@", as
# those are written by others. For each program, the log has
#
#	#@ begin PROGRAM
#	... one or more TAP 13 documents ...
#	#@ fault PROGRAM LINE		(if the kernel complained meanwhile)
#	#@ end PROGRAM STATUS [SECONDS]
#
# or, instead of the last line, if the program is run again and the above follows once more,
#
#	#@ again PROGRAM STATUS [SECONDS]
#
# which is for tests that depend on real time, and only after runs in which nothing but tests
# failed. Each of these tests must pass then; the others need not be run again.
#
# Variables:
#	guest		where the tests ran
#	expected	names of the programs that must be in the log
#	allowed		file with allowed skips, lines of "GUEST PROGRAM PATTERN"
#	repeatable	file with the programs that may be run again
#	failures	output: what has failed, and the command that produces such a log, which
#			is in the environment, as REPEAT
#	counts		output: a line "PASSED FAILED SKIPPED"
#	times		output: a line "SECONDS GUEST PROGRAM" for each, in this machine's time

BEGIN {
	# As in selftests/run-in-guest.sh.
	MOST_REPEATED = 2
	nr_allowed = nr_stray = 0
	while (allowed != "" && (getline line < allowed) > 0)
		if (line !~ /^[ \t]*(#|$)/)
			allow(line)
	while (repeatable != "" && (getline line < repeatable) > 0)
		may_repeat[line] = 1
}

/^#@ begin / {
	if (program != "")
		end_program("cut off by the next program")
	begin_program($3)
	next
}

/^#@ fault / && program != "" {
	sub(/^#@ fault [^ ]* */, "")
	problem("kernel: " $0)
	next
}

/^#@ again / && whole() {
	seconds = $5
	end_document()
	if ($4 != "1" || !not_ok || nr_problems || !(program in may_repeat) ||
	    program in repeated || nr_repeated == MOST_REPEATED) {
		problem("is not to be run once more")
		report()
	} else {
		again()
	}
	next
}

/^#@ end / && whole() {
	seconds = $5
	end_program($4 == "0" ? "" : "exit status " $4)
	next
}

# Lines that belong to no program, or are malformed: parts of the log may be missing.
/^#@/ || (program == "" && /^((not )?ok[ \t]|TAP version|Bail out!)/) {
	stray($0)
	next
}

program == "" { next }

{ output[nr_output++] = $0 }

/^TAP version 13$/ {
	end_document()
	in_document = 1
	nr_documents++
	next
}

/^1\.\.[0-9]/ { plan($0); next }
/^(not )?ok([ \t]|$)/ { result($0); next }
tolower($0) ~ /^bail out!/ { problem($0); next }
# A malformed line that resembles a failed test may be one: for instance, if it follows another
# line that was cut off.
/^([^# \t][^#]*)?[Nn][Oo][Tt][ \t]+[Oo][Kk][ \t]+[0-9]/ { problem("stray result: " $0); next }
# kselftest's own count.
/^# Totals: .*(fail|error):[1-9]/ { counted_failures = 1; next }

END {
	if (program != "")
		end_program("cut off")
	nr = split(expected, names, " ")
	for (i = 1; i <= nr; i++)
		if (!(names[i] in seen)) {
			begin_program(names[i])
			problem("has not run")
			report()
		}
	if (nr_stray) {
		begin_program("log")
		for (i = 0; i < nr_stray; i++)
			problem("stray line: " strays[i])
		report()
	}
	print passed + 0, failed + 0, skipped + 0 >> counts
}

function allow(line,    field) {
	split(line, field, /[ \t]+/)
	allowed_guest[nr_allowed] = field[1]
	allowed_program[nr_allowed] = field[2]
	sub(/^[^ \t]+[ \t]+[^ \t]+[ \t]+/, "", line)
	allowed_pattern[nr_allowed++] = line
}

function is_allowed(text,    i) {
	for (i = 0; i < nr_allowed; i++)
		if ((allowed_guest[i] == "*" || allowed_guest[i] == guest) &&
		    allowed_program[i] == program && text ~ allowed_pattern[i])
			return 1
	return 0
}

function begin_program(name) {
	program = name
	split("", output)
	nr_output = nr_documents = in_document = 0
	ok = not_ok = skips = nr_problems = 0
	planned = -1
	nr_results = counted_failures = 0
	seconds = ""
	split("", verdict)
	if (name in seen)
		problem("ran twice")
	seen[name] = 1
	begun = systime()
}

# Is this line about the running program, with a valid status?
function whole() {
	return program != "" && $3 == program && $4 ~ /^[0-9]+$/ && NF <= 5
}

function stray(line) {
	strays[nr_stray++] = line
}

function problem(text) {
	problems[nr_problems++] = text
}

function plan(line,    n) {
	if (!in_document)
		problem("plan outside of a TAP document: " line)
	if (planned >= 0)
		problem("second plan: " line)
	if (line !~ /^1\.\.[0-9]+[ \t]*(#.*)?$/)
		problem("plan that is none: " line)
	n = line
	sub(/^1\.\./, "", n)
	planned = n + 0
	if (planned)
		return
	# 1..0 skips everything, and must say why.
	if (tolower(line) ~ /#[ \t]*skip/)
		skip(line)
	else
		problem("no tests planned")
}

function skip(text) {
	if (is_allowed(text))
		skips++
	else
		problem("skip that is not allowed: " text)
}

function result(line,    number, what) {
	if (!in_document)
		problem("result outside of a TAP document: " line)
	nr_results++
	number = line
	sub(/^(not )?ok[ \t]*/, "", number)
	if (number !~ /^[0-9]+([ \t]|$)/ || number + 0 != nr_results)
		problem("expected number " nr_results ": " line)
	what = number
	sub(/^[0-9]+[ \t]*/, "", what)
	sub(/[ \t]*# .*/, "", what)
	if (line ~ /^not ok/) {
		not_ok++
		failures_of[not_ok] = line
		verdict[what] = "failed"
	} else if (tolower(line) ~ /#[ \t]*(skip|xfail|xpass|todo|error)/) {
		skip(line)
		verdict[what] = "skipped"
	} else {
		ok++
		verdict[what] = "passed"
	}
}

function end_document() {
	if (in_document) {
		if (planned < 0)
			problem("no plan")
		else if (planned != nr_results)
			problem(planned " tests planned, " nr_results " seen")
	}
	in_document = nr_results = 0
	planned = -1
}

function end_program(why) {
	end_document()
	if (!nr_documents)
		problem("no TAP output")
	if (counted_failures && !not_ok)
		problem("it has counted failures of which it did not tell")
	if (program in repeated)
		add_before()
	# A failed test explains exit status 1, skipping everything exit status 4, and nothing else.
	if (why != "" && !(why == "exit status 1" && not_ok) &&
	    !(why == "exit status 4" && skips && !ok && !not_ok))
		problem(why explain(why))
	report()
}

function explain(why,    status) {
	status = why
	if (!sub(/^exit status /, "", status))
		return ""
	if (status + 0 == 124 || status + 0 == 143)
		return " (out of time)"
	if (status + 0 > 128)
		return " (killed by signal " status - 128 ")"
	return ""
}

# The failures do not count, but are reported.
function again(    what) {
	say(sprintf("again %-8s %-28s %d failed in %s s", guest, program, not_ok, seconds))
	explain_failure()
	fflush()
	repeated[program] = 1
	nr_repeated++
	delete seen[program]
	split("", before)
	for (what in verdict)
		before[what] = verdict[what]
	program = ""
}

# What failed before must pass now, and what was not run again still counts.
function add_before(    what) {
	for (what in before)
		if (before[what] == "failed" && verdict[what] != "passed" &&
		    verdict[what] != "failed")
			problem("was not run once more: " what)
		else if (what in verdict)
			continue
		else if (before[what] == "passed")
			ok++
		else
			skips++
}

function report(    bad) {
	bad = not_ok + nr_problems
	passed += ok
	failed += bad
	skipped += skips
	say(sprintf("%-5s %-8s %-28s %d passed%s%s%s", bad ? "FAIL" : "ok", guest,
		program, ok, bad ? ", " bad " failed" : "",
		skips ? ", " skips " skipped" : "",
		seconds == "" ? "" : " in " seconds " s"))
	if (times != "")
		print systime() - begun, guest, program >> times
	if (bad) {
		explain_failure()
		tell_how_to_repeat()
	}
	fflush()
	program = ""
}

function tell_how_to_repeat(    i, repeat) {
	if (failures == "")
		return
	printf "FAIL  %s %s\n", guest, program >> failures
	for (i = 1; i <= not_ok; i++)
		print "      " failures_of[i] >> failures
	for (i = 0; i < nr_problems; i++)
		print "      " problems[i] >> failures
	repeat = ENVIRON["REPEAT"]
	print "      as it was: " repeat >> failures
	if (program ~ /\// && sub(/run-in-guest\.sh\\ .*/, "run-in-guest.sh\\ " program, repeat))
		print "      it alone, which is another schedule: " repeat >> failures
}

function explain_failure(    i) {
	for (i = 0; i < nr_output; i++)
		if (output[i] !~ /^(ok|$)|^# +(RUN|OK) /)
			say("      | " output[i])
	for (i = 1; i <= not_ok; i++)
		say("      " failures_of[i])
	for (i = 0; i < nr_problems; i++)
		say("      " problems[i])
}

# In one piece, as other judges may write there, too.
function say(line) {
	printf "%s", line "\n"
}
