// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: comparing which connections two rules can match
 *
 * Ports and families are compared exactly. For addresses, users, cgroups and processes the answer
 * is conservative: for example, two prefixes that together make up a third are not recognized.
 */
#include <string.h>
#include <sys/socket.h>

#include "twctl.h"

#define MAX_PORT	65535

/* Does a rule have list entries of this kind, with these flags? */
static bool has_list(const struct twheel_rule *rule, uint16_t kind, uint16_t flags)
{
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++)
		if (rule_matches(rule)[i].kind == kind && rule_matches(rule)[i].flags == flags)
			return true;
	return false;
}

/**
 * struct end - the ports that a rule allows at one end of a connection
 * @rule:	the rule
 * @kind:	the kind of its list entries that apply to this end
 * @has_port:	the rule demands a single port
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

static bool allows_port(const struct end *end, unsigned int port)
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
 * struct port_query - a search for a port by what two rules allow
 * @a:		this must allow the port
 * @b:		this must allow it if @both, or else must not
 * @both:	see @b
 */
struct port_query {
	struct end	a;
	struct end	b;
	bool		both;
};

static bool port_matches(const struct port_query *query, unsigned int port)
{
	return port && port <= MAX_PORT && allows_port(&query->a, port) &&
	       allows_port(&query->b, port) == query->both;
}

/* Does a port match at which what @end allows may begin or cease to be allowed? */
static bool boundary_matches(const struct port_query *query, const struct end *end)
{
	const struct twheel_match *match = rule_matches(end->rule);
	uint32_t i;

	if (end->has_port && (port_matches(query, end->port) || port_matches(query, end->port + 1)))
		return true;
	for (i = 0; i < end->rule->nr_matches; i++, match++)
		if (match->kind == end->kind &&
		    (port_matches(query, match->first) || port_matches(query, match->last + 1)))
			return true;
	return false;
}

/*
 * Is there a port that @a allows, and that @b allows if @both, or else does not? It is enough to
 * try the boundaries: all ports between two of them give the same answer.
 */
static bool find_port(const struct twheel_rule *a, const struct twheel_rule *b, bool remote,
		      bool both)
{
	const struct port_query query = { end_of(a, remote), end_of(b, remote), both };

	return port_matches(&query, 1) || boundary_matches(&query, &query.a) ||
	       boundary_matches(&query, &query.b);
}

/* Does @outer allow all ports that @inner allows? */
static bool ports_cover(const struct twheel_rule *outer, const struct twheel_rule *inner,
			bool remote)
{
	return !find_port(inner, outer, remote, false);
}

static bool ports_overlap(const struct twheel_rule *a, const struct twheel_rule *b, bool remote)
{
	return find_port(a, b, remote, true);
}

/**
 * rule_families - get the families that a rule allows
 * @rule:	the rule
 *
 * Return: bit 0 for IPv4, bit 1 for IPv6; 0 if its addresses are of none that it allows.
 */
unsigned int rule_families(const struct twheel_rule *rule)
{
	unsigned int named = 0, not = 0, remote = 0, bit;
	uint32_t i;

	for (i = 0; i < rule->nr_matches; i++) {
		const struct twheel_match *match = &rule_matches(rule)[i];

		bit = match->family == AF_INET ? 1 : 2;
		if (match->kind == TWHEEL_MATCH_FAMILY)
			*(match->flags ? &not : &named) |= bit;
		else if (match->kind == TWHEEL_MATCH_REMOTE && !match->flags)
			remote |= bit;
	}
	return (named ?: 3) & (remote ?: 3) & ~not;
}

/* Is prefix @inner equal to @outer, or contained in it? */
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

/* Is a prefix contained in one of those in the rule's list with these flags? */
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

/* Does @outer certainly allow all addresses that @inner allows? */
static bool addresses_cover(const struct twheel_rule *outer, const struct twheel_rule *inner)
{
	const struct twheel_match *match;
	uint32_t i;

	/* @inner must exclude whatever @outer excludes. */
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
 * rule_covers - does one rule match all connections that another one can match?
 * @outer:	the one
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
	       !(rule_families(inner) & ~rule_families(outer)) && addresses_cover(outer, inner);
}

/**
 * rules_overlap - can a connection match both of two rules?
 * @a:		one rule
 * @b:		the other one
 *
 * Return: false if that is certainly impossible: then their order does not matter.
 */
bool rules_overlap(const struct twheel_rule *a, const struct twheel_rule *b)
{
	if (a->flags & b->flags & TWHEEL_RULE_UID && a->uid != b->uid)
		return false;
	return ports_overlap(a, b, false) && ports_overlap(a, b, true) &&
	       rule_families(a) & rule_families(b);
}
