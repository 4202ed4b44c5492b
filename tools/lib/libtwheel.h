/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: /dev/twheel for programs
 *
 * A context is a file descriptor from twheel_open(). Times are in nanoseconds. Every call
 * that can fail returns a negative errno, one of those in <linux/twheel.h> unless documented
 * otherwise, and leaves errno alone. No call prints anything. All may be called from any
 * thread, concurrently and for the same context, unless documented otherwise.
 *
 * Start with twheel_open(), twheel_add() and twheel_read(). Each call has a man page in
 * section 3; twheel(7) is the overview.
 *
 * The structures of <linux/twheel.h> grow. A call that takes one without its size is inline,
 * and passes the size that the program was compiled with to a call that takes it; so programs
 * and libraries of different versions work together. Programs in other languages use the calls
 * whose names end in _sized.
 */
#ifndef LIBTWHEEL_H
#define LIBTWHEEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIBTWHEEL_VERSION_MAJOR	0
#define LIBTWHEEL_VERSION_MINOR	1
#define LIBTWHEEL_VERSION_PATCH	0

/* The version of this header, to compare with twheel_version(). */
#define LIBTWHEEL_VERSION	((LIBTWHEEL_VERSION_MAJOR << 16) | \
				 (LIBTWHEEL_VERSION_MINOR << 8) | LIBTWHEEL_VERSION_PATCH)

/**
 * twheel_version - get the version of the library that the program runs with
 *
 * Return: a number in the form of LIBTWHEEL_VERSION. A program that was compiled with a version
 * runs with it and with later ones of the same major number.
 */
unsigned int twheel_version(void);

/**
 * twheel_open - open a context
 * @flags:	0, or O_NONBLOCK for a twheel_read() that does not wait. The file is
 *		always closed on exec
 *
 * Return: a file descriptor for the other calls, for poll(), and finally for close(), which
 * cancels all timers; or a negative errno of open().
 */
int twheel_open(int flags);

/**
 * twheel_info_sized - twheel_info() for a structure of any version
 * @fd:		the context
 * @info:	filled in; fields that this kernel does not know are 0
 * @size:	the size of the program's struct twheel_info, in bytes
 *
 * Return: 0, or a negative errno: -EINVAL if @size is too small or too large.
 */
int twheel_info_sized(int fd, struct twheel_info *info, size_t size);

/**
 * twheel_info - get information about the module and a context
 * @fd:		the context
 * @info:	filled in
 *
 * Return: 0, or a negative errno.
 */
static __inline__ int twheel_info(int fd, struct twheel_info *info)
{
	return twheel_info_sized(fd, info, sizeof(*info));
}

/**
 * twheel_stats_sized - twheel_stats() for a structure of any version
 * @fd:		the context
 * @stats:	filled in; fields that this kernel does not know are 0
 * @size:	the size of the program's struct twheel_context_stats, in bytes
 *
 * Return: 0, or a negative errno: -EINVAL if @size is too small or too large.
 */
int twheel_stats_sized(int fd, struct twheel_context_stats *stats, size_t size);

/**
 * twheel_stats - read the counters of a context
 * @fd:		the context
 * @stats:	filled in
 *
 * Return: 0, or a negative errno.
 */
static __inline__ int twheel_stats(int fd, struct twheel_context_stats *stats)
{
	return twheel_stats_sized(fd, stats, sizeof(*stats));
}

/**
 * twheel_setup_sized - twheel_setup() for a structure of any version
 * @fd:		the context
 * @setup:	as for twheel_setup()
 * @size:	the size of the program's struct twheel_setup, in bytes
 *
 * Return: as twheel_setup(); -EINVAL if @size is too small or too large, -E2BIG if @setup requests
 * something that this kernel does not know.
 */
int twheel_setup_sized(int fd, struct twheel_setup *setup, size_t size);

/**
 * twheel_setup - limit a context, and create its ring and its touch array
 * @fd:		the context
 * @setup:	what to create; the lengths of the mappings are filled in
 *
 * Return: 0, or a negative errno: -EINVAL, -EOPNOTSUPP, -EBUSY, -ENOMEM.
 */
static __inline__ int twheel_setup(int fd, struct twheel_setup *setup)
{
	return twheel_setup_sized(fd, setup, sizeof(*setup));
}

/**
 * twheel_add - add a timer and arm it
 * @fd:		the context
 * @ns:		when to expire, in nanoseconds of CLOCK_MONOTONIC, up to
 *		TWHEEL_TIME_MAX
 * @flags:	TWHEEL_TIME_ABS if @ns is absolute; 0 if it is relative to now. Not TWHEEL_KEYED,
 *		see twheel_add_key()
 * @user_data:	returned in the event
 * @handle:	set to the handle of the timer
 *
 * Return: 0, or a negative errno: -EINVAL, -EOPNOTSUPP, -ENOSPC, -ENOMEM.
 */
int twheel_add(int fd, uint64_t ns, unsigned int flags, uint64_t user_data,
	       uint64_t *handle);

/**
 * twheel_rearm - re-arm a timer
 * @fd:		the context
 * @handle:	the timer; the handle stays valid
 * @ns:		when to expire, as for twheel_add()
 * @flags:	as for twheel_add()
 *
 * Return: the state in which the timer was found, one of enum twheel_verdict: the old deadline
 * no longer applies. Or a negative errno: -ENOENT, -EALREADY, -EINVAL, -EOPNOTSUPP; -ENOTCONN if
 * the timer watched a connection and has expired.
 */
int twheel_rearm(int fd, uint64_t handle, uint64_t ns, unsigned int flags);

/**
 * twheel_active - report activity: restart a timer's idle timeout
 * @fd:		the context
 * @handle:	the timer; it was added with an idle timeout
 *
 * Return: the state in which the timer was found, one of enum twheel_verdict; or a negative
 * errno: -ENOENT, -EALREADY, -EINVAL; -ENOTCONN if the timer watched a connection and has expired.
 */
int twheel_active(int fd, uint64_t handle);

/**
 * twheel_cancel - cancel a timer
 * @fd:		the context
 * @handle:	the timer
 *
 * Return: the state in which the timer was found, one of enum twheel_verdict: no event of the
 * timer will be read. Or a negative errno: -EALREADY if its event has been delivered, -ENOENT if
 * it was cancelled before, or if its event was delivered long ago.
 */
int twheel_cancel(int fd, uint64_t handle);

/**
 * twheel_query_sized - twheel_query() and twheel_query_key() for a structure of any version
 * @fd:		the context
 * @name:	the timer's handle, or its key
 * @flags:	0, or TWHEEL_BY_KEY if @name is a key
 * @query:	filled in; fields that this kernel does not know are 0
 * @size:	the size of the program's struct twheel_timer_query, in bytes
 *
 * Return: as twheel_query(); -EINVAL if @size is too small or too large.
 */
int twheel_query_sized(int fd, uint64_t name, unsigned int flags,
		       struct twheel_timer_query *query, size_t size);

/**
 * twheel_query - query a timer
 * @fd:		the context
 * @handle:	the timer
 * @query:	filled in
 *
 * Return: 0, or a negative errno: -ENOENT, -EALREADY.
 */
static __inline__ int twheel_query(int fd, uint64_t handle, struct twheel_timer_query *query)
{
	return twheel_query_sized(fd, handle, 0, query, sizeof(*query));
}

/**
 * twheel_add_key - add a timer with a key, or re-arm the one that has this key
 * @fd:		the context
 * @key:	any number; it names the timer in this context from now on
 * @ns:		when to expire, as for twheel_add()
 * @flags:	as for twheel_add()
 * @user_data:	returned in the event
 *
 * Return: the state in which the timer was found, one of enum twheel_verdict,
 * TWHEEL_WAS_ABSENT if it is new; or a negative errno: -EINVAL, -EOPNOTSUPP, -ENOSPC, -ENOMEM.
 */
int twheel_add_key(int fd, uint64_t key, uint64_t ns, unsigned int flags,
		   uint64_t user_data);

/**
 * twheel_rearm_key - re-arm a timer by its key
 * @fd:		the context
 * @key:	the timer's key
 * @ns:		as for twheel_rearm()
 * @flags:	as for twheel_rearm()
 *
 * Return: as twheel_rearm().
 */
int twheel_rearm_key(int fd, uint64_t key, uint64_t ns, unsigned int flags);

/**
 * twheel_active_key - report activity, by the timer's key
 * @fd:		the context
 * @key:	the timer's key
 *
 * Return: as twheel_active().
 */
int twheel_active_key(int fd, uint64_t key);

/**
 * twheel_cancel_key - cancel a timer by its key
 * @fd:		the context
 * @key:	the timer's key
 *
 * Return: as twheel_cancel().
 */
int twheel_cancel_key(int fd, uint64_t key);

/**
 * twheel_query_key - query a timer by its key
 * @fd:		the context
 * @key:	the timer's key
 * @query:	filled in
 *
 * Return: as twheel_query().
 */
static __inline__ int twheel_query_key(int fd, uint64_t key, struct twheel_timer_query *query)
{
	return twheel_query_sized(fd, key, TWHEEL_BY_KEY, query, sizeof(*query));
}

/**
 * twheel_timer_add_sized - twheel_timer_add() for a structure of any version
 * @fd:		the context
 * @add:	as for twheel_timer_add()
 * @size:	the size of the program's struct twheel_timer_add, in bytes
 *
 * Return: as twheel_timer_add(); -EINVAL if @size is too small or too large, -E2BIG if @add
 * requests something that this kernel does not know.
 */
int twheel_timer_add_sized(int fd, struct twheel_timer_add *add, size_t size);

/**
 * twheel_timer_add - add a timer with any of its features
 * @fd:		the context
 * @add:	the timer; its handle is filled in. Features whose field is 0 are not used
 *
 * Return: 0, or with TWHEEL_KEYED, a verdict; or a negative errno: -EINVAL, -EOPNOTSUPP,
 * -ENOSPC, -ENOMEM; with TWHEEL_WATCHED -EBADF, -ENOTCONN, -EBUSY.
 */
static __inline__ int twheel_timer_add(int fd, struct twheel_timer_add *add)
{
	return twheel_timer_add_sized(fd, add, sizeof(*add));
}

/**
 * twheel_timer_rearm_sized - twheel_timer_rearm() for a structure of any version
 * @fd:		the context
 * @rearm:	as for twheel_timer_rearm()
 * @size:	the size of the program's struct twheel_timer_rearm, in bytes
 *
 * Return: as twheel_timer_rearm(); -EINVAL if @size is too small or too large, -E2BIG if @rearm
 * requests something that this kernel does not know.
 */
int twheel_timer_rearm_sized(int fd, const struct twheel_timer_rearm *rearm, size_t size);

/**
 * twheel_timer_rearm - re-arm any limit of a timer
 * @fd:		the context
 * @rearm:	the timer, by handle or key, and the limit to re-arm
 *
 * Return: as twheel_rearm(); or -ENOTCONN if the timer watched a connection and has expired.
 */
static __inline__ int twheel_timer_rearm(int fd, const struct twheel_timer_rearm *rearm)
{
	return twheel_timer_rearm_sized(fd, rearm, sizeof(*rearm));
}

/**
 * twheel_watch - add a timer that watches a TCP connection
 * @fd:		the context
 * @sock:	the connection's file descriptor, which need not stay open
 * @idle:	the idle timeout in nanoseconds, at least TWHEEL_IDLE_MIN
 * @flags:	what counts as activity: TWHEEL_WATCH_RECEIVED or TWHEEL_WATCH_SENT; with neither,
 *		both do. And what is done to an idle connection: TWHEEL_WATCH_SHUTDOWN or
 *		TWHEEL_WATCH_ABORT; with neither, nothing
 * @user_data:	returned in the event
 * @handle:	set to the handle of the timer
 *
 * If the connection ends first, the timer ends with it, without an event.
 *
 * Return: 0, or a negative errno: -EBADF, -ENOTCONN, -EBUSY, -EINVAL, -EOPNOTSUPP, -ENOSPC,
 * -ENOMEM.
 */
int twheel_watch(int fd, int sock, uint64_t idle, unsigned int flags, uint64_t user_data,
		 uint64_t *handle);

/**
 * twheel_drain_sized - twheel_drain() for a structure of any version
 * @fd:		the context
 * @timers:	as for twheel_drain(); fields that this kernel does not know are 0
 * @max:	as for twheel_drain()
 * @cursor:	as for twheel_drain()
 * @size:	the size of the program's struct twheel_timer_query, in bytes
 *
 * Return: as twheel_drain(); -EINVAL if @size is too small or too large.
 */
int twheel_drain_sized(int fd, struct twheel_timer_query *timers, unsigned int max,
		       uint64_t *cursor, size_t size);

/**
 * twheel_drain - cancel all timers, and return them
 * @fd:		the context
 * @timers:	array to return them in; or NULL
 * @max:	how many fit; without @timers, the maximum number to cancel
 * @cursor:	0 at first, and then as the previous call left it
 *
 * Return: how many were cancelled, 0 at the end; or a negative errno.
 */
static __inline__ int twheel_drain(int fd, struct twheel_timer_query *timers, unsigned int max,
				   uint64_t *cursor)
{
	return twheel_drain_sized(fd, timers, max, cursor, sizeof(*timers));
}

/**
 * twheel_read_sized - twheel_read() for a structure of any version
 * @fd:		the context
 * @events:	as for twheel_read(); fields that this library does not know are 0
 * @max:	as for twheel_read()
 * @size:	the size of the program's struct twheel_event, in bytes
 *
 * Return: as twheel_read(); -EINVAL if @size is too small or too large.
 */
int twheel_read_sized(int fd, struct twheel_event *events, unsigned int max, size_t size);

/**
 * twheel_read - read events
 * @fd:		the context; it has no ring
 * @events:	array to read them into
 * @max:	how many fit, at least 1
 *
 * Waits for the first one, unless the context is non-blocking.
 *
 * Return: the number of events read; or a negative errno: -EAGAIN, -EINTR, -EINVAL, -EBUSY.
 */
static __inline__ int twheel_read(int fd, struct twheel_event *events, unsigned int max)
{
	return twheel_read_sized(fd, events, max, sizeof(*events));
}

/**
 * twheel_wait - wait until there are events, without reading any
 * @fd:		the context
 * @timeout_ms:	timeout in milliseconds; -1 for none
 *
 * This is poll() for one context. It moves events that are waiting for room in the ring there.
 *
 * Return: 1 if there are, 0 if not; or a negative errno of poll(): -EINTR.
 */
int twheel_wait(int fd, int timeout_ms);

/**
 * struct twheel_batch - operations to submit together
 * @ops:	array of operations, which belongs to the program
 * @nr_ops:	how many there are; the program reads this
 * @room:	how many fit
 *
 * One thread at a time may use a batch. Only inline functions use this structure.
 */
struct twheel_batch {
	struct twheel_op *ops;
	unsigned int nr_ops;
	unsigned int room;
};

/**
 * twheel_batch_init - start an empty batch
 * @batch:	the batch
 * @ops:	memory for its operations, which still belongs to the program
 * @room:	how many fit there
 */
static __inline__ void twheel_batch_init(struct twheel_batch *batch, struct twheel_op *ops,
					 unsigned int room)
{
	batch->ops = ops;
	batch->nr_ops = 0;
	batch->room = room;
}

/**
 * twheel_batch_clear - remove all operations, with their results, from a batch
 * @batch:	the batch
 */
static __inline__ void twheel_batch_clear(struct twheel_batch *batch)
{
	batch->nr_ops = 0;
}

/**
 * twheel_batch_next - append an operation in which nothing is set
 * @batch:	the batch
 *
 * Return: the operation; or NULL if the batch is full.
 */
static __inline__ struct twheel_op *twheel_batch_next(struct twheel_batch *batch)
{
	struct twheel_op *op;

	if (batch->nr_ops >= batch->room)
		return NULL;
	op = &batch->ops[batch->nr_ops++];
	/* In two parts, for which compilers emit plain stores instead of a loop. */
	memset(op, 0, TWHEEL_OP_SIZE_MIN);
	memset((char *)op + TWHEEL_OP_SIZE_MIN, 0, sizeof(*op) - TWHEEL_OP_SIZE_MIN);
	return op;
}

/**
 * twheel_batch_add - append an operation that adds a timer
 * @batch:	the batch
 * @ns:		as for twheel_add()
 * @flags:	as in struct twheel_timer_add
 * @user_data:	returned in the event
 *
 * Return: the operation, in which more fields can be set, and which will contain the handle; or
 * NULL if the batch is full.
 */
static __inline__ struct twheel_op *twheel_batch_add(struct twheel_batch *batch, uint64_t ns,
						     unsigned int flags, uint64_t user_data)
{
	struct twheel_op *op = twheel_batch_next(batch);

	if (op) {
		op->opcode = TWHEEL_OP_ADD;
		op->clock = 1;	/* CLOCK_MONOTONIC, which ISO C does not define */
		op->time = ns;
		op->flags = flags;
		op->user_data = user_data;
	}
	return op;
}

/**
 * twheel_batch_rearm - append an operation that re-arms a timer
 * @batch:	the batch
 * @handle:	the timer, or its key with TWHEEL_BY_KEY
 * @ns:		as for twheel_rearm()
 * @flags:	as in struct twheel_timer_rearm
 *
 * Return: the operation, in which more fields can be set; or NULL if the batch is full.
 */
static __inline__ struct twheel_op *twheel_batch_rearm(struct twheel_batch *batch,
						       uint64_t handle, uint64_t ns,
						       unsigned int flags)
{
	struct twheel_op *op = twheel_batch_next(batch);

	if (op) {
		op->opcode = TWHEEL_OP_REARM;
		op->handle = handle;
		op->time = ns;
		op->flags = flags;
	}
	return op;
}

/**
 * twheel_batch_cancel - append an operation that cancels a timer
 * @batch:	the batch
 * @handle:	the timer, or its key with TWHEEL_BY_KEY
 * @flags:	0 or TWHEEL_BY_KEY
 *
 * Return: the operation; or NULL if the batch is full.
 */
static __inline__ struct twheel_op *twheel_batch_cancel(struct twheel_batch *batch,
							uint64_t handle, unsigned int flags)
{
	struct twheel_op *op = twheel_batch_next(batch);

	if (op) {
		op->opcode = TWHEEL_OP_CANCEL;
		op->handle = handle;
		op->flags = flags;
	}
	return op;
}

/**
 * twheel_submit_sized - carry out an array of operations of any version
 * @fd:		the context
 * @ops:	the operations
 * @nr_ops:	how many there are
 * @flags:	as for twheel_batch_submit()
 * @size:	bytes from one operation to the next: the size of the program's struct twheel_op, or
 *		TWHEEL_OP_SIZE_MIN
 *
 * Return: as twheel_batch_submit(); -EINVAL if @size is too small or too large.
 */
int twheel_submit_sized(int fd, struct twheel_op *ops, unsigned int nr_ops, unsigned int flags,
			size_t size);

/**
 * twheel_batch_submit - carry out the operations of a batch, in one system call
 * @fd:		the context
 * @batch:	the batch. Its operations stay, with their results, until it is cleared
 * @flags:	0, or TWHEEL_SUBMIT_STOP to stop at the first operation that fails
 *
 * Return: how many have a result; or a negative errno: -EINVAL, -EOPNOTSUPP, -EFAULT, -EINTR.
 */
static __inline__ int twheel_batch_submit(int fd, const struct twheel_batch *batch,
					  unsigned int flags)
{
	return twheel_submit_sized(fd, batch->ops, batch->nr_ops, flags, sizeof(*batch->ops));
}

/**
 * twheel_ring_map - map the ring of events
 * @fd:		the context, after twheel_setup() with ring_entries
 * @bytes:	the ring_bytes that it returned; munmap() takes the same number
 * @ring:	set to the ring
 *
 * Return: 0, or a negative errno of mmap(): -EINVAL if there is no ring of this length,
 * -ENOMEM.
 */
int twheel_ring_map(int fd, uint64_t bytes, struct twheel_ring **ring);

/**
 * twheel_ring_peek - get the events in the ring
 * @ring:	the ring
 * @events:	set to the oldest one
 *
 * One thread at a time may read a ring.
 *
 * Return: how many are contiguous from there. There may be more at the beginning of the ring,
 * which are visible after twheel_ring_advance().
 */
static __inline__ unsigned int twheel_ring_peek(const struct twheel_ring *ring,
						const struct twheel_event **events)
{
	/* Pairs with the kernel's release of @head when it has written the events. */
	unsigned int head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	unsigned int first = ring->tail & ring->mask;
	unsigned int ready = head - ring->tail;
	unsigned int straight = ring->mask + 1 - first;

	*events = ring->events + first;
	return ready < straight ? ready : straight;
}

/**
 * twheel_ring_advance - return events of the ring to the kernel
 * @ring:	the ring
 * @nr:		how many of those that twheel_ring_peek() has returned
 *
 * Only for the thread that reads the ring.
 */
static __inline__ void twheel_ring_advance(struct twheel_ring *ring, unsigned int nr)
{
	/* Pairs with the kernel's acquire of @tail before it writes there again. */
	__atomic_store_n(&ring->tail, ring->tail + nr, __ATOMIC_RELEASE);
}

/**
 * twheel_ring_waiting - are events waiting for room in the ring?
 * @ring:	the ring
 *
 * For a program that does not sleep: poll() and twheel_wait() move them there anyway.
 *
 * Return: 1 if there are any, otherwise 0.
 */
static __inline__ int twheel_ring_waiting(const struct twheel_ring *ring)
{
	/* If the value is stale, the next call gets the right one. */
	return !!(__atomic_load_n(&ring->flags, __ATOMIC_RELAXED) & TWHEEL_RING_WAITING);
}

/**
 * twheel_touch_map - map the touch array
 * @fd:		the context, after twheel_setup() with touch_words
 * @bytes:	the touch_bytes that it returned; munmap() takes the same number
 * @touch:	set to the touch array
 *
 * Return: as twheel_ring_map().
 */
int twheel_touch_map(int fd, uint64_t bytes, struct twheel_touch **touch);

/**
 * twheel_touch - report activity without a system call
 * @touch:	the touch array
 * @word:	the word that the timer was added with
 */
static __inline__ void twheel_touch(struct twheel_touch *touch, uint32_t word)
{
	/* Whatever a race stores, even torn on 32 bits, it affects this word's timers only. */
	*(volatile __u64 *)&touch->words[word] = *(const volatile __u64 *)&touch->now;
}

#ifdef __cplusplus
}
#endif

#endif /* LIBTWHEEL_H */
