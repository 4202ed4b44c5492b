/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * twheel_bench: a comparison of timer schemes, through /dev/twheel_bench
 */
#ifndef _UAPI_LINUX_TWHEEL_BENCH_H
#define _UAPI_LINUX_TWHEEL_BENCH_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General rules
 *
 * The device runs the same work on several timer schemes and measures how long
 * each takes. A run happens inside the ioctl, on the CPU that the caller is on; bind
 * the caller to a CPU to choose it. There is one run at a time in the whole system.
 * A fatal signal ends a run. Nothing of a run is left when the ioctl returns.
 * Until then, this CPU cannot be taken offline: whoever tries waits for the end.
 *
 * The hashed wheels, kafka and idle_ring go through all that is due, or a whole slot,
 * in one softirq, as their originals do in one step. With 16 million timers that took
 * 13 seconds, in which this CPU did nothing else, and the kernel may report it as
 * stalled. Nothing else that matters should run on the machine.
 *
 * Opening the device requires CAP_SYS_ADMIN: a run fills memory and keeps a CPU
 * busy for as long as requested.
 *
 * Every ioctl takes the address of one structure, whose size is part of the
 * ioctl number. Structures grow only at the end: a kernel that knows a longer
 * structure takes the missing tail as zero, and a kernel that knows a shorter one
 * accepts a longer one if the unknown tail is zero. If a call fails, nothing has
 * been written to the structure.
 *
 * Each errno has one meaning for the whole device:
 *
 *  - ENOTTY: no such ioctl
 *  - EFAULT: the structure is not accessible
 *  - E2BIG: the structure is longer than this kernel knows, and its tail is
 *    not zero
 *  - EINVAL: the structure is shorter than it ever was, a reserved field is
 *    not zero, or a number is out of range
 *  - EOPNOTSUPP: an order or a workload that this kernel or this scheme does
 *    not support
 *  - ENOENT: there is no scheme with this index
 *  - EBUSY: another run is in progress
 *  - ENOMEM: there is not enough memory for so many timers
 *  - EINTR: a fatal signal ended the run
 *  - ETIME: the machine is too slow for so many timers
 *  - EPERM: open() without CAP_SYS_ADMIN
 */

#define TWHEEL_BENCH_IOC_MAGIC	't'

/* Limits on what can be requested. */
#define TWHEEL_BENCH_MAX_TIMERS		16777216
#define TWHEEL_BENCH_MAX_CHECK_TIMERS	65536
#define TWHEEL_BENCH_MAX_TIMEOUT_NS	3600000000000ULL
#define TWHEEL_BENCH_MAX_OPS		268435456
#define TWHEEL_BENCH_MAX_DEADLINE_NS	31536000000000000ULL
#define TWHEEL_BENCH_NAME_SIZE		16
#define TWHEEL_BENCH_LATE_BUCKETS	40

/**
 * enum twheel_bench_workload - what is measured
 * @TWHEEL_BENCH_ADD: arm timers, with random timeouts of 60 to 120 s
 * @TWHEEL_BENCH_REARM_LATER: re-arm each pending timer to 30 s later
 * @TWHEEL_BENCH_REARM_EARLIER: re-arm each pending timer to half its remaining time
 * @TWHEEL_BENCH_CANCEL: cancel each pending timer
 * @TWHEEL_BENCH_EXPIRE: let timers expire that come due within half a millisecond.
 *	The time is that from the first callback to the last
 * @TWHEEL_BENCH_RMW: read, change and write a word of each object: what touching the
 *	memory alone costs. Only for the scheme "limit"
 * @TWHEEL_BENCH_NR_WORKLOADS: the number of workloads
 *
 * A run does those that its scheme supports, in this order, up to the last one
 * requested, so that the figures of one do not depend on which others were
 * requested. Those up to @TWHEEL_BENCH_CANCEL are done once before, so that the scheme
 * has its memory. @TWHEEL_BENCH_EXPIRE arms the timers again, and is left out unless it
 * is requested.
 */
enum twheel_bench_workload {
	TWHEEL_BENCH_ADD = 0,
	TWHEEL_BENCH_REARM_LATER = 1,
	TWHEEL_BENCH_REARM_EARLIER = 2,
	TWHEEL_BENCH_CANCEL = 3,
	TWHEEL_BENCH_EXPIRE = 4,
	TWHEEL_BENCH_RMW = 5,
	TWHEEL_BENCH_NR_WORKLOADS = 6,
};

/**
 * enum twheel_bench_order - the order in which a workload visits the objects
 * @TWHEEL_BENCH_SEQUENTIAL: in memory order
 * @TWHEEL_BENCH_RANDOM: at random, in a different order for each workload
 */
enum twheel_bench_order {
	TWHEEL_BENCH_SEQUENTIAL = 0,
	TWHEEL_BENCH_RANDOM = 1,
};

/**
 * enum twheel_bench_fault - what went wrong in a run
 * @TWHEEL_BENCH_OK: nothing
 * @TWHEEL_BENCH_WRONG_VERDICT: an operation found the wrong number of pending timers, or
 *	could not arm one as a scheme that needs memory for it (heap_lazy, keyed, idle_ring)
 *	had none
 * @TWHEEL_BENCH_WRONG_PENDING: the wrong number of timers is pending after a workload
 * @TWHEEL_BENCH_WRONG_FIRED: the wrong number of callbacks was called
 * @TWHEEL_BENCH_FIRED_EARLY: the first callback was called before the first deadline;
 *	expected and found are in nanoseconds
 * @TWHEEL_BENCH_TOO_SLOW: timers came due during a workload that should have found
 *	them pending: too many timers for this machine. Expected is the time available,
 *	found is the time it took, in nanoseconds
 * @TWHEEL_BENCH_FIRED_STRAY: a callback was called for a timer that was not armed, or
 *	that had fired already; found is how often
 * @TWHEEL_BENCH_NOT_FIRED: a timer had not fired when its object was to be armed again;
 *	expected is its deadline, found the time, in nanoseconds
 */
enum twheel_bench_fault {
	TWHEEL_BENCH_OK = 0,
	TWHEEL_BENCH_WRONG_VERDICT = 1,
	TWHEEL_BENCH_WRONG_PENDING = 2,
	TWHEEL_BENCH_WRONG_FIRED = 3,
	TWHEEL_BENCH_FIRED_EARLY = 4,
	TWHEEL_BENCH_TOO_SLOW = 5,
	TWHEEL_BENCH_FIRED_STRAY = 6,
	TWHEEL_BENCH_NOT_FIRED = 7,
};

/**
 * struct twheel_bench_info - the result of TWHEEL_BENCH_IOC_INFO
 * @tick_ns: length of the wheel's tick in nanoseconds
 * @jiffy_ns: length of the kernel's jiffy, the tick of timer_list
 * @clock_ps: what one reading of the clock costs, in picoseconds. It has been
 *	subtracted from all times that a run reports
 * @nr_schemes: number of schemes
 * @stride: bytes from one object to the next, the same for all schemes
 * @free_bytes: bytes free in the page allocator, per-CPU lists included: the
 *	difference shows what an action takes
 *
 * The kernel writes all fields, and ignores what they contain before the call.
 */
struct twheel_bench_info {
	__aligned_u64 tick_ns;
	__aligned_u64 jiffy_ns;
	__aligned_u64 clock_ps;
	__u32 nr_schemes;
	__u32 stride;
	__aligned_u64 free_bytes;
};

/**
 * struct twheel_bench_scheme - the argument of TWHEEL_BENCH_IOC_SCHEME
 * @index: in: 0 to the number of schemes - 1
 * @object_size: out: bytes that one timer takes in its owner's object; 0 if timers
 *	are kept outside the objects
 * @workloads: out: bit w is set if the scheme supports workload w
 * @checked: out: 1 if the scheme has timers, so that TWHEEL_BENCH_IOC_CHECK can
 *	be applied to it
 * @name: out: null-terminated
 */
struct twheel_bench_scheme {
	__u32 index;
	__u32 object_size;
	__u32 workloads;
	__u32 checked;
	char name[TWHEEL_BENCH_NAME_SIZE];
};

/**
 * struct twheel_bench_check - the argument of TWHEEL_BENCH_IOC_CHECK
 * @seed: in: two runs with the same seed and number of timers do the same
 * @scheme: in: index of the scheme
 * @nr_timers: in: 1 to %TWHEEL_BENCH_MAX_CHECK_TIMERS
 * @ops: out: operations done
 * @expected: out: number of expiries that there should have been
 * @fired: out: number of expiries that there were
 * @checksum: out: of (timer, deadline) of all expiries, in any order
 * @early: out: expiries before their deadline
 * @stray: out: expiries of timers that were not armed
 * @missing: out: expiries that did not happen
 * @left: out: timers that were still pending at the end
 * @wrong: out: operations that returned the wrong state of their timer
 * @late: out: expiries after one whose deadline is later by more than the scheme rounds
 * @least_late_ns: out: by how many nanoseconds the least late of all timers was later than the
 *	scheme rounds. It should be small on any machine that is not stalled all the time
 *
 * Does a sequence of adds, re-arms to later and earlier times, cancels and expiries with
 * short timeouts, and compares it with a simple model. The scheme is correct if @fired equals
 * @expected, if @early to @late are zero, and if every scheme has the same
 * @fired and @checksum for the same @seed and @nr_timers.
 */
struct twheel_bench_check {
	__aligned_u64 seed;
	__u32 scheme;
	__u32 nr_timers;
	__aligned_u64 ops;
	__aligned_u64 expected;
	__aligned_u64 fired;
	__aligned_u64 checksum;
	__aligned_u64 early;
	__aligned_u64 stray;
	__aligned_u64 missing;
	__aligned_u64 left;
	__aligned_u64 wrong;
	__aligned_u64 late;
	__aligned_u64 least_late_ns;
};

/**
 * struct twheel_bench_result - how long a workload took
 * @ops: operations; 0 if the workload was not requested
 * @time_ns: nanoseconds for all of them
 * @cpu_ns: %TWHEEL_BENCH_EXPIRE only: CPU time in nanoseconds, from shortly before
 *	the timers come due until the last callback. It includes what the scheme does
 *	before the first callback, and all other interrupts and threads in that time;
 *	it does not include pauses
 */
struct twheel_bench_result {
	__aligned_u64 ops;
	__aligned_u64 time_ns;
	__aligned_u64 cpu_ns;
};

/**
 * struct twheel_bench_run - the argument of TWHEEL_BENCH_IOC_RUN
 * @seed: in: seed of the timeouts and of the random order
 * @scheme: in: index of the scheme
 * @order: in: one of enum twheel_bench_order
 * @nr_timers: in: 1 to %TWHEEL_BENCH_MAX_TIMERS
 * @workloads: in: bit w requests workload w; at least one
 * @cpu: out: the CPU that it ran on
 * @fault: out: one of enum twheel_bench_fault. Unless it is %TWHEEL_BENCH_OK,
 *	there are no results
 * @fault_workload: out: the workload in which it occurred, one of enum twheel_bench_workload
 * @reserved: in: 0
 * @fault_expected: out: the expected value
 * @fault_found: out: the value found
 * @result: out: by workload
 */
struct twheel_bench_run {
	__aligned_u64 seed;
	__u32 scheme;
	__u32 order;
	__u32 nr_timers;
	__u32 workloads;
	__u32 cpu;
	__u32 fault;
	__u32 fault_workload;
	__u32 reserved;
	__aligned_u64 fault_expected;
	__aligned_u64 fault_found;
	struct twheel_bench_result result[TWHEEL_BENCH_NR_WORKLOADS];
};

/**
 * struct twheel_bench_lateness - the argument of TWHEEL_BENCH_IOC_LATENESS
 * @seed: in: seed of the timeouts and of the random order
 * @scheme: in: index of the scheme
 * @nr_timers: in: 1 to %TWHEEL_BENCH_MAX_CHECK_TIMERS
 * @min_ns: in: the shortest timeout, 1 or more nanoseconds
 * @max_ns: in: the longest, up to %TWHEEL_BENCH_MAX_TIMEOUT_NS
 * @fired: out: expiries; less than @nr_timers if some did not happen in time
 * @early: out: expiries before their deadline
 * @worst_ns: out: lateness of the latest one
 * @late: out: a histogram: entry b counts expiries that were less than 2^b nanoseconds
 *	late, and not less than half of that; the last entry has no bound. Those on
 *	time and the early ones are in entry 0
 *
 * Timers are armed one after the other, with timeouts spread evenly over the orders of
 * magnitude, and are left to come due; so this takes @max_ns and a little more.
 */
struct twheel_bench_lateness {
	__aligned_u64 seed;
	__u32 scheme;
	__u32 nr_timers;
	__aligned_u64 min_ns;
	__aligned_u64 max_ns;
	__aligned_u64 fired;
	__aligned_u64 early;
	__aligned_u64 worst_ns;
	__aligned_u64 late[TWHEEL_BENCH_LATE_BUCKETS];
};

/**
 * struct twheel_bench_memory - the argument of TWHEEL_BENCH_IOC_MEMORY
 * @seed: in: seed of the timeouts and of the random order
 * @scheme: in: index of the scheme
 * @nr_timers: in: 1 to %TWHEEL_BENCH_MAX_TIMERS
 * @added: out: bytes that the scheme had taken from the page allocator, besides the
 *	objects, when all timers were armed
 * @most: out: the maximum of @added and of the same value after all timers had been re-armed
 *	to later times, and then to earlier ones
 *
 * Memory that a scheme had before, as the wheel may have from an earlier run, is not included.
 */
struct twheel_bench_memory {
	__aligned_u64 seed;
	__u32 scheme;
	__u32 nr_timers;
	__aligned_u64 added;
	__aligned_u64 most;
};

/**
 * struct twheel_bench_cpu - the result of TWHEEL_BENCH_IOC_CPU
 * @interrupt_ns: CPU time of timer interrupts, in nanoseconds
 * @softirq_ns: CPU time of the hrtimer softirq, in nanoseconds
 * @worker_ns: CPU time of twheel's work items, in nanoseconds
 * @interrupts: number of these interrupts
 * @softirqs: number of these softirqs
 * @works: number of these work items
 *
 * The sum over all CPUs since the first call. When one of these interrupts another, its time
 * is not counted for the other. The kernel writes all fields, and ignores what they contain
 * before the call.
 */
struct twheel_bench_cpu {
	__aligned_u64 interrupt_ns;
	__aligned_u64 softirq_ns;
	__aligned_u64 worker_ns;
	__aligned_u64 interrupts;
	__aligned_u64 softirqs;
	__aligned_u64 works;
};

/**
 * enum twheel_bench_op_kind - what an operation of a trace does
 * @TWHEEL_BENCH_OP_ARM: arm a timer that is not armed
 * @TWHEEL_BENCH_OP_MOVE: give another deadline to an armed timer
 * @TWHEEL_BENCH_OP_CANCEL: disarm an armed timer
 * @TWHEEL_BENCH_NR_OP_KINDS: the number of kinds
 */
enum twheel_bench_op_kind {
	TWHEEL_BENCH_OP_ARM = 0,
	TWHEEL_BENCH_OP_MOVE = 1,
	TWHEEL_BENCH_OP_CANCEL = 2,
	TWHEEL_BENCH_NR_OP_KINDS = 3,
};

/**
 * struct twheel_bench_op - an operation of a trace
 * @time_ns: when it is done, in nanoseconds since the trace began
 * @deadline_ns: the timer's deadline, likewise; not before @time_ns, and at most
 *	%TWHEEL_BENCH_MAX_DEADLINE_NS. 0 for %TWHEEL_BENCH_OP_CANCEL
 * @object: number of the object whose timer it is, from 0
 * @kind: one of enum twheel_bench_op_kind
 */
struct twheel_bench_op {
	__aligned_u64 time_ns;
	__aligned_u64 deadline_ns;
	__u32 object;
	__u32 kind;
};

/**
 * struct twheel_bench_replay - the argument of TWHEEL_BENCH_IOC_REPLAY
 * @ops: in: address of an array of struct twheel_bench_op, sorted by time
 * @nr_ops: in: 1 to %TWHEEL_BENCH_MAX_OPS
 * @length_ns: in: when the trace ends, not before its last operation; up to
 *	%TWHEEL_BENCH_MAX_TIMEOUT_NS
 * @scheme: in: index of the scheme
 * @nr_objects: in: 1 to %TWHEEL_BENCH_MAX_TIMERS
 * @reserved: in: 0
 * @cpu: out: the CPU that it ran on
 * @fault: out: one of enum twheel_bench_fault. Unless it is %TWHEEL_BENCH_OK, the fields
 *	from @elapsed_ns on are 0
 * @fault_object: out: the object of which this is known
 * @fault_time_ns: out: when it was noticed, in nanoseconds since the trace began
 * @fault_expected: out: the expected value
 * @fault_found: out: the value found
 * @elapsed_ns: out: from the beginning of the trace until the last expiry, or its end
 * @fired: out: expiries whose deadline is not after @length_ns
 * @checksum: out: of (object, deadline) of these, in any order
 * @op: out: by kind, how many operations after time 0 there were, and how long they took.
 *	Interrupts and softirqs that came meanwhile are not included
 * @cpu_known: out: 1 if this kernel can tell the CPU time; else the figures of CPU time are 0
 * @interrupts: out: timer interrupts since the beginning, of this CPU
 * @softirqs: out: softirqs of timers, likewise
 * @most_armed: out: the largest number of timers that were armed at a time
 * @interrupt_ns: out: CPU time of the former, in nanoseconds
 * @softirq_ns: out: CPU time of the latter
 * @longest_interrupt_ns: out: the longest of these interrupts
 * @longest_softirq_ns: out: the longest of these softirqs
 * @late_p50_ns: out: half of the expiries were not later than this, or by a 32nd less
 * @late_p99_ns: out: the same of 99 %
 * @late_max_ns: out: lateness of the latest expiry
 * @most_bytes: out: the most that the scheme has taken from the page allocator, besides the
 *	objects, as seen ten times a second
 *
 * Does what a trace says, at the times that it says. Operations of time 0 are done before the
 * trace begins, and are not measured. The others are done in slices of a millisecond: what has
 * come due meanwhile, each kind in one batch. Operations on a timer should keep a distance to
 * its deadline, and an object that has expired should not be armed again soon, since some
 * schemes are late by a second or more: with that, all schemes do the same. Timers that are
 * armed at the end are disarmed, unless they were due.
 *
 * A scheme without timers changes a word of the object instead, and nothing expires: that is
 * what the trace costs by itself.
 */
struct twheel_bench_replay {
	__aligned_u64 ops;
	__aligned_u64 nr_ops;
	__aligned_u64 length_ns;
	__u32 scheme;
	__u32 nr_objects;
	__u32 reserved;
	__u32 cpu;
	__u32 fault;
	__u32 fault_object;
	__aligned_u64 fault_time_ns;
	__aligned_u64 fault_expected;
	__aligned_u64 fault_found;
	__aligned_u64 elapsed_ns;
	__aligned_u64 fired;
	__aligned_u64 checksum;
	struct twheel_bench_result op[TWHEEL_BENCH_NR_OP_KINDS];
	__u32 cpu_known;
	__u32 interrupts;
	__u32 softirqs;
	__u32 most_armed;
	__aligned_u64 interrupt_ns;
	__aligned_u64 softirq_ns;
	__aligned_u64 longest_interrupt_ns;
	__aligned_u64 longest_softirq_ns;
	__aligned_u64 late_p50_ns;
	__aligned_u64 late_p99_ns;
	__aligned_u64 late_max_ns;
	__aligned_u64 most_bytes;
};

/* Describes the module and this machine. Returns 0. */
#define TWHEEL_BENCH_IOC_INFO	_IOR(TWHEEL_BENCH_IOC_MAGIC, 0xb0, struct twheel_bench_info)

/* Describes a scheme. Returns 0. Error: ENOENT. */
#define TWHEEL_BENCH_IOC_SCHEME	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb1, struct twheel_bench_scheme)

/* Checks that a scheme works. Returns 0. Errors: all. */
#define TWHEEL_BENCH_IOC_CHECK	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb2, struct twheel_bench_check)

/* Measures a scheme. Returns 0. Errors: all. */
#define TWHEEL_BENCH_IOC_RUN	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb3, struct twheel_bench_run)

/* Measures how late timers are. Returns 0. Errors: all but ETIME. */
#define TWHEEL_BENCH_IOC_LATENESS					\
	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb4, struct twheel_bench_lateness)

/* Measures how much memory timers take. Returns 0. Errors: all. */
#define TWHEEL_BENCH_IOC_MEMORY	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb5, struct twheel_bench_memory)

/*
 * Measures the CPU time that the kernel has spent on timers. Returns 0. Errors: EOPNOTSUPP (not
 * possible with this kernel), ENOMEM.
 */
#define TWHEEL_BENCH_IOC_CPU	_IOR(TWHEEL_BENCH_IOC_MAGIC, 0xb6, struct twheel_bench_cpu)

/*
 * Does what a trace says with a scheme, and measures it. Returns 0. Errors: all; EINVAL also if the
 * operations are not sorted, or are not possible in this order.
 */
#define TWHEEL_BENCH_IOC_REPLAY							\
	_IOWR(TWHEEL_BENCH_IOC_MAGIC, 0xb7, struct twheel_bench_replay)

#endif /* _UAPI_LINUX_TWHEEL_BENCH_H */
