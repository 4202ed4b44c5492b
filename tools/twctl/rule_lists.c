// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: a rule's lists of ports, addresses and families
 *
 * The entries are kept sorted, so that the lists of equal rules are equal byte for byte.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "twctl.h"

const struct rule_list rule_lists[] = {
	{ "port", TWHEEL_MATCH_LOCAL_PORT, 0 },
	{ "not-port", TWHEEL_MATCH_LOCAL_PORT, TWHEEL_MATCH_NOT },
	{ "remote-port", TWHEEL_MATCH_REMOTE_PORT, 0 },
	{ "not-remote-port", TWHEEL_MATCH_REMOTE_PORT, TWHEEL_MATCH_NOT },
	{ "remote", TWHEEL_MATCH_REMOTE, 0 },
	{ "not-remote", TWHEEL_MATCH_REMOTE, TWHEEL_MATCH_NOT },
	{ "family", TWHEEL_MATCH_FAMILY, 0 },
	{ "not-family", TWHEEL_MATCH_FAMILY, TWHEEL_MATCH_NOT },
	{ 0 },
};

/**
 * rule_matches - get the list entries of a rule
 * @rule:	the rule; @rule->nr_matches is their number
 */
struct twheel_match *rule_matches(const struct twheel_rule *rule)
{
	return (struct twheel_match *)(uintptr_t)rule->matches;
}

static int compare_matches(const void *left, const void *right)
{
	const struct twheel_match *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind - b->kind;
	if (a->flags != b->flags)
		return a->flags - b->flags;
	if (a->first != b->first)
		return a->first - b->first;
	return memcmp(a, b, sizeof(*a));
}

/* Adds an entry to a rule's lists, unless it is there already. */
static void add_match(const struct command *command, struct twheel_rule *rule,
		      const struct twheel_match *match)
{
	struct twheel_match *all = rule_matches(rule);

	if (!all) {
		all = calloc(TWHEEL_RULE_MATCHES, sizeof(*all));
		if (!all)
			errx(EXIT_FAILED, "out of memory");
		rule->matches = (uintptr_t)all;
	}
	if (rule->nr_matches &&
	    bsearch(match, all, rule->nr_matches, sizeof(*all), compare_matches))
		return;
	if (rule->nr_matches == TWHEEL_RULE_MATCHES)
		usage(command, "more than %d ports, addresses and families; use two rules",
		      TWHEEL_RULE_MATCHES);
	all[rule->nr_matches++] = *match;
	qsort(all, rule->nr_matches, sizeof(*all), compare_matches);
}

static uint16_t parse_port(const struct command *command, const char *option, const char *text)
{
	return parse_count(command, option, text, UINT16_MAX);
}

static void parse_ports(const struct command *command, const char *option, char *text,
			struct twheel_match *match)
{
	/* Skip the first character: "-80" is neither a port nor a range. */
	char *dash = *text ? strchr(text + 1, '-') : NULL;

	if (dash)
		*dash++ = '\0';
	match->first = parse_port(command, option, text);
	match->last = dash ? parse_port(command, option, dash) : match->first;
	if (match->last < match->first)
		usage(command, "%s '%s-%s' ends before it begins", option, text, dash);
}

static unsigned int bits_of(uint16_t family)
{
	return family == AF_INET ? 32 : 128;
}

/* Clears the bits after the prefix: they have no meaning, and the kernel rejects them. */
static void clear_host_bits(struct twheel_match *match)
{
	unsigned int bit;

	for (bit = match->prefix; bit < 8 * sizeof(match->address); bit++)
		match->address[bit / 8] &= ~(0x80 >> bit % 8);
}

/*
 * Converts IPv4-mapped IPv6 addresses, as other programs show them, to IPv4: that is what rules
 * compare for an IPv4 connection of an IPv6 socket.
 */
static void unmap_ipv4(struct twheel_match *match)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (match->family != AF_INET6 || match->prefix < 8 * sizeof(mapped) ||
	    memcmp(match->address, mapped, sizeof(mapped)))
		return;
	match->family = AF_INET;
	match->prefix -= 8 * sizeof(mapped);
	memmove(match->address, match->address + sizeof(mapped), 4);
	memset(match->address + 4, 0, sizeof(mapped));
}

static void parse_prefix(const struct command *command, const char *option, char *text,
			 struct twheel_match *match)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long prefix;

	if (slash)
		*slash++ = '\0';
	match->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(match->family, text, match->address) != 1)
		usage(command, "%s '%s' is not an address like 10.0.0.0/8 or fe80::/10", option,
		      text);
	prefix = bits_of(match->family);
	if (slash) {
		prefix = strtoul(slash, &end, 10);
		if (!isdigit((unsigned char)*slash) || *end || prefix > bits_of(match->family))
			usage(command, "%s '%s/%s' has a prefix that is not from 0 to %u", option,
			      text, slash, bits_of(match->family));
	}
	match->prefix = prefix;
	clear_host_bits(match);
	unmap_ipv4(match);
}

static void parse_family(const struct command *command, const char *option, const char *text,
			 struct twheel_match *match)
{
	if (!strcmp(text, "inet"))
		match->family = AF_INET;
	else if (!strcmp(text, "inet6"))
		match->family = AF_INET6;
	else
		usage(command, "%s '%s' is not inet or inet6", option, text);
}

/**
 * rule_lists_parse - parse the value of an option that is a list, or exit
 * @command:	the command
 * @rule:	the rule that the entries are added to
 * @list:	which list it is
 * @value:	one or more entries, separated by commas
 */
void rule_lists_parse(const struct command *command, struct twheel_rule *rule,
		      const struct rule_list *list, const char *value)
{
	char *copy = strdup(value), *rest = copy, *text, option[32];

	if (!copy)
		errx(EXIT_FAILED, "out of memory");
	snprintf(option, sizeof(option), "--%s", list->option);
	while ((text = strsep(&rest, ","))) {
		struct twheel_match match = { .kind = list->kind, .flags = list->flags };

		if (list->kind == TWHEEL_MATCH_REMOTE)
			parse_prefix(command, option, text, &match);
		else if (list->kind == TWHEEL_MATCH_FAMILY)
			parse_family(command, option, text, &match);
		else
			parse_ports(command, option, text, &match);
		add_match(command, rule, &match);
	}
	free(copy);
}

static void print_match(FILE *out, const struct twheel_match *match)
{
	char address[INET6_ADDRSTRLEN];

	switch (match->kind) {
	case TWHEEL_MATCH_REMOTE:
		inet_ntop(match->family, match->address, address, sizeof(address));
		fputs(address, out);
		if (match->prefix < bits_of(match->family))
			fprintf(out, "/%u", match->prefix);
		break;
	case TWHEEL_MATCH_FAMILY:
		fputs(match->family == AF_INET ? "inet" : "inet6", out);
		break;
	default:
		fprintf(out, "%u", match->first);
		if (match->last != match->first)
			fprintf(out, "-%u", match->last);
	}
}

static bool is_of_list(const struct twheel_match *match, const struct rule_list *list)
{
	return match->kind == list->kind && match->flags == list->flags;
}

/* The single port that a rule demands at the end that @list is for, or 0. */
static unsigned int single_port(const struct twheel_rule *rule, const struct rule_list *list)
{
	if (list->kind == TWHEEL_MATCH_LOCAL_PORT && rule->flags & TWHEEL_RULE_LOCAL_PORT)
		return rule->local_port;
	if (list->kind == TWHEEL_MATCH_REMOTE_PORT && rule->flags & TWHEEL_RULE_REMOTE_PORT)
		return rule->remote_port;
	return 0;
}

/* Does a rule have a list of this kind that allows ports, but not this one? */
static bool list_lacks_port(const struct twheel_rule *rule, uint16_t kind, unsigned int port)
{
	const struct twheel_match *match = rule_matches(rule);
	bool named = false;
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++, match++) {
		if (match->kind != kind || match->flags)
			continue;
		if (port >= match->first && port <= match->last)
			return false;
		named = true;
	}
	return named;
}

/**
 * rule_lists_text - format one of a rule's lists so that rule_lists_parse() can read it
 * @rule:	the rule
 * @list:	which list
 *
 * A single port has a field of its own in a rule, but belongs to the list nevertheless. A program
 * may set both, and then a connection must match both. So that port alone is allowed; or none, if
 * the list lacks it, which is expressed by both allowing and excluding that port.
 *
 * Return: the text, to be freed by the caller; or NULL if the list is empty.
 */
char *rule_lists_text(const struct twheel_rule *rule, const struct rule_list *list)
{
	const unsigned int port = single_port(rule, list);
	const struct twheel_match *match = rule_matches(rule);
	const char *gap = "";
	char *text = NULL;
	size_t size;
	FILE *out;
	uint32_t i;

	out = open_memstream(&text, &size);
	if (!out)
		errx(EXIT_FAILED, "out of memory");
	if (port && (!list->flags || list_lacks_port(rule, list->kind, port))) {
		fprintf(out, "%u", port);
		gap = ",";
	}
	for (i = 0; i < rule->nr_matches; i++, match++) {
		if (!is_of_list(match, list) || (port && !list->flags))
			continue;
		fputs(gap, out);
		print_match(out, match);
		gap = ",";
	}
	if (fclose(out))
		errx(EXIT_FAILED, "out of memory");
	if (*gap)
		return text;
	free(text);
	return NULL;
}

/**
 * rule_list_only - rule_lists_text() without the rule's single port
 * @rule:	the rule
 * @list:	which list
 */
char *rule_list_only(const struct twheel_rule *rule, const struct rule_list *list)
{
	struct twheel_rule only = *rule;

	only.flags = 0;
	return rule_lists_text(&only, list);
}

/**
 * rule_list_name - the name of a list in JSON and in metrics
 * @list:	which list
 */
struct text rule_list_name(const struct rule_list *list)
{
	struct text name;
	char *c;

	snprintf(name.s, sizeof(name.s), "%s_list", list->option);
	for (c = name.s; *c; c++)
		if (*c == '-')
			*c = '_';
	return name;
}

/**
 * rule_lists_finish - complete the lists after all options of a rule have been parsed
 * @rule:	the rule
 *
 * Moves a list that is a single port to the field for it: modules without lists support that, too.
 */
void rule_lists_finish(struct twheel_rule *rule)
{
	static const struct {
		uint16_t kind;
		uint32_t flag;
	} ports[] = {
		{ TWHEEL_MATCH_LOCAL_PORT, TWHEEL_RULE_LOCAL_PORT },
		{ TWHEEL_MATCH_REMOTE_PORT, TWHEEL_RULE_REMOTE_PORT },
	};
	struct twheel_match *all = rule_matches(rule), *only;
	size_t p;
	uint32_t i, nr;

	for (p = 0; p < ARRAY_SIZE(ports); p++) {
		for (i = 0, nr = 0, only = NULL; i < rule->nr_matches; i++)
			if (all[i].kind == ports[p].kind && !all[i].flags && ++nr)
				only = &all[i];
		if (nr != 1 || only->first != only->last)
			continue;
		*(p ? &rule->remote_port : &rule->local_port) = only->first;
		rule->flags |= ports[p].flag;
		memmove(only, only + 1, (all + rule->nr_matches - only - 1) * sizeof(*only));
		rule->nr_matches--;
	}
	if (!rule->nr_matches) {
		free(all);
		rule->matches = 0;
	}
}
