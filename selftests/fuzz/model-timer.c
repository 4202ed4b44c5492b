// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: the model: when the limits of a timer are due
 */
#include "model.h"

#define DIRECTIONS	(TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT)

struct moment read_clocks(void)
{
	return (struct moment) {
		.monotonic	= clock_ns(CLOCK_MONOTONIC),
		.realtime	= clock_ns(CLOCK_REALTIME),
		.boottime	= clock_ns(CLOCK_BOOTTIME),
	};
}

__u64 time_on(const struct moment *moment, __u32 clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return moment->realtime;
	case CLOCK_BOOTTIME:
		return moment->boottime;
	default:
		return moment->monotonic;
	}
}

/* Has the clock been set since clock_sets() returned @sets, or was it being set then? */
bool set_since(__u32 clock, __u32 sets)
{
	return clock == CLOCK_REALTIME && (sets & 1 || clock_sets() != sets);
}

/* Has the clock been set since the timer was armed? Then nothing is known about its times. */
bool clock_was_set(const struct timer *timer)
{
	return set_since(timer->clock, timer->clock_sets);
}

static __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* The last activity that is recorded outside of a timer: in its word, or by its connection. */
static struct range recorded_activity(const struct model *model, const struct timer *timer)
{
	const struct range none = { 0, 0 }, *received, *sent;

	if (timer->flags & TWHEEL_TOUCHED)
		return model->word[timer->touch].active;
	if (!timer->end)
		return none;
	/* With neither flag, both count. */
	received = (timer->flags & DIRECTIONS) == TWHEEL_WATCH_SENT ? &none :
								      &timer->end->received;
	sent = (timer->flags & DIRECTIONS) == TWHEEL_WATCH_RECEIVED ? &none : &timer->end->sent;
	return (struct range){ later(received->lo, sent->lo), later(received->hi, sent->hi) };
}

/* When the idle timeout ends, as far as the kernel may know. */
struct range idle_end(const struct model *model, const struct timer *timer,
		      const struct moment *now)
{
	struct range end = timer->active, seen = recorded_activity(model, timer);

	if (!timer->idle)
		return (struct range){ TWHEEL_TIME_NONE, TWHEEL_TIME_NONE };
	if (!timer->untold)
		end.lo = later(end.lo, seen.lo);
	/* What counts as activity is never in the future. */
	end.hi = later(end.hi, seen.hi < now->monotonic ? seen.hi : now->monotonic);
	return (struct range){ sum(end.lo, timer->idle), sum(end.hi, timer->idle) };
}

bool may_have_expired(const struct model *model, const struct timer *timer,
		      const struct moment *now)
{
	return timer->expired || clock_was_set(timer) ||
	       timer->deadline.lo <= time_on(now, timer->clock) ||
	       timer->death.lo <= now->monotonic ||
	       idle_end(model, timer, now).lo <= now->monotonic;
}

/* May it have ended with its connection, without an event? */
bool may_vanish(const struct timer *timer)
{
	return timer->end && timer->end->may_end && !timer->expired;
}

/* Is it due, whatever is unknown? With touch words from the future, it never is. */
bool has_to_expire(const struct model *model, const struct timer *timer,
		   const struct moment *now)
{
	if (clock_was_set(timer) || may_vanish(timer))
		return false;
	return sum(timer->deadline.hi, timer->slack) <= time_on(now, timer->clock) ||
	       timer->death.hi <= now->monotonic ||
	       idle_end(model, timer, now).hi <= now->monotonic;
}

/* The time to which an operation sets a limit. */
static struct range new_limit(const struct twheel_op *op, __u32 clock, const struct span *span)
{
	struct range limit = { op->time, op->time };

	if (op->time == TWHEEL_TIME_NONE)
		return limit;
	if (!(op->flags & TWHEEL_TIME_ABS)) {
		limit.lo = sum(time_on(&span->before, clock), op->time);
		limit.hi = sum(time_on(&span->after, clock), op->time);
	}
	limit.hi = sum(limit.hi, op->spread);
	return limit;
}

static void set_deadline(struct timer *timer, const struct twheel_op *op,
			 const struct span *span)
{
	timer->clock = timer->added_on;
	if (timer->clock == CLOCK_REALTIME && !(op->flags & TWHEEL_TIME_ABS))
		timer->clock = CLOCK_MONOTONIC;
	timer->clock_sets = span->clock_sets;
	timer->deadline = new_limit(op, timer->clock, span);
	timer->slack = op->slack;
}

static void set_active(struct timer *timer, const struct span *span)
{
	timer->active.lo = span->before.monotonic;
	timer->active.hi = span->after.monotonic;
	timer->expired = false;
	timer->untold = false;
}

/* Sets up a timer as requested by an add; it has its handle. */
void timer_begin(struct timer *timer, const struct twheel_op *op, const struct span *span)
{
	*timer = (struct timer) {
		.handle		= timer->handle,
		.user_data	= op->user_data,
		.key		= op->key,
		.flags		= op->flags & ~TWHEEL_TIME_ABS,
		.limits		= op->idle || op->lifetime,
		.added_on	= op->clock,
		.period		= op->period,
		.idle		= op->idle,
		.touch		= op->touch,
		.death		= { TWHEEL_TIME_NONE, TWHEEL_TIME_NONE },
	};
	set_active(timer, span);
	set_deadline(timer, op, span);
	if (op->lifetime) {
		timer->death.lo = sum(span->before.monotonic, op->lifetime);
		timer->death.hi = sum(sum(span->after.monotonic, op->lifetime), op->spread);
	}
}

/* Changes a timer as requested by a re-arm. */
void timer_rearm(struct timer *timer, const struct twheel_op *op, const struct span *span)
{
	set_active(timer, span);
	if (op->flags & TWHEEL_ACTIVE)
		return;
	switch (op->limit) {
	case TWHEEL_LIMIT_DEADLINE:
		set_deadline(timer, op, span);
		break;
	case TWHEEL_LIMIT_IDLE:
		timer->idle = op->time == TWHEEL_TIME_NONE ? 0 : op->time;
		break;
	default:
		timer->death = new_limit(op, CLOCK_MONOTONIC, span);
	}
}

/* The time from @time to @time + @slack with the most trailing zeros, in binary. */
static __u64 roundest(__u64 time, __u64 slack)
{
	__u64 last = sum(time, slack), unit;

	for (unit = 1ULL << 62; unit; unit >>= 1)
		if ((last & ~(unit - 1)) >= time && last & ~(unit - 1))
			return last & ~(unit - 1);
	return time;
}

static bool is_deadline(const struct timer *timer, __u64 told)
{
	const struct range *limit = &timer->deadline;

	if (limit->lo == limit->hi)
		return told == limit->lo || told == roundest(limit->lo, timer->slack);
	return limit->lo <= told && told <= sum(limit->hi, timer->slack);
}

/* Prints what is known about a timer's limits, and gives up. */
__attribute__((noreturn))
static void no_limit(const struct timer *timer, const struct range *idle, const char *how,
		     __u64 deadline, __u32 limit)
{
	printf("# deadline %llu to %llu, slack %llu\n# idle timeout %llu to %llu\n",
	       timer->deadline.lo, timer->deadline.hi, timer->slack, idle->lo, idle->hi);
	printf("# lifetime %llu to %llu\n", timer->death.lo, timer->death.hi);
	fuzz_fail("timer %llx: limit %u %s at %llu", timer->handle, limit, how, deadline);
}

/*
 * Can this be when the kernel looks again at a socket that was locked when the timer was due, or
 * the connection ended? That is a second later, if it has been locked for as long.
 */
static bool is_retry(const struct model *model, const struct timer *timer, __u64 deadline,
		     const struct moment *now)
{
	return timer->flags & TWHEEL_WATCHED &&
	       (may_have_expired(model, timer, now) || may_vanish(timer)) &&
	       deadline <= now->monotonic + SEC;
}

/* Is this one of the timer's limits, at this time, and the first of them? Then it is exact now. */
void timer_told(const struct model *model, struct timer *timer, __u64 deadline, __u32 limit,
		bool pending, const struct span *span)
{
	struct range idle = idle_end(model, timer, &span->after);
	bool right;

	if (pending && is_retry(model, timer, deadline, &span->after))
		return;
	/* Words that the kernel has not checked yet do not show. */
	if (pending && timer->idle)
		idle.lo = sum(timer->active.lo, timer->idle);
	if (limit == TWHEEL_LIMIT_DEADLINE)
		right = is_deadline(timer, deadline);
	else if (limit == TWHEEL_LIMIT_IDLE)
		right = timer->idle && idle.lo <= deadline && deadline <= idle.hi;
	else
		right = limit == TWHEEL_LIMIT_LIFETIME && timer->death.lo != TWHEEL_TIME_NONE &&
			timer->death.lo <= deadline && deadline <= timer->death.hi;
	if (!right)
		no_limit(timer, &idle, "is not", deadline, limit);
	if (timer->clock == CLOCK_MONOTONIC &&
	    (deadline > sum(timer->deadline.hi, timer->slack) || deadline > idle.hi ||
	     deadline > timer->death.hi))
		no_limit(timer, &idle, "is not the first,", deadline, limit);
	if (limit == TWHEEL_LIMIT_DEADLINE && !timer->slack)
		timer->deadline = (struct range){ deadline, deadline };
	else if (limit == TWHEEL_LIMIT_LIFETIME)
		timer->death = (struct range){ deadline, deadline };
}

/* A word of the touch array has just been written: some timers may have expired before that. */
void word_touch(struct model *model, __u32 number)
{
	struct moment now = read_clocks();
	struct timer *timer;

	for (timer = model->timer; timer < model->timer + model->nr; timer++) {
		if (!(timer->flags & TWHEEL_TOUCHED) || timer->touch != number)
			continue;
		model->activity++;
		timer->untold |= may_have_expired(model, timer, &now);
	}
}

/* A word of the touch array has been written; @now was before that. */
void word_store(struct model *model, __u32 number, __u64 value, __u64 now)
{
	struct word *word = &model->word[number];
	__u64 hi = value <= now ? value + 2 * model->jiffy : TWHEEL_TIME_NONE;

	/* One from the far future may have been there before, and only counts as activity once. */
	if (value > now + HOUR)
		word->active.lo = 0;
	else if (word->value != value)
		word->active.lo = value < now ? value : now;
	word->active.hi = later(word->active.hi, hi);
	word->value = value;
}

/* The end with a file descriptor, or NULL. */
struct end *end_of_fd(struct model *model, __u32 fd)
{
	struct end *end;

	for (end = model->end; end < model->end + MOST_ENDS; end++)
		if (end->fd >= 0 && end->fd == (int)fd)
			return end;
	return NULL;
}

/* Data is about to flow: some timers may have expired before that. */
void end_touch(struct model *model, const struct end *end)
{
	struct moment now = read_clocks();
	struct timer *timer;

	for (timer = model->timer; timer < model->timer + model->nr; timer++) {
		if (timer->end != end)
			continue;
		model->activity++;
		timer->untold |= may_have_expired(model, timer, &now);
	}
}
