// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: criteria of a rule that are given as lists: ports, addresses and families
 *
 * For each kind of entry in a list, a connection must match one of the entries without
 * TWHEEL_MATCH_NOT, if there are such, and none of those with it. A list has at most
 * TWHEEL_RULE_MATCHES entries, and is read from beginning to end for each connection: for so few,
 * no set would be faster.
 *
 * An IPv4 connection of an IPv6 socket has IPv4-mapped addresses. For a rule it is an IPv4
 * connection.
 */
#include <linux/bits.h>
#include <linux/in6.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <uapi/linux/twheel_rules.h>

#include "match_list.h"

/* The other end of a connection, as a rule sees it. */
struct peer {
	u16	family;
	u8	address[16];
};

static bool is_port(const struct twheel_match *match)
{
	return match->kind == TWHEEL_MATCH_LOCAL_PORT || match->kind == TWHEEL_MATCH_REMOTE_PORT;
}

/* How many bits the addresses of a family have; 0 if rules do not support it. */
static unsigned int address_bits(u16 family)
{
	return family == AF_INET ? 32 : family == AF_INET6 ? 128 : 0;
}

/* Are the first @prefix bits of two addresses the same? */
static bool has_prefix(const u8 *address, const u8 *other, unsigned int prefix)
{
	const unsigned int whole = prefix / 8, rest = prefix % 8;

	if (memcmp(address, other, whole))
		return false;
	return !rest || !((address[whole] ^ other[whole]) >> (8 - rest));
}

/* Are all bits of an address after the prefix 0? */
static bool is_masked(const struct twheel_match *match)
{
	u8 masked[sizeof(match->address)] = { };

	memcpy(masked, match->address, DIV_ROUND_UP(match->prefix, 8));
	if (match->prefix % 8)
		masked[match->prefix / 8] &= GENMASK(7, 8 - match->prefix % 8);
	return !memcmp(masked, match->address, sizeof(masked));
}

static bool entry_is_valid(const struct twheel_match *match)
{
	static const struct twheel_match zero;

	if (match->flags & ~TWHEEL_MATCH_NOT ||
	    memcmp(match->reserved, zero.reserved, sizeof(zero.reserved)))
		return false;
	if (is_port(match))
		return match->first && match->first <= match->last && !match->family &&
		       !match->prefix && is_masked(match);
	if (match->first || match->last || !address_bits(match->family) ||
	    match->prefix > address_bits(match->family))
		return false;
	if (match->kind == TWHEEL_MATCH_FAMILY)
		return !match->prefix && is_masked(match);
	return match->kind == TWHEEL_MATCH_REMOTE && is_masked(match);
}

/**
 * twheel_match_list_valid - check whether a list is valid
 * @list:	the list
 * @nr:		its number of entries
 *
 * Return: true if so.
 */
bool twheel_match_list_valid(const struct twheel_match *list, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		if (!entry_is_valid(&list[i]))
			return false;
	return true;
}

static void set_peer(struct peer *peer, const struct sock *sk)
{
	const __be32 ipv4 = READ_ONCE(sk->sk_daddr);

#if IS_ENABLED(CONFIG_IPV6)
	/* It changes when the socket is reconnected, and then the worker checks once more. */
	const struct in6_addr ipv6 = data_race(sk->sk_v6_daddr);

	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&ipv6)) {
		peer->family = AF_INET6;
		memcpy(peer->address, &ipv6, sizeof(peer->address));
		return;
	}
#endif
	peer->family = AF_INET;
	memcpy(peer->address, &ipv4, sizeof(ipv4));
}

static bool entry_matches(const struct twheel_match *match, const struct sock *sk,
			  const struct peer *peer)
{
	u16 port;

	switch (match->kind) {
	case TWHEEL_MATCH_LOCAL_PORT:
		/* The kernel may release the port meanwhile; then it is 0. */
		port = READ_ONCE(inet_sk(sk)->inet_num);
		return port >= match->first && port <= match->last;
	case TWHEEL_MATCH_REMOTE_PORT:
		/* Likewise. */
		port = ntohs(READ_ONCE(inet_sk(sk)->inet_dport));
		return port >= match->first && port <= match->last;
	case TWHEEL_MATCH_REMOTE:
		return peer->family == match->family &&
		       has_prefix(peer->address, match->address, match->prefix);
	}
	return peer->family == match->family;
}

/**
 * twheel_match_list - check whether a connection matches a list
 * @list:	the list, which is valid
 * @nr:		its number of entries
 * @sk:		the connection's socket
 *
 * Context: any but NMI.
 * Return: true if so.
 */
bool twheel_match_list(const struct twheel_match *list, u32 nr, const struct sock *sk)
{
	/* Kinds of which the connection must match an entry, and those of which it does. */
	unsigned long wanted = 0, found = 0;
	struct peer peer;
	u32 i;

	if (!nr)
		return true;
	set_peer(&peer, sk);
	for (i = 0; i < nr; i++) {
		if (!(list[i].flags & TWHEEL_MATCH_NOT))
			wanted |= BIT(list[i].kind);
		if (!entry_matches(&list[i], sk, &peer))
			continue;
		if (list[i].flags & TWHEEL_MATCH_NOT)
			return false;
		found |= BIT(list[i].kind);
	}
	return wanted == found;
}
