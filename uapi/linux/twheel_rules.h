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
 * network namespace of the process that adds it, and applies to existing and new connections of
 * that namespace. It stays until it is removed or the namespace is destroyed; closing the
 * device does not end it, and the module cannot be unloaded meanwhile. Rules are ordered: a new
 * one goes to the end, or before another one. If several match a connection, the first one
 * applies. If none matches any more, the connection is left alone.
 *
 * A connection matches if it meets all conditions of the rule; a rule without conditions is
 * rejected. Connections are matched when they are established, when a rule is added before
 * others, and again before they are closed.
 *
 * A connection with data in its send queue is waiting for its peer, and is not idle. After its
 * idle timeout it is closed only once the peer has owed an acknowledgment for @stalled. If it was
 * spared because of that, its idle timeout restarts, once, at the last acknowledgment.
 *
 * All ioctls require CAP_NET_ADMIN in the user namespace that owns the network namespace, and
 * fail with EPERM without it. Structures and errnos follow the rules in linux/twheel.h.
 */

/* The conditions of a rule; actions, and what counts as activity, are flags of linux/twheel.h. */
#define TWHEEL_RULE_LOCAL_PORT	(1U << 16)	/* @local_port */
#define TWHEEL_RULE_REMOTE_PORT	(1U << 17)	/* @remote_port */
#define TWHEEL_RULE_UID		(1U << 18)	/* @uid */
#define TWHEEL_RULE_CGROUP	(1U << 19)	/* @cgroup */
#define TWHEEL_RULE_PID		(1U << 20)	/* @pid */
/* Count and trace what would be closed; close nothing. */
#define TWHEEL_RULE_DRY_RUN	(1U << 21)
/* An exception: in place of an action, leave the connections alone. */
#define TWHEEL_RULE_KEEP	(1U << 22)

/* The default of @rate. */
#define TWHEEL_RULE_RATE	1000

/* The default of @stalled, in nanoseconds. */
#define TWHEEL_RULE_STALLED	60000000000ULL

/* Size of a rule's name, including the terminating 0. */
#define TWHEEL_RULE_NAME	32

/* Maximum number of struct twheel_match in a rule. */
#define TWHEEL_RULE_MATCHES	64

/* Number of entries in struct twheel_rule::late. */
#define TWHEEL_RULE_LATE	20

/* Values of struct twheel_match::kind. */
#define TWHEEL_MATCH_LOCAL_PORT		1	/* local port, @first to @last */
#define TWHEEL_MATCH_REMOTE_PORT	2	/* remote port, @first to @last */
#define TWHEEL_MATCH_REMOTE		3	/* remote address: @address/@prefix */
#define TWHEEL_MATCH_FAMILY		4	/* @family */

/* struct twheel_match::flags: connections for which this is true do not match. */
#define TWHEEL_MATCH_NOT		(1U << 0)

/**
 * struct twheel_match - one of a list of conditions of a rule
 * @kind: TWHEEL_MATCH_*
 * @flags: 0 or TWHEEL_MATCH_NOT
 * @first: the first port, from 1; or 0
 * @last: the last port, not before @first; or 0
 * @family: AF_INET or AF_INET6; or 0. An IPv4 connection of an IPv6 socket is AF_INET
 * @prefix: how many bits of @address are compared, up to 32 or 128; the others are 0
 * @reserved: 0
 * @address: in network byte order; for IPv4, the first 4 bytes
 *
 * Fields that a kind does not use are 0. For each kind that is in the list without
 * TWHEEL_MATCH_NOT, at least one of these entries must apply to the connection; and no entry with
 * TWHEEL_MATCH_NOT may.
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
 * @id: out: its number in its namespace, from 1, never reused. TWHEEL_IOC_RULE_NEXT: in: get the
 *	rule after this one. TWHEEL_IOC_RULE_REMOVE: in: the rule
 * @flags: TWHEEL_RULE_*; TWHEEL_WATCH_RECEIVED, _SENT as in linux/twheel.h; and one of
 *	TWHEEL_WATCH_SHUTDOWN, TWHEEL_WATCH_ABORT and TWHEEL_RULE_KEEP
 * @rate: maximum number of connections to close per second; 0 for %TWHEEL_RULE_RATE.
 *	Connections that come due beyond that wait for their turn, and are checked again then
 * @local_port: a port of this machine
 * @remote_port: a port of the peer
 * @uid: owner of the socket, as seen in the namespace of the caller
 * @pid: a process, as seen in the namespace of the caller: the connections that it opens, and
 *	those to ports that it listens on. Once the process has ended, the rule finds no new ones
 * @reserved: 0
 * @cgroup: id of a cgroup (v2: the inode number of its directory); its descendants are included
 * @idle: idle timeout in nanoseconds, at least %TWHEEL_IDLE_MIN and two jiffies; or 0
 * @lifetime: maximum lifetime of a connection in nanoseconds, from when it was first seen; or 0
 * @spread: the limits of each connection are extended by a random time from 0 to so many
 *	nanoseconds
 * @watched: out: connections to which the rule applies now
 * @matched: out: connections to which it has ever been applied
 * @closed: out: connections that it has closed
 * @spared: out: times that a connection was due, and had been active when its turn came
 * @delayed: out: times that a connection had to wait because of the rate
 * @missed: out: connections that could not be watched at once for lack of memory; they are
 *	searched for again every second
 * @name: letters, digits, '-', '_' and '.', starting with a letter, padded with 0; unique in the
 *	namespace. All 0: it has no name
 * @stalled: how long, in nanoseconds, the peer of a connection with data in its send queue may
 *	owe an acknowledgment; 0 for %TWHEEL_RULE_STALLED. 1 spares no connection. With data in
 *	flight this counts from the last acknowledgment, and with a closed window from the first
 *	probe that it has not answered. The time between two probes doubles, up to two minutes
 * @matches: address of an array of struct twheel_match, further conditions of the rule; or 0.
 *	TWHEEL_IOC_RULE_NEXT: in: where to write them
 * @nr_matches: their number, up to %TWHEEL_RULE_MATCHES. TWHEEL_IOC_RULE_NEXT: in: the capacity
 *	of @matches, if that is not 0; out: how many the rule has
 * @before: TWHEEL_IOC_RULE_ADD: in: the @id of the rule before which to insert it; 0: append it
 * @place: out: the rule's position in the order, from 1
 * @reserved2: 0
 * @age: out: nanoseconds since it was added, on CLOCK_BOOTTIME
 * @overdue: out: connections that were due already when it first applied to them
 * @waited: out: times that a connection was due, and was spared because it waited for its peer
 * @late: out: a histogram of the time between when connections were due and when the rule closed
 *	them: entry i counts those of less than 2^(20 + i) nanoseconds that no entry before it
 *	counts, the last one all others. Connections that were due before the rule was added or
 *	changed, or a rule before it was removed, are not counted
 * @would_close: out: connections that it would have closed without TWHEEL_RULE_DRY_RUN. They are
 *	not in @closed
 * @untimed: out: connections of @closed and @would_close that are not in @late
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
	__aligned_u64 would_close;
	__aligned_u64 untimed;
};

/* A dry run has counted it, and there has been no activity since. */
#define TWHEEL_CONNECTION_COUNTED	(1U << 0)

/**
 * struct twheel_connection - a connection that a rule watches
 * @idle: nanoseconds since the last activity, exact to a jiffy
 * @remaining: nanoseconds until it is closed if nothing happens
 * @cookie: the socket's, as SO_COOKIE and ss -e show it
 * @family: AF_INET or AF_INET6
 * @local_port: a port of this machine
 * @remote_port: a port of the peer
 * @flags: TWHEEL_CONNECTION_*
 * @uid: owner of the socket, as seen in the namespace of the caller
 * @reserved2: 0
 * @local_address: in network byte order; for IPv4, the first 4 bytes
 * @remote_address: likewise
 * @unsent: bytes that the program has written and that have not been sent yet
 * @unacked: bytes that have been sent and that the peer has not acknowledged
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
 * @nr_records: in: capacity of the array, 1 to 2^31 - 1
 * @record_size: in: bytes from one to the next, at least 72 and a multiple of 8
 * @flags: in: 0
 * @cursor: in: 0 at first; out: where to continue
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
 * Adds a rule, and watches the connections to which it applies. Returns 0, and fills in the "out"
 * fields of the structure. Errors: EPERM, EINVAL, EOPNOTSUPP, ESRCH (no such process), ENOENT (no
 * such cgroup, or no rule @before), EEXIST (another rule has the name), ENOSPC (the
 * namespace would have more than 256 rules, or 1024 @matches in all of them), ENOMEM.
 */
#define TWHEEL_IOC_RULE_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xb0, struct twheel_rule)

/* Removes a rule; only @id is used. Returns 0. Errors: EPERM, EINVAL, ENOENT. */
#define TWHEEL_IOC_RULE_REMOVE	_IOW(TWHEEL_IOC_MAGIC, 0xb1, struct twheel_rule)

/*
 * Gets the rule with the next larger @id. Returns 0. Errors: EPERM, ENOENT (there is none), ENOSPC
 * (its @matches do not fit; @id and @nr_matches are filled in nevertheless).
 */
#define TWHEEL_IOC_RULE_NEXT	_IOWR(TWHEEL_IOC_MAGIC, 0xb2, struct twheel_rule)

/*
 * Lists a rule's connections. Returns how many, 0 at the end. Connections that begin or end
 * meanwhile may or may not be listed. Errors: EPERM, EINVAL, ENOENT.
 */
#define TWHEEL_IOC_RULE_CONNECTIONS \
	_IOWR(TWHEEL_IOC_MAGIC, 0xb3, struct twheel_connections)

/*
 * Changes the rule @id: it gets the structure's @rate, @idle, @lifetime, @spread, @stalled and
 * @name, and from @flags the action, what counts as activity, TWHEEL_RULE_DRY_RUN and
 * TWHEEL_RULE_KEEP. All other fields must be 0. The rule keeps everything else: its conditions,
 * position, connections and counters. Returns 0, and fills in the "out" fields. Errors: EPERM,
 * EINVAL, EOPNOTSUPP, ENOENT, EEXIST, ENOMEM.
 */
#define TWHEEL_IOC_RULE_SET	_IOWR(TWHEEL_IOC_MAGIC, 0xb4, struct twheel_rule)

#endif /* _UAPI_LINUX_TWHEEL_RULES_H */
