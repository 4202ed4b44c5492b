// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the scripts need from the device: not a test itself.
 *
 *	exercise use N		use N timers in every way, leave some, and exit
 *	exercise across N	use N timers from two CPUs: of four, one expires, one is
 *				moved and expires, one is cancelled, and one is left
 *	exercise hold N		arm N timers, print "holding", and stay until killed
 *	exercise rule N		have a rule watch N connections, close the device, print
 *				"holding", and stay until killed
 *	exercise ports N	add a rule for port N that also asks for ports 80 to 90
 *	exercise rules		add rules until there are too many, print how many
 *	exercise info		print "TICK_NS MAX_TIMERS"
 *	exercise fill		print how many timers the context takes
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <linux/twheel_rules.h>

#include "twheel_test.h"

static int print_failure(const char *what, int ret)
{
	printf("# exercise: %s: %d\n", what, ret);
	return 1;
}

static int use_timers(int fd, unsigned int n)
{
	__u64 *handles = calloc(n, sizeof(*handles));
	struct twheel_event events[64];
	unsigned int i;
	int ret;

	if (!handles)
		return print_failure("calloc", n);
	for (i = 0; i < n; i++) {
		ret = wh_add(fd, i % 4 ? HOUR : i * USEC, 0, i, &handles[i]);
		if (ret)
			return print_failure("add", ret);
	}
	for (i = 1; i < n; i += 4) {
		ret = wh_rearm(fd, handles[i], i & 4 ? MSEC : 2 * HOUR, 0);
		if (ret != TWHEEL_WAS_PENDING)
			return print_failure("rearm", ret);
	}
	for (i = 2; i < n; i += 4) {
		ret = wh_cancel(fd, handles[i]);
		if (ret != TWHEEL_WAS_PENDING)
			return print_failure("cancel", ret);
	}
	for (i = 0; i < n / 4;) {
		if (!wh_wait(fd))
			return print_failure("expired", i);
		ret = wh_read(fd, events, 64);
		if (ret < 1)
			return print_failure("read", ret);
		i += ret;
	}
	free(handles);
	/* The rest is left to close. */
	return 0;
}

/* Far enough to be enqueued on a coarser level first. */
#define FAR	(200 * MSEC)

static int use_two_cpus(int fd, unsigned int n)
{
	__u64 *handles = calloc(n, sizeof(*handles));
	unsigned int i;
	int cpu[2], ret;

	if (!handles || cpus(cpu, 2) != 2)
		return print_failure("two CPUs", n);
	pin(cpu[0]);
	for (i = 0; i < n; i++) {
		ret = wh_add(fd, i % 4 ? HOUR : FAR, 0, i, &handles[i]);
		if (ret)
			return print_failure("add", ret);
	}
	pin(cpu[1]);
	for (i = 0; i < n; i++) {
		ret = TWHEEL_WAS_PENDING;
		if (i % 4 == 1)
			ret = wh_rearm(fd, handles[i], FAR, 0);
		if (i % 4 == 2)
			ret = wh_cancel(fd, handles[i]);
		if (ret != TWHEEL_WAS_PENDING)
			return print_failure("rearm or cancel", ret);
	}
	free(handles);
	return wh_wait_events(fd, n / 2) ? 0 : print_failure("expired", wh_nr_events(fd));
}

static int hold_timers(int fd, unsigned int n)
{
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = wh_add(fd, i & 1 ? HOUR : 0, 0, i, NULL);
		if (ret)
			return print_failure("add", ret);
	}
	printf("holding\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* Makes connections to itself. Returns the port of the other end, or -errno. */
static int connect_self(int n)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), i, fd;
	socklen_t len = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (void *)&in, len) || listen(listener, n) ||
	    getsockname(listener, (void *)&in, &len))
		return -errno;
	for (i = 0; i < n; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&in, len) || accept(listener, NULL, NULL) < 0)
			return -errno;
	}
	return ntohs(in.sin_port);
}

static int hold_rule(int fd, unsigned int n)
{
	struct twheel_rule rule = {
		.flags	= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.idle	= HOUR,
	};
	int port = connect_self(n), ret;

	if (port < 0)
		return print_failure("connect", port);
	rule.local_port = port;
	ret = wh_ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule);
	if (!ret) {
		rule.id--;
		ret = wh_ioctl(fd, TWHEEL_IOC_RULE_NEXT, &rule);
	}
	if (ret || rule.watched != n)
		return print_failure("rule", ret);
	close(fd);
	printf("holding\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int fill_context(int fd)
{
	unsigned int n = 0;
	int ret;

	while (!(ret = wh_add(fd, HOUR, 0, n, NULL)))
		n++;
	if (ret != -ENOSPC)
		return print_failure("add", ret);
	printf("%u\n", n);
	return 0;
}

/* Adds rules until there are too many. */
static int fill_rules(int fd)
{
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.local_port	= 1,
		.idle		= HOUR,
	};
	unsigned int n = 0;
	int ret;

	while (!(ret = wh_ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule)))
		n++;
	if (ret != -ENOSPC)
		return print_failure("rule", ret);
	printf("%u\n", n);
	return 0;
}

/* twctl asks for one or the other, never for both. */
static int add_ports(int fd, unsigned int n)
{
	struct twheel_match match = {
		.kind		= TWHEEL_MATCH_LOCAL_PORT,
		.first		= 80,
		.last		= 90,
	};
	struct twheel_rule rule = {
		.flags		= TWHEEL_RULE_LOCAL_PORT | TWHEEL_WATCH_ABORT,
		.local_port	= n,
		.idle		= HOUR,
		.matches	= (uintptr_t)&match,
		.nr_matches	= 1,
	};
	int ret = wh_ioctl(fd, TWHEEL_IOC_RULE_ADD, &rule);

	return ret ? print_failure("rule", ret) : 0;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? atoi(argv[2]) : 0;
	const char *what = argc > 1 ? argv[1] : "";
	int fd = wh_open(0);
	struct twheel_info info;

	if (fd < 0)
		return print_failure("open", fd);
	if (!strcmp(what, "use"))
		return use_timers(fd, n);
	if (!strcmp(what, "across"))
		return use_two_cpus(fd, n);
	if (!strcmp(what, "hold"))
		return hold_timers(fd, n);
	if (!strcmp(what, "rule"))
		return hold_rule(fd, n);
	if (!strcmp(what, "ports"))
		return add_ports(fd, n);
	if (!strcmp(what, "rules"))
		return fill_rules(fd);
	if (!strcmp(what, "fill"))
		return fill_context(fd);
	if (!strcmp(what, "info") && !wh_info(fd, &info)) {
		printf("%llu %llu\n", info.tick_ns, info.max_timers);
		return 0;
	}
	return print_failure("usage: exercise use|across|hold|rule|ports|rules|info|fill", argc);
}
