// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: the account of a shared context
 *
 * The results that all threads got are added up, and compared with the kernel's counters. A
 * timer without a key ends once: with its event, a cancel, or a drain; or with the connection
 * that it watches. For one with a key it is not known which add has replaced it.
 */
#include "shared.h"

/* Returns a number for a new timer, which includes its kind. */
__u64 account_new(struct context *context, __u64 kind)
{
	return kind | __atomic_fetch_add(&context->ids, 1, __ATOMIC_RELAXED);
}

/* Are the numbers used up? */
bool account_full(const struct context *context)
{
	return __atomic_load_n(&context->ids, __ATOMIC_RELAXED) > IDS - 1000 ||
	       __atomic_load_n(&context->events, __ATOMIC_RELAXED) > SEQS - 1000;
}

static void end_timer(struct context *context, __u64 data, const char *how)
{
	__u8 before = __atomic_fetch_add(&context->end[(__u32)data % IDS], 1, __ATOMIC_RELAXED);

	if (before & END_COUNT)
		fuzz_fail("timer %llx ends a second time, by %s", data, how);
}

static void note_add(struct context *context, const struct twheel_op *op)
{
	const bool fresh = !(op->flags & TWHEEL_KEYED) || op->result == TWHEEL_WAS_ABSENT;

	add_count(fresh ? &context->begun : &context->replaced, 1);
	if (op->result == TWHEEL_WAS_DELIVERED)
		add_count(&context->in_delivery, 1);
	/* For others it is not known what has ended them. */
	if (!(op->user_data & (DATA_KEYED | DATA_WATCHED)))
		__atomic_fetch_or(&context->end[(__u32)op->user_data % IDS], END_ADDED,
				  __ATOMIC_RELAXED);
}

static void check_errno(const struct twheel_op *op)
{
	switch (-op->result) {
	case ENOENT:
	case EALREADY:
		if (op->opcode != TWHEEL_OP_ADD)
			return;
		break;
	case EBADF:
	case EBUSY:
		if (op->opcode == TWHEEL_OP_ADD && op->flags & TWHEEL_WATCHED)
			return;
		break;
	case ENOTCONN:
		if (op->opcode != TWHEEL_OP_CANCEL)
			return;
		break;
	case EINVAL:
		/* The timer does not have that limit. */
		if (op->opcode == TWHEEL_OP_REARM)
			return;
		break;
	case ENOMEM:
	case ENOSPC:
		if (op->opcode == TWHEEL_OP_ADD)
			return;
		break;
	case EOPNOTSUPP:
		/* A kernel that does not report changes of connections. */
		if (op->flags & TWHEEL_WATCHED)
			return;
	}
	fuzz_fail("operation %u of %llx, flags %x: %d", op->opcode, op->handle, op->flags,
		  op->result);
}

/* An operation was done. @slot is where the timer that it names was found, or NULL. */
void account_op(struct context *context, const struct twheel_op *op, const struct slot *slot)
{
	if (op->result < 0) {
		check_errno(op);
		return;
	}
	if (op->result > TWHEEL_WAS_DELIVERED)
		fuzz_fail("operation %u: verdict %d", op->opcode, op->result);
	if (op->opcode == TWHEEL_OP_ADD) {
		note_add(context, op);
		return;
	}
	if (op->result == TWHEEL_WAS_DELIVERED)
		add_count(&context->in_delivery, 1);
	if (op->opcode == TWHEEL_OP_REARM) {
		add_count(&context->rearmed, 1);
		return;
	}
	add_count(&context->cancelled, 1);
	if (slot && slot->handle && !(slot->data & DATA_KEYED))
		end_timer(context, slot->data, "a cancel");
}

/* An event has arrived. */
void account_event(struct context *context, const struct twheel_event *event)
{
	__u64 bit = 1ULL << event->seq % 64, last;

	if (event->seq >= SEQS || (__u32)event->user_data >= IDS)
		fuzz_fail("event %llu with user_data %llx", event->seq, event->user_data);
	if (__atomic_fetch_or(&context->seq[event->seq / 64], bit, __ATOMIC_RELAXED) & bit)
		fuzz_fail("event %llu comes twice", event->seq);
	if (event->fired < event->deadline && !clock_sets())
		fuzz_fail("event %llu: due at %llu, fired at %llu", event->seq, event->deadline,
			  event->fired);
	last = __atomic_load_n(&context->last_seq, __ATOMIC_RELAXED);
	while (last < event->seq &&
	       !__atomic_compare_exchange_n(&context->last_seq, &last, event->seq, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	add_count(&context->events, 1);
	if (event->user_data & DATA_PERIODIC)
		return;
	add_count(&context->one_shots, 1);
	end_timer(context, event->user_data, "an event");
}

/* A timer was drained. */
void account_drained(struct context *context, const struct twheel_timer_query *record)
{
	add_count(&context->drained, 1);
	/* Its event may just be being delivered, and that may fail. */
	if (record->user_data & DATA_PERIODIC && record->state == TWHEEL_STATE_EXPIRED)
		add_count(&context->in_delivery, 1);
	if (!(record->user_data & DATA_KEYED))
		end_timer(context, record->user_data, "a drain");
}

/* Takes the events that entered the ring after everybody had stopped taking them. */
static void take_leftovers(struct context *context)
{
	struct twheel_ring *ring = context->ring;

	while (ring->tail != ring->head)
		account_event(context, &ring->events[ring->tail++ & (RING_ENTRIES - 1)]);
}

#define EQUAL(a, b) do {						\
	__u64 __a = (a), __b = (b);					\
									\
	if (__a != __b)							\
		fuzz_fail("context %s: " #a " is %llu, " #b " %llu", name, __a, __b); \
} while (0)

/* The kernel's counters must match the results. */
static void check_counts(struct context *context, const char *name,
			 const struct twheel_context_stats *stats)
{
	const struct context *c = context;

	EQUAL(stats->adds + stats->rearms, c->begun + c->replaced + c->rearmed);
	EQUAL(stats->cancels, c->cancelled + c->drained + stats->adds - c->begun);
	EQUAL(stats->delivered, c->events);
	EQUAL(stats->adds - stats->cancels - stats->ended - c->one_shots, stats->nr_timers);
	if (c->events)
		EQUAL(c->last_seq + 1, c->events);
}

/* What holds even if the results of killed processes are unknown. */
static void check_sums(const struct context *context, const char *name,
		       const struct twheel_context_stats *stats)
{
	__u64 told = stats->delivered + stats->taken_back + stats->nr_events;

	if (stats->expiries < told || (context->exact && stats->expiries > told +
							 context->in_delivery))
		fuzz_fail("context %s: %llu expiries, %llu in the account, and %llu in delivery",
			  name, stats->expiries, told, context->in_delivery);
	if (stats->delivered < context->events)
		fuzz_fail("context %s: %llu delivered, %llu seen", name, stats->delivered,
			  context->events);
	if (!context->exact)
		EQUAL(stats->adds - stats->cancels - stats->ended - stats->delivered,
		      stats->nr_timers);
}

/* Each timer that is known to have existed has ended once. */
static void check_ends(const struct context *context, const char *name)
{
	unsigned int i, open = 0;

	for (i = 0; i < IDS; i++)
		open += context->end[i] == END_ADDED;
	if (open)
		fuzz_fail("context %s: %u timers have not ended", name, open);
}

static void drain_context(struct context *context, const char *name)
{
	static struct twheel_timer_query records[256];
	__u64 cursor = 0;
	int ret, i;

	while ((ret = wh_drain(context->fd, records, ARRAY_SIZE(records), sizeof(*records),
			       &cursor)) > 0)
		for (i = 0; i < ret; i++)
			account_drained(context, &records[i]);
	if (ret)
		fuzz_fail("context %s: drain: %d", name, ret);
}

/* When nobody uses it any more: closes the account, and the context. */
void account_close(struct context *context, const char *name)
{
	struct twheel_context_stats stats;
	int ret;

	if (__atomic_load_n(&fuzz->failed, __ATOMIC_RELAXED))
		_exit(1);
	drain_context(context, name);
	ret = wh_stats(context->fd, &stats);
	if (ret)
		fuzz_fail("context %s: stats: %d", name, ret);
	if (stats.nr_timers || stats.nr_events)
		fuzz_fail("context %s: drained, and has %llu timers, %llu events", name,
			  stats.nr_timers, stats.nr_events);
	if (context->exact && context->ring)
		take_leftovers(context);
	check_sums(context, name, &stats);
	if (context->exact) {
		check_counts(context, name, &stats);
		check_ends(context, name);
	}
	if (close(context->fd))
		fuzz_fail("context %s: close: errno %d", name, errno);
}
