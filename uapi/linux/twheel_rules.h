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
 * that are there, and those that come. It stays until it is removed, its namespace goes or the
 * module is unloaded; closing the device does not end it. Of several rules that match
 * a connection the one that was added first applies. If no rule is left that matches,
 * the connection is left alone.
 *
 * A connection matches if it has everything that the rule asks for; a rule that asks for
 * nothing is refused. It is looked at when it is established, and again before it is
 * closed.
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

/* Connections per second that a rule closes if it does not say how many. */
#define TWHEEL_RULE_RATE	1000

/**
 * struct twheel_rule - a rule
 * @id: out: its number in its namespace, from 1, not given out twice. TWHEEL_IOC_RULE_NEXT: in:
 *	the rule after this one is asked for. TWHEEL_IOC_RULE_REMOVE: in: the rule
 * @flags: TWHEEL_RULE_*; TWHEEL_WATCH_RECEIVED, _SENT as in linux/twheel.h;
 *	TWHEEL_WATCH_SHUTDOWN or TWHEEL_WATCH_ABORT, one of them
 * @rate: connections per second to close at most; 0 for %TWHEEL_RULE_RATE. What comes due
 *	beyond that waits its turn, and is looked at again then
 * @local_port: a port of this machine
 * @remote_port: a port of the other one
 * @uid: owner of the socket, as the namespace of the caller shows it
 * @pid: a process, as the namespace of the caller shows it: connections that it begins, and
 *	those to ports that it listens on. With the process the rule finds no more new ones
 * @reserved: 0
 * @cgroup: id of a cgroup (v2: the inode number of its directory); those below it count
 * @idle: idle timeout in nanoseconds, from %TWHEEL_IDLE_MIN on; or 0
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
};

/**
 * struct twheel_connection - a connection that a rule watches
 * @idle: nanoseconds since the last activity, exact to a jiffy
 * @remaining: nanoseconds until it is closed if nothing happens
 * @cookie: the socket's, as SO_COOKIE and ss -e show it
 * @family: AF_INET or AF_INET6
 * @local_port: a port of this machine
 * @remote_port: a port of the other one
 * @reserved: 0
 * @uid: owner of the socket, as the namespace of the caller shows it
 * @reserved2: 0
 * @local_address: in network order; of IPv4 the first 4 bytes
 * @remote_address: likewise
 */
struct twheel_connection {
	__aligned_u64 idle;
	__aligned_u64 remaining;
	__aligned_u64 cookie;
	__u16 family;
	__u16 local_port;
	__u16 remote_port;
	__u16 reserved;
	__u32 uid;
	__u32 reserved2;
	__u8 local_address[16];
	__u8 remote_address[16];
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
 * Adds a rule. Returns 0. Errors: EPERM, EINVAL, EOPNOTSUPP, ESRCH (no such process),
 * ENOENT (no such cgroup), ENOSPC (256 rules), ENOMEM.
 */
#define TWHEEL_IOC_RULE_ADD	_IOWR(TWHEEL_IOC_MAGIC, 0xb0, struct twheel_rule)

/* Removes a rule; only its @id counts. Returns 0. Errors: EPERM, EINVAL, ENOENT. */
#define TWHEEL_IOC_RULE_REMOVE	_IOW(TWHEEL_IOC_MAGIC, 0xb1, struct twheel_rule)

/* Tells of the rule with the next larger @id. Returns 0. Errors: EPERM, ENOENT: none. */
#define TWHEEL_IOC_RULE_NEXT	_IOWR(TWHEEL_IOC_MAGIC, 0xb2, struct twheel_rule)

/*
 * Tells of a rule's connections. Returns how many, 0 at the end. Connections that come and
 * go meanwhile may be told of or not. Errors: EPERM, EINVAL, ENOENT.
 */
#define TWHEEL_IOC_RULE_CONNECTIONS \
	_IOWR(TWHEEL_IOC_MAGIC, 0xb3, struct twheel_connections)

#endif /* _UAPI_LINUX_TWHEEL_RULES_H */
