// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: which connections can match a rule, compared with another one
 *
 * Ports and families are compared exactly. Of addresses, users, cgroups and processes it is only
 * said what is certain: two prefixes that together are as much as a third are not recognized.
 */
#include <string.h>
#include <sys/socket.h>

#include "twctl.h"

#define MAX_PORT	65535

/* Does a rule have entries of a kind, with these flags? */
static bool has_list(const struct twheel_rule *rule, uint16_t kind, uint16_t flags)
{
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++)
		if (rule_matches(rule)[i].kind == kind && rule_matches(rule)[i].flags == flags)
			return true;
	return false;
}

/**
 * struct end - one end of the connections that a rule matches, by its ports
 * @rule:	the rule
 * @kind:	of its lists, those that count
 * @has_port:	there is one port that it has to be
 * @port:	that port
 */
struct end {
	const struct twheel_rule	*rule;
	uint16_t			kind;
	bool				has_port;
	unsigned int			port;
};

static struct end end_of(const struct twheel_rule *rule, bool remote)
{
	struct end end = {
		.rule		= rule,
		.kind		= remote ? TWHEEL_MATCH_REMOTE_PORT : TWHEEL_MATCH_LOCAL_PORT,
		.has_port	= rule->flags & (remote ? TWHEEL_RULE_REMOTE_PORT :
							  TWHEEL_RULE_LOCAL_PORT),
		.port		= remote ? rule->remote_port : rule->local_port,
	};

	return end;
}

static bool allows(const struct end *end, unsigned int port)
{
	const struct twheel_match *match = rule_matches(end->rule);
	bool named = false, found = false;
	uint32_t i;

	if (end->has_port && port != end->port)
		return false;
	for (i = 0; i < end->rule->nr_matches; i++, match++) {
		if (match->kind != end->kind)
			continue;
		named |= !match->flags;
		if (port < match->first || port > match->last)
			continue;
		if (match->flags)
			return false;
		found = true;
	}
	return found || !named;
}

/**
 * struct question - is there a port that one end allows, and that the other one does as well?
 * @a:		one end
 * @b:		the other one
 * @both:	or, if this is false, that it does not?
 */
struct question {
	struct end	a;
	struct end	b;
	bool		both;
};

static bool is_such(const struct question *question, unsigned int port)
{
	return port && port <= MAX_PORT && allows(&question->a, port) &&
	       allows(&question->b, port) == question->both;
}

/* Is there such a port among those from which on what an end allows may be different? */
static bool has_such(const struct question *question, const struct end *end)
{
	const struct twheel_match *match = rule_matches(end->rule);
	uint32_t i;

	if (end->has_port && (is_such(question, end->port) || is_such(question, end->port + 1)))
		return true;
	for (i = 0; i < end->rule->nr_matches; i++, match++)
		if (match->kind == end->kind &&
		    (is_such(question, match->first) || is_such(question, match->last + 1)))
			return true;
	return false;
}

/* Is there such a port? Between two of those that are looked at all are the same. */
static bool find_port(const struct twheel_rule *a, const struct twheel_rule *b, bool remote,
		      bool both)
{
	const struct question question = { end_of(a, remote), end_of(b, remote), both };

	return is_such(&question, 1) || has_such(&question, &question.a) ||
	       has_such(&question, &question.b);
}

/* Are all of the ports that @inner allows allowed by @outer? */
static bool ports_cover(const struct twheel_rule *outer, const struct twheel_rule *inner,
			bool remote)
{
	return !find_port(inner, outer, remote, false);
}

static bool ports_overlap(const struct twheel_rule *a, const struct twheel_rule *b, bool remote)
{
	return find_port(a, b, remote, true);
}

/* The families that a rule allows: a bit for IPv4, and one for IPv6. */
static unsigned int families_of(const struct twheel_rule *rule)
{
	unsigned int named = 0, not = 0, bit;
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++) {
		const struct twheel_match *match = &rule_matches(rule)[i];

		bit = match->family == AF_INET ? 1 : 2;
		if (match->kind == TWHEEL_MATCH_FAMILY)
			*(match->flags ? &not : &named) |= bit;
	}
	return (named ?: 3) & ~not;
}

/* Is a prefix as long as another one or longer, and in it? */
static bool is_in_prefix(const struct twheel_match *inner, const struct twheel_match *outer)
{
	struct twheel_match cut = *inner;
	unsigned int bit;

	if (inner->family != outer->family || inner->prefix < outer->prefix)
		return false;
	for (bit = outer->prefix; bit < 8 * sizeof(cut.address); bit++)
		cut.address[bit / 8] &= ~(0x80 >> bit % 8);
	return !memcmp(cut.address, outer->address, sizeof(cut.address));
}

/* Is a prefix in one of those that a rule has with these flags? */
static bool is_in_list(const struct twheel_match *inner, const struct twheel_rule *rule,
		       uint16_t flags)
{
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++) {
		const struct twheel_match *match = &rule_matches(rule)[i];

		if (match->kind == TWHEEL_MATCH_REMOTE && match->flags == flags &&
		    is_in_prefix(inner, match))
			return true;
	}
	return false;
}

/* Are all addresses that @inner allows surely allowed by @outer? */
static bool addresses_cover(const struct twheel_rule *outer, const struct twheel_rule *inner)
{
	const struct twheel_match *match;
	uint32_t i;

	/* What the outer one excludes the inner one has to exclude as well. */
	for (i = 0; i < outer->nr_matches; i++) {
		match = &rule_matches(outer)[i];
		if (match->kind == TWHEEL_MATCH_REMOTE && match->flags &&
		    !is_in_list(match, inner, TWHEEL_MATCH_NOT))
			return false;
	}
	if (!has_list(outer, TWHEEL_MATCH_REMOTE, 0))
		return true;
	if (!has_list(inner, TWHEEL_MATCH_REMOTE, 0))
		return false;
	for (i = 0; i < inner->nr_matches; i++) {
		match = &rule_matches(inner)[i];
		if (match->kind == TWHEEL_MATCH_REMOTE && !match->flags &&
		    !is_in_list(match, outer, 0))
			return false;
	}
	return true;
}

/**
 * rule_covers - does a rule match all connections that another one can match?
 * @outer:	the rule
 * @inner:	the other one
 *
 * Return: true if that is certain.
 */
bool rule_covers(const struct twheel_rule *outer, const struct twheel_rule *inner)
{
	const uint32_t only_outer = outer->flags & ~inner->flags;

	if (only_outer & (TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP | TWHEEL_RULE_PID))
		return false;
	if ((outer->flags & TWHEEL_RULE_UID && outer->uid != inner->uid) ||
	    (outer->flags & TWHEEL_RULE_CGROUP && outer->cgroup != inner->cgroup) ||
	    (outer->flags & TWHEEL_RULE_PID && outer->pid != inner->pid))
		return false;
	return ports_cover(outer, inner, false) && ports_cover(outer, inner, true) &&
	       !(families_of(inner) & ~families_of(outer)) && addresses_cover(outer, inner);
}

/**
 * rules_overlap - may a connection match both of two rules?
 * @a:		a rule
 * @b:		another one
 *
 * Return: false if that is certainly not so: then their order means nothing.
 */
bool rules_overlap(const struct twheel_rule *a, const struct twheel_rule *b)
{
	if (a->flags & b->flags & TWHEEL_RULE_UID && a->uid != b->uid)
		return false;
	return ports_overlap(a, b, false) && ports_overlap(a, b, true) &&
	       families_of(a) & families_of(b);
}
