// SPDX-License-Identifier: GPL-2.0-only
/*
 * twbench connections: idle timeouts of an echo server's connections, scheme by scheme
 *
 * The server and its load are the examples echo-server and echo-load, each a process. For each
 * scheme, all connections are made, and then heartbeats begin, and with them the timeouts. Some
 * connections fall silent, and the load reports what became of them. The CPU time of the timeouts
 * is measured from when each has been due once until the end.
 *
 * Nothing stays behind, even if this is killed: the programs are killed with it. All of them are in
 * a network namespace of their own, which goes away then, and with it the rule. In this namespace,
 * moreover, the rule cannot match other programs' connections, and the port is free.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel_rules.h>

#include "connections.h"

#define NSEC_PER_SEC	1000000000ULL
#define PORT		7777

/* In seconds. Memory that is freed after a grace period has been freed by then. */
#define SETTLE		1

static const struct connections_scheme schemes[] = {
	/* The others are compared with this one. */
	{ .name = "none", .program = "echo-server", .timeouts = "none" },
	{ .name = "watch", .program = "echo-server", .timeouts = "watch", .wheel = true },
	{ .name = "rule", .program = "echo-server", .timeouts = "none", .rule = true,
	  .wheel = true },
	{ .name = "touch", .program = "echo-server", .timeouts = "touch", .wheel = true },
	{ .name = "heap", .program = "echo-server", .timeouts = "heap" },
	{ .name = "libev", .program = "echo-server-libev", .timeouts = "libev" },
	{ .name = "timerfd", .program = "echo-server", .timeouts = "timerfd" },
	{ .name = "scan", .program = "echo-server", .timeouts = "scan" },
};

/**
 * struct program - a running program
 * @name:	its name
 * @pid:	its process
 * @to:		its standard input
 * @from:	its standard output
 */
struct program {
	const char	*name;
	pid_t		pid;
	int		to;
	FILE		*from;
};

/* ---- the programs */

static void get_program_path(const char *name, char *path)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (length < 0)
		err(EXIT_FAILED, "/proc/self/exe");
	path[length] = 0;
	slash = strrchr(path, '/') + 1;
	snprintf(slash, path + PATH_MAX - slash, "examples/%s", name);
}

static bool program_exists(const char *name)
{
	char path[PATH_MAX];

	get_program_path(name, path);
	return !access(path, X_OK);
}

/* Reads a line, or exits. */
static void read_line(struct program *program, char *line, int size)
{
	if (!fgets(line, size, program->from))
		errx(EXIT_FAILED, "%s has ended too early", program->name);
	line[strcspn(line, "\n")] = 0;
}

/*
 * Called by a child, so that it is killed when its parent exits. The parent may have exited before
 * prctl().
 */
static void die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		err(EXIT_FAILED, "prctl");
	if (getppid() != parent)
		_exit(EXIT_FAILED);
}

static void start_program(struct program *program, const char *name, char *const *arguments)
{
	char path[PATH_MAX], line[64];
	const pid_t self = getpid();
	int to[2], from[2];

	get_program_path(name, path);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		err(EXIT_FAILED, "pipe");
	program->name = name;
	program->pid = fork();
	if (program->pid < 0)
		err(EXIT_FAILED, "fork");
	if (!program->pid) {
		die_with_parent(self);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		/* 2 MB for the first byte touched would hide what else is used. */
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		execv(path, arguments);
		err(EXIT_FAILED, "%s (make tools builds it)", path);
	}
	close(to[0]);
	close(from[1]);
	program->to = to[1];
	program->from = fdopen(from[0], "r");
	if (!program->from)
		err(EXIT_FAILED, "pipe");
	read_line(program, line, sizeof(line));
	if (strcmp(line, "ready"))
		errx(EXIT_FAILED, "%s is not ready: %s", name, line);
}

static void send_request(const struct program *program)
{
	if (write(program->to, "\n", 1) != 1)
		err(EXIT_FAILED, "%s", program->name);
}

/* Ends a program by closing its input. Returns its exit status. */
static int end_program(struct program *program)
{
	int status;

	close(program->to);
	fclose(program->from);
	if (waitpid(program->pid, &status, 0) != program->pid || !WIFEXITED(status))
		errx(EXIT_FAILED, "%s was killed", program->name);
	return WEXITSTATUS(status);
}

static void start_server(struct program *server, const struct connections_plan *plan,
			 const struct connections_scheme *scheme)
{
	char timeout[32], port[16];

	snprintf(timeout, sizeof(timeout), "%f", plan->timeout);
	snprintf(port, sizeof(port), "%u", PORT);
	start_program(server, scheme->program,
		      (char *[]) { "echo-server", "--control", "--late",
				   (char *)scheme->timeouts, timeout, port, NULL });
}

static double warm_up_seconds(const struct connections_plan *plan)
{
	return plan->timeout + 2 * plan->heartbeat;
}

/* Each timeout has been due before the measurement begins, and is due at least once in it. */
static double total_seconds(const struct connections_plan *plan)
{
	return warm_up_seconds(plan) + plan->timeout;
}

static void start_load(struct program *load, const struct connections_plan *plan, bool silent)
{
	char text[5][32];

	snprintf(text[0], sizeof(text[0]), "%u", plan->nr);
	snprintf(text[1], sizeof(text[1]), "%f", plan->heartbeat);
	snprintf(text[2], sizeof(text[2]), "%f", plan->timeout);
	snprintf(text[3], sizeof(text[3]), "%u", silent ? plan->silent : 0);
	snprintf(text[4], sizeof(text[4]), "%f", total_seconds(plan));
	start_program(load, "echo-load",
		      (char *[]) { "echo-load", "--control", text[0], text[1], text[2], text[3],
				   text[4], NULL });
}

/* ---- their reports */

/* The server's counters, in the order of the line that it prints. */
struct counts {
	double	messages;
	double	arming;
	double	running;
};

static struct counts ask_server(struct program *server)
{
	struct counts counts;
	char line[256];

	send_request(server);
	read_line(server, line, sizeof(line));
	if (sscanf(line, "connections %*u messages %lf kicked %*u arming_ns %lf running_ns %lf",
		   &counts.messages, &counts.arming, &counts.running) != 3)
		errx(EXIT_FAILED, "%s has said: %s", server->name, line);
	return counts;
}

static void read_load(struct program *load, struct connections_result *result)
{
	const struct {
		const char	*name;
		uint64_t	*value;
	} values[] = {
		{ "silent", &result->silent },
		{ "kicked", &result->kicked },
		{ "false_kicks", &result->false_kicks },
		{ "missed_kicks", &result->missed_kicks },
		{ "latest_heartbeat_ns", &result->latest_heartbeat },
		{ "late_p50_ns", &result->late_p50 },
		{ "late_p99_ns", &result->late_p99 },
		{ "late_max_ns", &result->late_max },
	};
	unsigned long long value;
	char line[128], name[64];
	size_t found = 0, i;

	while (fgets(line, sizeof(line), load->from)) {
		if (sscanf(line, "%63s %llu", name, &value) != 2)
			continue;
		for (i = 0; i < ARRAY_SIZE(values); i++) {
			if (strcmp(values[i].name, name))
				continue;
			*values[i].value = value;
			found++;
		}
	}
	if (found != ARRAY_SIZE(values))
		errx(EXIT_FAILED, "%s has not told all", load->name);
}

/* ---- a run */

static const char *explain_namespace_error(int error)
{
	switch (error) {
	case EPERM:
		return "this takes CAP_SYS_ADMIN; run this as root";
	case EINVAL:
		return "this kernel has none; it takes CONFIG_NET_NS";
	case ENOSPC:
		return "there are too many; see /proc/sys/user/max_net_namespaces";
	}
	return strerror(error);
}

/* Moves to a new network namespace, and sets its loopback device up. */
static void enter_network_namespace(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		errx(EXIT_FAILED, "cannot make a network namespace: %s",
		     explain_namespace_error(errno));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		err(EXIT_FAILED, "cannot set the loopback device up");
	close(fd);
}

static int open_twheel(void)
{
	int fd = open("/dev/twheel", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(EXIT_FAILED, "/dev/twheel");
	return fd;
}

static uint32_t add_rule(int fd, const struct connections_plan *plan)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.rate		= UINT32_MAX,
		.local_port	= PORT,
		.idle		= plan->timeout * NSEC_PER_SEC,
	};

	if (ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule))
		err(EXIT_FAILED, "cannot add a rule");
	return rule.id;
}

static void remove_rule(int fd, uint32_t id)
{
	struct twheel_rule rule = { .id = id };

	if (ioctl(fd, TWHEEL_IOC_RULE_REMOVE, &rule))
		err(EXIT_FAILED, "cannot remove a rule");
}

static struct timespec clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts;
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec ts = clock_now();

	return ts.tv_sec - begin->tv_sec + (ts.tv_nsec - begin->tv_nsec) / 1e9;
}

static void sleep_until(const struct timespec *begin, double seconds)
{
	double left = seconds - seconds_since(begin);

	if (left > 0)
		usleep(left * 1e6);
}

static void measure_cpu(const struct setup *setup, struct program *server,
			const struct timespec *begin, const struct connections_plan *plan,
			struct connections_result *result)
{
	struct counts before, after;
	struct cpu_use start;

	sleep_until(begin, warm_up_seconds(plan));
	before = ask_server(server);
	start = cpu_use_now(setup);
	sleep_until(begin, total_seconds(plan));
	result->cpu = cpu_use_since(setup, &start);
	after = ask_server(server);
	result->messages = after.messages - before.messages;
	result->server = after.running - before.running;
}

static void run_scheme(const struct setup *setup, const struct connections_plan *plan,
		       struct connections_result *result)
{
	const struct connections_scheme *scheme = result->scheme;
	struct program server, load;
	struct timespec begin;
	int fd = open_twheel(), status;
	uint64_t free_bytes;
	uint32_t rule = 0;

	start_server(&server, plan, scheme);
	start_load(&load, plan, strcmp(scheme->name, "none"));
	sleep(SETTLE);
	free_bytes = device_free_bytes(setup) + (scheme->wheel ? chunk_bytes() : 0);
	begin = clock_now();
	send_request(&load);
	/* By then each has had its second message, so none has been idle since it was made. */
	sleep_until(&begin, 1.2 * plan->heartbeat);
	if (scheme->rule)
		rule = add_rule(fd, plan);
	sleep_until(&begin, 1.5 * plan->heartbeat);
	result->memory = ((double)free_bytes - device_free_bytes(setup)) / plan->nr;
	measure_cpu(setup, &server, &begin, plan, result);
	read_load(&load, result);
	status = end_program(&load);
	if (status != (result->false_kicks || result->missed_kicks))
		errx(EXIT_FAILED, "%s: the load has ended with status %d", scheme->name, status);
	result->arming = ask_server(&server).arming / plan->nr;
	if (scheme->rule)
		remove_rule(fd, rule);
	if (end_program(&server))
		errx(EXIT_FAILED, "%s: the server has failed", scheme->name);
	close(fd);
	sleep(SETTLE);
}

static bool list_contains(const char *name, const char *list)
{
	size_t length = strlen(name);
	const char *word;

	for (word = list; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!strncmp(word, name, length) && (!word[length] || word[length] == ','))
			return true;
	}
	return false;
}

static bool is_chosen(const struct connections_scheme *scheme, const char *list)
{
	if (scheme == schemes)
		return true;
	return list ? list_contains(scheme->name, list) : program_exists(scheme->program);
}

/*
 * Computes the CPU time of the timeouts: kernel time that the load takes even without timeouts is
 * subtracted.
 */
static void set_total(struct connections_result *result, const struct connections_result *none)
{
	double more;
	int part;

	result->cpu_total = result->server;
	for (part = 0; part < CPU_NR_PARTS; part++) {
		more = result->cpu.part[part] -
		       none->cpu.part[part] * result->cpu.time / none->cpu.time;
		result->cpu_total += more > 0 ? more : 0;
	}
}

/**
 * connections_measure - measure all schemes
 * @setup:	what was chosen
 * @plan:	the load
 * @list:	names of schemes, or NULL for all
 * @results:	filled in
 */
void connections_measure(const struct setup *setup, const struct connections_plan *plan,
			 char *list, struct connections_results *results)
{
	struct connections_result *result = allocate(ARRAY_SIZE(schemes), sizeof(*result));
	size_t i;

	*results = (struct connections_results) { .plan = *plan, .result = result };
	enter_network_namespace();
	for (i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!is_chosen(&schemes[i], list))
			continue;
		fprintf(stderr, "%s ...\n", schemes[i].name);
		result[results->nr].scheme = &schemes[i];
		run_scheme(setup, plan, &result[results->nr]);
		set_total(&result[results->nr], result);
		results->nr++;
	}
}
