/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * twheel: rules for idle connections, through /dev/twheel
 */
#ifndef _UAPI_LINUX_TWHEEL_RULES_H
#define _UAPI_LINUX_TWHEEL_RULES_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include <linux/twheel.h>

/**
 * DOC: Rules
 *
 * A rule closes idle TCP connections of programs that know nothing of it. It belongs to the
 * network namespace of who adds it, and applies to that namespace's connections: those
 * that are there, and those that come. It stays until it is removed or its namespace
 * goes; closing the device does not end it, and the module cannot be unloaded meanwhile. Rules
 * have an order: a new one comes last, or before another one. Of several that match a connection
 * the first one applies. If no rule is left that matches, the connection is left alone.
 *
 * A connection matches if it has everything that the rule asks for; a rule that asks for
 * nothing is refused. It is looked at when it is established, when a rule is added before
 * others, and again before it is closed.
 *
 * A connection with data in its send queue waits for its peer and is not idle. An idle timeout
 * that has passed closes it only after the peer has acknowledged nothing for @stalled. If it was
 * spared for that, its idle timeout begins anew, once, with the last acknowledgment.
 *
 * All ioctls need CAP_NET_ADMIN in the user namespace that owns the network namespace, and
 * give EPERM without. The rules of structures and errnos are those of linux/twheel.h.
 */

/* What a rule asks for; the actions and what is activity are flags as in linux/twheel.h. */
#define TWHEEL_RULE_LOCAL_PORT	(1U << 16)	/* @local_port */
#define TWHEEL_RULE_REMOTE_PORT	(1U << 17)	/* @remote_port */
#define TWHEEL_RULE_UID		(1U << 18)	/* @uid */
#define TWHEEL_RULE_CGROUP	(1U << 19)	/* @cgroup */
#define TWHEEL_RULE_PID		(1U << 20)	/* @pid */
/* Count, and tell by the tracepoint, what would be closed; close nothing. */
#define TWHEEL_RULE_DRY_RUN	(1U << 21)
/* An exception: instead of an action, leave the connections alone. */
#define TWHEEL_RULE_KEEP	(1U << 22)

/* Connections per second that a rule closes if it does not say how many. */
#define TWHEEL_RULE_RATE	1000

/* How long a peer may acknowledge nothing, in nanoseconds, if the rule does not say. */
#define TWHEEL_RULE_STALLED	60000000000ULL

/* Bytes of a rule's name, with the 0 at its end. */
#define TWHEEL_RULE_NAME	32

/* How many struct twheel_match a rule may have. */
#define TWHEEL_RULE_MATCHES	64

/* Entries of struct twheel_rule::late. */
#define TWHEEL_RULE_LATE	20

/* What struct twheel_match::kind is. */
#define TWHEEL_MATCH_LOCAL_PORT		1	/* a port of this machine: @first to @last */
#define TWHEEL_MATCH_REMOTE_PORT	2	/* a port of the other one: @first to @last */
#define TWHEEL_MATCH_REMOTE		3	/* the other one's @address, by @prefix */
#define TWHEEL_MATCH_FAMILY		4	/* @family */

/* struct twheel_match::flags: connections that have this do not match. */
#define TWHEEL_MATCH_NOT		(1U << 0)

/**
 * struct twheel_match - one of a list of things that a rule asks for
 * @kind: TWHEEL_MATCH_*
 * @flags: 0 or TWHEEL_MATCH_NOT
 * @first: the first port, from 1; or 0
 * @last: the last port, not before @first; or 0
 * @family: AF_INET or AF_INET6; or 0. An IPv4 connection of an IPv6 socket is AF_INET
 * @prefix: how many bits of @address count, up to 32 or 128; the others are 0
 * @reserved: 0
 * @address: in network order; of IPv4 the first 4 bytes
 *
 * What its kind does not use is 0. Of each kind that the list has without TWHEEL_MATCH_NOT a
 * connection must have at least one, and none of those with it.
 */
struct twheel_match {
	__u16 kind;
	__u16 flags;
	__u16 first;
	__u16 last;
	__u16 family;
	__u8 prefix;
	__u8 reserved[5];
	__u8 address[16];
};

/**
 * struct twheel_rule - a rule
 * @id: out: its number in its namespace, from 1, not given out twice. TWHEEL_IOC_RULE_NEXT: in:
 *	the rule after this one is asked for. TWHEEL_IOC_RULE_REMOVE: in: the rule
 * @flags: TWHEEL_RULE_*; TWHEEL_WATCH_RECEIVED, _SENT as in linux/twheel.h;
 *	TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT or TWHEEL_RULE_KEEP, one of them
 * @rate: connections per second to close at most; 0 for %TWHEEL_RULE_RATE. What comes due
 *	beyond that waits its turn, and is looked at again then
 * @local_port: a port of this machine
 * @remote_port: a port of the other one
 * @uid: owner of the socket, as the namespace of the caller shows it
 * @pid: a process, as the namespace of the caller shows it: connections that it begins, and
 *	those to ports that it listens on. With the process the rule finds no more new ones
 * @reserved: 0
 * @cgroup: id of a cgroup (v2: the inode number of its directory); those below it count
 * @idle: idle timeout in nanoseconds, from %TWHEEL_IDLE_MIN and two jiffies on; or 0
 * @lifetime: longest life of a connection in nanoseconds, from when it was first seen; or 0
 * @spread: the limits of each connection are later by a random time from 0 to so many
 *	nanoseconds
 * @watched: out: connections that the rule applies to now
 * @matched: out: connections that it has ever been applied to
 * @closed: out: connections that it has closed, or with TWHEEL_RULE_DRY_RUN would have
 * @spared: out: times that a connection was due, and had been active when it was its turn
 * @delayed: out: times that a connection had to wait for the rate
 * @missed: out: connections that could not be watched at once for want of memory; they are
 *	looked for again each second
 * @name: letters, digits, '-', '_' and '.', the first one a letter, and then 0. No other rule of
 *	the namespace has it. All 0: it has no name
 * @stalled: how long, in nanoseconds, the peer of a connection with data in its send queue may
 *	acknowledge nothing; 0 for %TWHEEL_RULE_STALLED. 1 spares nobody
 * @matches: address of an array of struct twheel_match, more of what the rule asks for; or 0.
 *	TWHEEL_IOC_RULE_NEXT: in: where to write them
 * @nr_matches: how many these are, up to %TWHEEL_RULE_MATCHES. TWHEEL_IOC_RULE_NEXT: in: how many
 *	there is room for at @matches, if that is not 0; out: how many the rule has
 * @before: TWHEEL_IOC_RULE_ADD: in: the @id of the rule that it is to come before; 0: it comes
 *	last
 * @place: out: the rule's place in the order, from 1
 * @reserved2: 0
 * @age: out: nanoseconds since it was added, of CLOCK_BOOTTIME
 * @overdue: out: connections that had been idle for longer already when it came to apply to them
 * @waited: out: times that a connection was due, and was spared as it waited for its peer
 * @late: out: connections that it has closed, by the time from when they were due: entry i counts
 *	those of less than 2^(20 + i) nanoseconds that the one before it does not, the last one all
 *	others. Not those that were due before it was added, changed, or a rule before it was
 *	removed
 */
struct twheel_rule {
	__u32 id;
	__u32 flags;
	__u32 rate;
	__u16 local_port;
	__u16 remote_port;
	__u32 uid;
	__s32 pid;
	__aligned_u64 reserved;
	__aligned_u64 cgroup;
	__aligned_u64 idle;
	__aligned_u64 lifetime;
	__aligned_u64 spread;
	__aligned_u64 watched;
	__aligned_u64 matched;
	__aligned_u64 closed;
	__aligned_u64 spared;
	__aligned_u64 delayed;
	__aligned_u64 missed;
	char name[TWHEEL_RULE_NAME];
	__aligned_u64 stalled;
	__aligned_u64 matches;
	__u32 nr_matches;
	__u32 before;
	__u32 place;
	__u32 reserved2;
	__aligned_u64 age;
	__aligned_u64 overdue;
	__aligned_u64 waited;
	__aligned_u64 late[TWHEEL_RULE_LATE];
};

/* TWHEEL_RULE_DRY_RUN has counted it, and there was no activity since. */
#define TWHEEL_CONNECTION_COUNTED	(1U << 0)

/**
 * struct twheel_connection - a connection that a rule watches
 * @idle: nanoseconds since the last activity, exact to a jiffy
 * @remaining: nanoseconds until it is closed if nothing happens
 * @cookie: the socket's, as SO_COOKIE and ss -e show it
 * @family: AF_INET or AF_INET6
 * @local_port: a port of this machine
 * @remote_port: a port of the other one
 * @flags: TWHEEL_CONNECTION_*
 * @uid: owner of the socket, as the namespace of the caller shows it
 * @reserved2: 0
 * @local_address: in network order; of IPv4 the first 4 bytes
 * @remote_address: likewise
 * @unsent: bytes that the program has written, and that have not been sent yet
 * @unacked: bytes that have been sent, and that the peer has not acknowledged
 */
struct twheel_connection {
	__aligned_u64 idle;
	__aligned_u64 remaining;
	__aligned_u64 cookie;
	__u16 family;
	__u16 local_port;
	__u16 remote_port;
	__u16 flags;
	__u32 uid;
	__u32 reserved2;
	__u8 local_address[16];
	__u8 remote_address[16];
	__u32 unsent;
	__u32 unacked;
};

/**
 * struct twheel_connections - the argument of TWHEEL_IOC_RULE_CONNECTIONS
 * @records: in: address of an array of struct twheel_connection
 * @nr_records: in: how many fit, 1 to 2^31 - 1
 * @record_size: in: bytes from one to the next, at least 72 and a multiple of 8
 * @flags: in: 0
 * @cursor: in: 0 at first; out: where to go on
 * @id: in: the rule
 * @reserved: in: 0
 */
struct twheel_connections {
	__aligned_u64 records;
	__u32 nr_records;
	__u16 record_size;
	__u16 flags;
	__aligned_u64 cursor;
	__u32 id;
	__u32 reserved;
};

/*
 * Adds a rule, and watches the connections that it applies to. Returns 0; what is "out" in the
 * structure is filled in. Errors: EPERM, EINVAL, EOPNOTSUPP, ESRCH (no such process), ENOENT (no
 * such cgroup, or no rule @before), EEXIST (another rule has the name), ENOSPC (256 rules),
 * ENOMEM.
 */
#define TWHEEL_IOC_RULE_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xb0, struct twheel_rule)

/* Removes a rule; only its @id counts. Returns 0. Errors: EPERM, EINVAL, ENOENT. */
#define TWHEEL_IOC_RULE_REMOVE	_IOW(TWHEEL_IOC_MAGIC, 0xb1, struct twheel_rule)

/*
 * Tells of the rule with the next larger @id. Returns 0. Errors: EPERM, ENOENT: none, ENOSPC: there
 * is no room for its @matches; @id and @nr_matches are told nevertheless.
 */
#define TWHEEL_IOC_RULE_NEXT	_IOWR(TWHEEL_IOC_MAGIC, 0xb2, struct twheel_rule)

/*
 * Tells of a rule's connections. Returns how many, 0 at the end. Connections that come and
 * go meanwhile may be told of or not. Errors: EPERM, EINVAL, ENOENT.
 */
#define TWHEEL_IOC_RULE_CONNECTIONS \
	_IOWR(TWHEEL_IOC_MAGIC, 0xb3, struct twheel_connections)

/*
 * Changes the rule @id: it gets the @rate, @idle, @lifetime, @spread, @stalled and @name of the
 * structure, and of its @flags the action, what is activity, TWHEEL_RULE_DRY_RUN and
 * TWHEEL_RULE_KEEP. All else must be 0, and stays as it is: what it asks for, its place, its
 * connections and what it has counted. Returns 0; what is "out" is filled in. Errors: EPERM,
 * EINVAL, EOPNOTSUPP, ENOENT, EEXIST, ENOMEM.
 */
#define TWHEEL_IOC_RULE_SET	_IOWR(TWHEEL_IOC_MAGIC, 0xb4, struct twheel_rule)

#endif /* _UAPI_LINUX_TWHEEL_RULES_H */
