// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle show: list the connections of a rule
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "twctl.h"

/**
 * struct address - an IP address as text
 * @s:	the text
 */
struct address {
	char	s[INET6_ADDRSTRLEN];
};

static struct address format_address(uint16_t family, const void *bytes)
{
	struct address address = { "?" };

	inet_ntop(family, bytes, address.s, sizeof(address.s));
	return address;
}

/* Formatted as in ss -e and in the tracepoint. */
static struct text format_cookie(uint64_t cookie)
{
	struct text text;

	snprintf(text.s, sizeof(text.s), "%" PRIx64, cookie);
	return text;
}

/* Prints address and port as ss does. */
static void print_endpoint(uint16_t family, const void *bytes, uint16_t port)
{
	char text[INET6_ADDRSTRLEN + sizeof("[]:65535")];

	snprintf(text, sizeof(text), family == AF_INET6 ? "[%s]:%u" : "%s:%u",
		 format_address(family, bytes).s, port);
	printf("%-23s ", text);
}

/* Has a dry run counted it? Then nothing more happens to it. */
static bool is_counted(const struct twheel_connection *connection)
{
	return connection->flags & TWHEEL_CONNECTION_COUNTED;
}

/* Will it be closed at all? Not by a rule that is an exception. */
static bool is_limited(const struct twheel_connection *connection)
{
	return connection->remaining <= TWHEEL_TIME_MAX;
}

static struct text format_remaining(const struct twheel_connection *connection)
{
	struct text counted = { "counted" }, never = { "-" };

	if (is_counted(connection))
		return counted;
	return is_limited(connection) ? duration_format(connection->remaining) : never;
}

static void print_connection(const struct twheel_connection *connection)
{
	print_endpoint(connection->family, connection->local_address, connection->local_port);
	print_endpoint(connection->family, connection->remote_address, connection->remote_port);
	printf("%6" PRIu32 " %9s %9s %8" PRIu32 " %8" PRIu32 "  %s\n", connection->uid,
	       duration_format(connection->idle).s, format_remaining(connection).s,
	       connection->unsent, connection->unacked, format_cookie(connection->cookie).s);
}

static void json_connection(struct json *json, const struct twheel_connection *connection)
{
	uint16_t family = connection->family;

	json_object(json, NULL);
	json_string(json, "local_address", format_address(family, connection->local_address).s);
	json_number(json, "local_port", connection->local_port);
	json_string(json, "remote_address",
		    format_address(family, connection->remote_address).s);
	json_number(json, "remote_port", connection->remote_port);
	json_number(json, "uid", connection->uid);
	json_number(json, "idle_ns", connection->idle);
	if (is_limited(connection))
		json_number(json, "remaining_ns", connection->remaining);
	else
		json_null(json, "remaining_ns");
	json_bool(json, "counted", is_counted(connection));
	json_number(json, "unsent", connection->unsent);
	json_number(json, "unacked", connection->unacked);
	json_string(json, "cookie", format_cookie(connection->cookie).s);
	json_end(json);
}

/*
 * Sorts by remaining time, shortest first, then by idle time, longest first. Connections that a dry
 * run has counted come last.
 */
static int compare_connections(const void *left, const void *right)
{
	const struct twheel_connection *a = left, *b = right;

	if (is_counted(a) != is_counted(b))
		return is_counted(a) - is_counted(b);
	if (a->remaining != b->remaining)
		return a->remaining < b->remaining ? -1 : 1;
	return (a->idle < b->idle) - (a->idle > b->idle);
}

static const struct choice choices[] = {
	CHOICE_JSON,
	{ "count", 'n', "N", "show the first N only" },
	{ 0 },
};

static int run_idle_show(int argc, char **argv)
{
	struct json json = { .out = stdout };
	struct twheel_connection *all;
	uint64_t count = UINT64_MAX;
	bool as_json = false;
	size_t nr, i;
	const struct twheel_rule *rule;
	struct rules rules = { 0 };
	const char *name;
	int letter, fd;

	while ((letter = next_option(&idle_show_command, argc, argv)) >= 0) {
		if (letter == 'n')
			count = parse_count(&idle_show_command, "--count", optarg, UINT32_MAX);
		else
			as_json = true;
	}
	if (optind == argc)
		usage(&idle_show_command, "which rule? Give its ID or NAME");
	name = argv[optind++];
	no_operands(&idle_show_command, argc, argv);
	fd = device_open();
	rules_gather(fd, &rules);
	rule = rules_require(&rules, name);
	all = rules_connections(fd, rule->id, &nr);
	qsort(all, nr, sizeof(*all), compare_connections);
	if (as_json)
		json_array(&json, NULL);
	else
		printf("%-23s %-23s %6s %9s %9s %8s %8s  %s\n", "LOCAL", "REMOTE", "UID", "IDLE",
		       "REMAINING", "UNSENT", "UNACKED", "COOKIE");
	for (i = 0; i < nr && i < count; i++) {
		if (as_json)
			json_connection(&json, &all[i]);
		else
			print_connection(&all[i]);
	}
	if (as_json)
		json_end(&json);
	free(all);
	return 0;
}

const struct command idle_show_command = {
	.name		= "idle show",
	.operands	= "ID | NAME",
	.summary	= "the connections of a rule; what would be closed next comes first",
	.choices	= choices,
	.run		= run_idle_show,
};
