// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: the model: what each operation may return, and what it does
 */
#include "model.h"

#define OP_FLAGS	(TWHEEL_TIME_ABS | TWHEEL_KEYED | TWHEEL_TOUCHED | TWHEEL_WATCHED | \
			 WATCH_FLAGS)
#define ACTIONS		(TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)

/* Sets up a new context, of @max_timers timers at most. */
void model_init(struct model *model, __u64 max_timers)
{
	struct timespec jiffy;
	__u32 i;

	memset(model, 0, sizeof(*model));
	model->max_timers = max_timers;
	clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy);
	model->jiffy = jiffy.tv_nsec;
	for (i = 0; i < MOST_WORDS; i++)
		model->word[i].active.hi = 2 * model->jiffy;
	for (i = 0; i < MOST_ENDS; i++)
		model->end[i].fd = -1;
}

/* The timer with a handle, or NULL; even if its event is owed. */
struct timer *model_by_handle(struct model *model, __u64 handle)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (model->timer[i].handle == handle)
			return &model->timer[i];
	return NULL;
}

/* The timer with a key, or NULL. */
struct timer *model_by_key(struct model *model, __u64 key)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (model->timer[i].flags & TWHEEL_KEYED && model->timer[i].key == key &&
		    !model->timer[i].owed)
			return &model->timer[i];
	return NULL;
}

static struct past *past_of(struct model *model, __u64 handle)
{
	unsigned int i;

	for (i = 0; i < model->nr_past; i++)
		if (model->past[i].handle == handle)
			return &model->past[i];
	return NULL;
}

/* The number of timers that have since used the same memory as that of a handle. */
static unsigned int nr_since(const struct model *model, const struct past *past)
{
	const struct past *other;
	unsigned int n = 0;

	for (other = past + 1; other < model->past + model->nr_past; other++)
		n += (__u32)other->handle == (__u32)past->handle;
	return n;
}

/* Which errors may a handle that names no timer give? */
static void expect_stale(struct model *model, __u64 handle, struct expect *expect)
{
	const struct past *past = past_of(model, handle);
	unsigned int since = past ? nr_since(model, past) : 0;

	if (!past || past->fate != DELIVERED || since >= 12)
		must_fail(expect, ENOENT);
	if (past && past->fate == DELIVERED && since <= 12)
		must_fail(expect, EALREADY);
}

/* The timer that a call names. If there is none, the errors for that are expected. */
struct timer *model_named(struct model *model, __u64 name, __u32 flags, const struct span *span,
			  struct expect *expect)
{
	struct timer *timer = flags & TWHEEL_BY_KEY ? model_by_key(model, name) :
						      model_by_handle(model, name);

	if (!timer || timer->owed) {
		if (flags & TWHEEL_BY_KEY)
			must_fail(expect, ENOENT);
		else
			expect_stale(model, name, expect);
		return NULL;
	}
	if (model->ring && may_have_expired(model, timer, &span->after))
		may_fail(expect, flags & TWHEEL_BY_KEY ? ENOENT : EALREADY);
	if (may_vanish(timer))
		may_fail(expect, ENOENT);
	return timer;
}

/* A timer has ended. */
void model_end(struct model *model, struct timer *timer, enum fate fate)
{
	struct moment now = read_clocks();

	/* The kernel may just be dealing with its connection. */
	if (timer->end && (may_have_expired(model, timer, &now) || may_vanish(timer)))
		model->lingering++;
	past_of(model, timer->handle)->fate = fate;
	*timer = model->timer[--model->nr];
}

/* A timer has ended with its connection. */
void model_vanished(struct model *model, struct timer *timer)
{
	model->stats.ended++;
	model_end(model, timer, CANCELLED);
}

/*
 * The kernel reports that a timer is gone, with @error: it has ended with its connection, or its
 * event is in the ring. With a ring, connections end only when the program ends them.
 */
void model_gone(struct model *model, struct timer *timer, int error, const struct span *span)
{
	if (may_vanish(timer) && error == -ENOENT)
		return model_vanished(model, timer);
	if (!model->ring || !may_have_expired(model, timer, &span->after))
		fuzz_fail("timer %llx is gone", timer->handle);
	past_of(model, timer->handle)->fate = DELIVERED;
	timer->owed = true;
}

/* The minimum and maximum number of timers in the context. */
struct range model_nr(const struct model *model, const struct moment *now)
{
	struct range nr = { 0, model->lingering };
	unsigned int i;

	for (i = 0; i < model->nr; i++) {
		if (model->timer[i].owed)
			continue;
		nr.hi++;
		if ((!model->ring || !may_have_expired(model, &model->timer[i], now)) &&
		    !may_vanish(&model->timer[i]))
			nr.lo++;
	}
	return nr;
}

static bool too_long(__u64 time)
{
	return time > TWHEEL_TIME_MAX;
}

/* Does another timer than @old watch an end? */
static void expect_free(struct model *model, const struct end *end, const struct timer *old,
			const struct span *span, struct expect *expect)
{
	const struct timer *timer;

	for (timer = model->timer; timer < model->timer + model->nr; timer++) {
		if (timer->end != end || timer == old || timer->expired || timer->owed)
			continue;
		if (may_have_expired(model, timer, &span->after) || may_vanish(timer))
			may_fail(expect, EBUSY);
		else
			must_fail(expect, EBUSY);
	}
}

static void expect_watch(struct model *model, const struct twheel_op *op, const struct timer *old,
			 const struct span *span, struct expect *expect)
{
	const struct end *end = end_of_fd(model, op->touch);

	if (op->flags & TWHEEL_TOUCHED || (op->flags & ACTIONS) == ACTIONS ||
	    (!op->idle && !op->lifetime) || (op->idle && op->idle < TWHEEL_IDLE_MIN) ||
	    op->idle > model->jiffy << 31)
		must_fail(expect, EINVAL);
	/* Whatever another descriptor is, it is not a TCP socket. */
	if (!end) {
		must_fail(expect, EBADF);
		must_fail(expect, EOPNOTSUPP);
		must_fail(expect, EINVAL);
		return;
	}
	if (end->may_end)
		may_fail(expect, ENOTCONN);
	expect_free(model, end, old, span, expect);
}

static void expect_touched(const struct model *model, const struct twheel_op *op,
			   struct expect *expect)
{
	if (op->idle < TWHEEL_IDLE_MIN || op->touch >= model->nr_words)
		must_fail(expect, EINVAL);
}

static void expect_add(struct model *model, const struct twheel_op *op, const struct span *span,
		       struct expect *expect)
{
	bool limits = op->idle || op->lifetime;
	struct range nr = model_nr(model, &span->after);
	struct timer *old = op->flags & TWHEEL_KEYED ? model_by_key(model, op->key) : NULL;

	if (op->flags & ~OP_FLAGS || (op->clock != CLOCK_MONOTONIC &&
				      op->clock != CLOCK_BOOTTIME && op->clock != CLOCK_REALTIME))
		must_fail(expect, EOPNOTSUPP);
	if (too_long(op->period) || too_long(op->slack) || too_long(op->spread) ||
	    too_long(op->idle) || too_long(op->lifetime) ||
	    (too_long(op->time) && !(limits && op->time == TWHEEL_TIME_NONE)))
		must_fail(expect, EINVAL);
	if (limits && (op->period || op->clock != CLOCK_MONOTONIC))
		must_fail(expect, EINVAL);
	if ((op->key && !(op->flags & TWHEEL_KEYED)) || op->limit)
		must_fail(expect, EINVAL);
	if (op->flags & TWHEEL_WATCHED)
		expect_watch(model, op, old, span, expect);
	else if (op->flags & WATCH_FLAGS)
		must_fail(expect, EINVAL);
	else if (op->flags & TWHEEL_TOUCHED)
		expect_touched(model, op, expect);
	else if (op->touch)
		must_fail(expect, EINVAL);
	if (!old && nr.lo >= model->max_timers)
		must_fail(expect, ENOSPC);
	else if ((!old || model->ring) && nr.hi >= model->max_timers)
		may_fail(expect, ENOSPC);
}

static void expect_cancel(const struct twheel_op *op, struct expect *expect)
{
	if (op->flags & ~TWHEEL_BY_KEY)
		must_fail(expect, EOPNOTSUPP);
	if (op->time || op->user_data || op->clock || op->key || op->period || op->slack ||
	    op->spread || op->idle || op->lifetime || op->touch || op->limit)
		must_fail(expect, EINVAL);
}

static void expect_rearm(const struct twheel_op *op, struct expect *expect)
{
	if (op->flags & ~(TWHEEL_TIME_ABS | TWHEEL_BY_KEY | TWHEEL_ACTIVE) ||
	    op->limit > TWHEEL_LIMIT_LIFETIME)
		must_fail(expect, EOPNOTSUPP);
	if ((too_long(op->time) && op->time != TWHEEL_TIME_NONE) || too_long(op->slack) ||
	    too_long(op->spread) || op->user_data || op->clock || op->key || op->period ||
	    op->idle || op->lifetime || op->touch)
		must_fail(expect, EINVAL);
}

static bool has_other_limit(const struct timer *timer, __u32 limit)
{
	return (limit != TWHEEL_LIMIT_DEADLINE && timer->deadline.lo != TWHEEL_TIME_NONE) ||
	       (limit != TWHEEL_LIMIT_IDLE && timer->idle) ||
	       (limit != TWHEEL_LIMIT_LIFETIME && timer->death.lo != TWHEEL_TIME_NONE);
}

/* What is wrong with a re-arm for this timer? */
static void expect_fitting(const struct timer *timer, const struct twheel_op *op, __u64 jiffy,
			   struct expect *expect)
{
	if (op->flags & TWHEEL_ACTIVE) {
		if (!timer->idle || op->limit != TWHEEL_LIMIT_IDLE || op->time || op->slack ||
		    op->spread || op->flags & TWHEEL_TIME_ABS)
			must_fail(expect, EINVAL);
		return;
	}
	if (op->limit != TWHEEL_LIMIT_DEADLINE && !timer->limits)
		must_fail(expect, EINVAL);
	if (op->limit == TWHEEL_LIMIT_IDLE &&
	    (op->flags & TWHEEL_TIME_ABS || !op->time || op->slack || op->spread))
		must_fail(expect, EINVAL);
	if (op->limit == TWHEEL_LIMIT_IDLE && timer->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED) &&
	    op->time < TWHEEL_IDLE_MIN)
		must_fail(expect, EINVAL);
	if (op->limit == TWHEEL_LIMIT_IDLE && timer->flags & TWHEEL_WATCHED &&
	    op->time > jiffy << 31 && op->time != TWHEEL_TIME_NONE)
		must_fail(expect, EINVAL);
	if (op->time == TWHEEL_TIME_NONE && !has_other_limit(timer, op->limit))
		must_fail(expect, EINVAL);
}

/* A timer that watches a connection cannot be re-armed any more once it has expired. */
static void expect_watching(const struct model *model, const struct timer *timer,
			    const struct span *span, struct expect *expect)
{
	if (!(timer->flags & TWHEEL_WATCHED))
		return;
	if (timer->expired)
		must_fail(expect, ENOTCONN);
	else if (may_have_expired(model, timer, &span->after))
		may_fail(expect, ENOTCONN);
}

static void check_result(const struct expect *expect, const struct twheel_op *op, long result)
{
	char list[256] = "";
	int i, n = 0;

	if (is_expected(expect, result))
		return;
	for (i = 0; i < MOST_ERRNOS; i++)
		if (expect->error[i])
			n += snprintf(list + n, sizeof(list) - n, " %d", -i);
	fuzz_fail("operation %u of %llx, flags %x: %ld, expected%s%s", op->opcode, op->handle,
		  op->flags, result, list, expect->must ? "" : " or success");
}

/* A timer was stopped before it had expired, or its event was taken back. */
static void check_verdict(struct model *model, struct timer *timer, int verdict,
			  const struct span *span)
{
	if (verdict == TWHEEL_WAS_EXPIRED && may_have_expired(model, timer, &span->after)) {
		model->stats.taken_back++;
		return;
	}
	if (verdict != TWHEEL_WAS_PENDING || timer->expired)
		fuzz_fail("timer %llx: verdict %d, though it %s", timer->handle, verdict,
			  timer->expired ? "has expired" : "cannot have expired");
}

static void record_handle(struct model *model, __u64 handle)
{
	if (!handle || past_of(model, handle))
		fuzz_fail("handle %llx is given out twice", handle);
	model->past[model->nr_past++] = (struct past){ handle, ALIVE };
}

/* A new timer watches an end: any other one that did has expired, or ended with its connection. */
static void note_watch(struct model *model, struct timer *timer, const struct twheel_op *op)
{
	struct end *end = end_of_fd(model, op->touch), *first;
	struct timer *other;

	for (other = model->timer; other < timer; other++)
		if (other->end == end && !may_vanish(other))
			other->expired = true;
	timer->end = end;
	if (op->flags & ACTIONS) {
		first = &model->end[(end - model->end) & ~1UL];
		first[0].may_end = true;
		first[1].may_end = true;
	}
}

static void note_add(struct model *model, const struct twheel_op *op,
		     const struct twheel_op *told, const struct span *span)
{
	struct timer *old = op->flags & TWHEEL_KEYED ? model_by_key(model, op->key) : NULL;

	model->activity += !!(op->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED));
	if (old && told->result == TWHEEL_WAS_ABSENT) {
		model_gone(model, old, -ENOENT, span);
		old = NULL;
	}
	if (old) {
		check_verdict(model, old, told->result, span);
		if (old->handle == told->handle) {
			model->stats.rearms++;
			timer_begin(old, op, span);
			return;
		}
		model->stats.cancels++;
		model_end(model, old, CANCELLED);
	} else if (told->result != (op->flags & TWHEEL_KEYED ? TWHEEL_WAS_ABSENT : 0)) {
		fuzz_fail("add: verdict %d, though there was none", told->result);
	}
	model->stats.adds++;
	record_handle(model, told->handle);
	old = &model->timer[model->nr++];
	old->handle = told->handle;
	timer_begin(old, op, span);
	if (op->flags & TWHEEL_WATCHED)
		note_watch(model, old, op);
}

static void note_cancel(struct model *model, struct timer *timer, int verdict,
			const struct span *span)
{
	check_verdict(model, timer, verdict, span);
	model->stats.cancels++;
	model_end(model, timer, CANCELLED);
}

static void note_rearm(struct model *model, struct timer *timer, const struct twheel_op *op,
		       int verdict, const struct span *span)
{
	check_verdict(model, timer, verdict, span);
	model->activity += !!(timer->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED));
	model->stats.rearms++;
	timer_rearm(timer, op, span);
}

/* The kind of a timer, for the coverage. */
static __u32 kind_of(const struct model *model, const struct timer *timer, const struct span *span)
{
	if (!timer)
		return 0;
	return 1 | timer->expired << 1 | may_have_expired(model, timer, &span->after) << 2 |
	       timer->limits << 3 | !!timer->period << 4 | !!timer->slack << 5 |
	       timer->flags << 6 | (timer->clock != CLOCK_MONOTONIC) << 16 | model->ring << 17;
}

/* What an operation means: an add with another limit need not say that there is no deadline. */
static struct twheel_op op_meaning(const struct twheel_op *said)
{
	struct twheel_op op = *said;

	if (op.opcode != TWHEEL_OP_ADD || (!op.idle && !op.lifetime))
		return op;
	if (!op.time && !(op.flags & TWHEEL_TIME_ABS))
		op.time = TWHEEL_TIME_NONE;
	if (op.time == TWHEEL_TIME_NONE && op.clock == CLOCK_REALTIME)
		op.clock = CLOCK_MONOTONIC;
	return op;
}

/* An operation was done: @said is what was passed in, @told what was returned. */
void model_op(struct model *model, const struct twheel_op *said, const struct twheel_op *told,
	      const struct span *span)
{
	const struct twheel_op meant = op_meaning(said), *op = &meant;
	struct expect expect = { };
	struct timer *timer = NULL;

	if (op->opcode == TWHEEL_OP_ADD)
		expect_add(model, op, span, &expect);
	else if (op->opcode == TWHEEL_OP_CANCEL)
		expect_cancel(op, &expect);
	else if (op->opcode == TWHEEL_OP_REARM)
		expect_rearm(op, &expect);
	else
		must_fail(&expect, EOPNOTSUPP);
	if (op->opcode == TWHEEL_OP_CANCEL || op->opcode == TWHEEL_OP_REARM)
		timer = model_named(model, op->handle, op->flags, span, &expect);
	if (timer && op->opcode == TWHEEL_OP_REARM) {
		expect_fitting(timer, op, model->jiffy, &expect);
		expect_watching(model, timer, span, &expect);
	}
	coverage_answer(op->opcode << 12 | op->flags << 2 | op->limit,
			kind_of(model, timer, span), told->result);
	check_result(&expect, op, told->result);
	if (timer && (told->result == -EALREADY || told->result == -ENOENT))
		model_gone(model, timer, told->result, span);
	else if (timer && told->result == -ENOTCONN)
		timer->expired = true;
	if (told->result < 0)
		return;
	if (op->opcode == TWHEEL_OP_ADD)
		note_add(model, op, told, span);
	else if (op->opcode == TWHEEL_OP_CANCEL)
		note_cancel(model, timer, told->result, span);
	else
		note_rearm(model, timer, op, told->result, span);
}
