// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle log: print a line for each connection that is closed
 *
 * It follows the tracepoint twheel_kick in a trace instance of its own. The instance is removed on
 * exit, including when the reader of the output has gone away. When the module is unloaded, its
 * tracepoint goes with it, and is off when it is loaded again: so it is switched on every second.
 *
 * Terminating signals are blocked except while it waits: for more of the trace, or for the reader
 * of the output.
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "instance.h"
#include "twctl.h"

#define PREFIX		"twctl-idle-"

/**
 * struct closed - a connection that was closed, as a line of the trace describes it
 * @rule:	the rule's id
 * @name:	the rule's name, or ""
 * @cookie:	the socket's cookie, in hexadecimal
 * @local:	local address and port
 * @remote:	remote address and port
 * @idle:	nanoseconds
 * @late:	nanoseconds
 * @unsent:	bytes
 * @unacked:	bytes
 * @action:	abort or shutdown
 * @dry:	a dry run: it was not closed, but would have been
 * @reason:	idle, lifetime or stalled
 * @overdue:	it was due before the rule could have closed it
 * @netns:	inode number of the network namespace
 */
struct closed {
	uint64_t	rule;
	char		name[TWHEEL_RULE_NAME];
	char		cookie[20];
	char		local[64];
	char		remote[64];
	uint64_t	idle;
	uint64_t	late;
	uint64_t	unsent;
	uint64_t	unacked;
	char		action[16];
	bool		dry;
	char		reason[16];
	bool		overdue;
	uint64_t	netns;
};

/* The trace_pipe. */
static int trace;

/* The network namespace of this process, as an inode number, or 0. */
static uint64_t own_netns;

#define ENABLE		"events/twheel/twheel_kick/enable"

static void open_trace(void)
{
	struct stat st;

	if (!stat("/proc/self/ns/net", &st))
		own_netns = st.st_ino;
	instance_create(PREFIX);
	if (!instance_write(ENABLE, "1")) {
		if (errno == ENOENT)
			errx(EXIT_FAILED, "%s: the kernel or the module has no such tracepoint",
			     ENABLE);
		err(EXIT_FAILED, "%s", ENABLE);
	}
	trace = instance_open_pipe();
}

/* Switches the tracepoint on if the module has been loaded again. Says when it comes and goes. */
static void keep_open(void)
{
	static bool gone;
	const bool is_on = instance_write(ENABLE, "1");

	if (is_on != gone)
		return;
	gone = !is_on;
	warnx(gone ? "the module is not loaded any more; waiting for it" :
		     "the module is loaded again");
}

/* Copies the word after @name, which ends with '='. Returns whether there is one that fits. */
static bool find_word(const char *line, const char *name, char *word, size_t size)
{
	const char *at = strstr(line, name);
	size_t length;

	if (!at)
		return false;
	at += strlen(name);
	length = strcspn(at, "\n ");
	if (length >= size)
		return false;
	memcpy(word, at, length);
	word[length] = '\0';
	return true;
}

static bool find_number(const char *line, const char *name, uint64_t *number)
{
	char word[24];

	if (!find_word(line, name, word, sizeof(word)))
		return false;
	*number = strtoull(word, NULL, 10);
	return true;
}

/* Parses a line of the trace. Returns whether it is about a connection. */
static bool parse_line(const char *line, struct closed *closed)
{
	uint64_t dry, overdue;

	line = strstr(line, " twheel_kick: ");
	if (!line || !find_number(line, " rule=", &closed->rule) ||
	    !find_word(line, " cookie=", closed->cookie, sizeof(closed->cookie)) ||
	    !find_word(line, " local=", closed->local, sizeof(closed->local)) ||
	    !find_word(line, " remote=", closed->remote, sizeof(closed->remote)) ||
	    !find_number(line, " idle=", &closed->idle) ||
	    !find_word(line, " action=", closed->action, sizeof(closed->action)) ||
	    !find_number(line, " dry_run=", &dry) ||
	    !find_number(line, " late=", &closed->late) ||
	    !find_number(line, " unsent=", &closed->unsent) ||
	    !find_number(line, " unacked=", &closed->unacked) ||
	    !find_word(line, " reason=", closed->reason, sizeof(closed->reason)) ||
	    !find_number(line, " overdue=", &overdue) ||
	    !find_number(line, " netns=", &closed->netns) ||
	    !find_word(line, " name=", closed->name, sizeof(closed->name)))
		return false;
	closed->dry = dry;
	closed->overdue = overdue;
	return true;
}

static void print_closed(const struct closed *closed)
{
	const time_t now = time(NULL);
	char date[32];

	strftime(date, sizeof(date), "%F %T", localtime(&now));
	printf("%s rule %" PRIu64 "%s%s: %s %s from %s, idle %s, late %s, unsent %" PRIu64
	       ", unacked %" PRIu64, date, closed->rule, *closed->name ? " " : "",
	       closed->name, closed->dry ? "would close" : "closed", closed->local,
	       closed->remote, duration_format(closed->idle).s, duration_format(closed->late).s,
	       closed->unsent, closed->unacked);
	printf(", reason %s%s", closed->reason, closed->overdue ? ", overdue" : "");
	if (closed->netns != own_netns)
		printf(", netns %" PRIu64, closed->netns);
	putchar('\n');
}

static void json_closed(const struct closed *closed)
{
	struct json json = { .out = stdout };

	json_object(&json, NULL);
	pace_json_time(&json);
	json_number(&json, "rule", closed->rule);
	if (*closed->name)
		json_string(&json, "name", closed->name);
	else
		json_null(&json, "name");
	json_string(&json, "local", closed->local);
	json_string(&json, "remote", closed->remote);
	json_number(&json, "idle_ns", closed->idle);
	json_number(&json, "late_ns", closed->late);
	json_number(&json, "unsent", closed->unsent);
	json_number(&json, "unacked", closed->unacked);
	json_string(&json, "reason", closed->reason);
	json_bool(&json, "overdue", closed->overdue);
	json_number(&json, "netns", closed->netns);
	json_string(&json, "action", closed->action);
	json_bool(&json, "dry_run", closed->dry);
	json_string(&json, "cookie", closed->cookie);
	json_end(&json);
}

/* Calls only async-signal-safe functions. */
static void handle_signal(int signal)
{
	(void)signal;
	instance_remove();
	_exit(0);
}

/*
 * Blocks the terminating signals, but not those that are ignored, as under nohup. Returns the
 * signal mask to use while waiting.
 */
static sigset_t block_signals(void)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = handle_signal };
	struct sigaction before;
	sigset_t set, waiting;
	size_t i;

	/* The write fails instead, and that ends the program. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(ending); i++) {
		sigaction(ending[i], NULL, &before);
		if (before.sa_handler == SIG_IGN)
			continue;
		sigaction(ending[i], &action, NULL);
		sigaddset(&set, ending[i]);
	}
	sigprocmask(SIG_BLOCK, &set, &waiting);
	for (i = 0; i < ARRAY_SIZE(ending); i++)
		sigdelset(&waiting, ending[i]);
	return waiting;
}

static void wait_for_more(const sigset_t *waiting)
{
	struct pollfd pollfd = { .fd = trace, .events = POLLIN };
	const struct timespec second = { .tv_sec = 1 };
	const int nr = ppoll(&pollfd, 1, &second, waiting);

	if (nr < 0 && errno != EINTR)
		err(EXIT_FAILED, "poll");
	if (!nr)
		keep_open();
}

/* This may block for long, so the terminating signals are unblocked meanwhile. */
static void flush_output(const sigset_t *waiting)
{
	sigset_t blocked;
	int failed;

	sigprocmask(SIG_SETMASK, waiting, &blocked);
	failed = fflush(stdout);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (failed)
		exit(EXIT_FAILED);
}

/* Warns if the line says that events were lost because the trace buffer was full. */
static void warn_lost(const char *line)
{
	const char *lost = strstr(line, " [LOST ");

	if (strncmp(line, "CPU:", strlen("CPU:")) || !lost)
		return;
	lost += strlen(" [LOST ");
	if (isdigit((unsigned char)*lost))
		warnx("%lu connections are not shown: this was not read in time",
		      strtoul(lost, NULL, 10));
	else
		warnx("some connections are not shown: this was not read in time");
}

/*
 * Prints the connections in the complete lines of a buffer. Moves the incomplete line at the end to
 * the beginning, and returns its length.
 */
static size_t print_lines(char *buffer, bool as_json, uint64_t *count)
{
	struct closed closed;
	char *line = buffer, *end;

	for (; *count && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!parse_line(line, &closed)) {
			warn_lost(line);
			continue;
		}
		(as_json ? json_closed : print_closed)(&closed);
		--*count;
	}
	memmove(buffer, line, strlen(line) + 1);
	return strlen(buffer);
}

static void follow_trace(const sigset_t *waiting, bool as_json, uint64_t count)
{
	/* The output of a full buffer fits, so only flush_output() ever waits for the reader. */
	static char buffer[65536], output[4 * sizeof(buffer)];
	size_t length = 0;
	ssize_t n;

	setvbuf(stdout, output, _IOFBF, sizeof(output));
	while (count) {
		wait_for_more(waiting);
		n = instance_read_pipe(buffer + length, sizeof(buffer) - 1 - length);
		if (!n)
			continue;
		buffer[length + n] = '\0';
		length = print_lines(buffer, as_json, &count);
		/* No line of the trace is that long. */
		if (length == sizeof(buffer) - 1)
			length = 0;
		flush_output(waiting);
	}
}

static const struct choice choices[] = { CHOICE_JSON, CHOICE_COUNT, { 0 } };

static int run_idle_log(int argc, char **argv)
{
	uint64_t count = UINT64_MAX;
	bool as_json = false;
	sigset_t waiting;
	int letter;

	while ((letter = next_option(&idle_log_command, argc, argv)) >= 0) {
		if (letter == 'n')
			count = parse_count(&idle_log_command, "--count", optarg, UINT32_MAX);
		else
			as_json = true;
	}
	no_operands(&idle_log_command, argc, argv);
	module_require();
	waiting = block_signals();
	open_trace();
	follow_trace(&waiting, as_json, count);
	return 0;
}

const struct command idle_log_command = {
	.name		= "idle log",
	.operands	= "",
	.summary	= "print a line for each connection that rules close from now on",
	.choices	= choices,
	.run		= run_idle_log,
};
