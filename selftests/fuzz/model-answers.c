// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: the model: what the kernel returns when queried, and events
 */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "model.h"

/*
 * How often the kernel may find that a timer has been active, for each time that it was: the time
 * in a word counts for two more jiffies, and the first check may only see a part of them.
 */
#define LOOKS	4

/* Checks the record of an existing timer. */
static void check_record(struct model *model, struct timer *timer,
			 const struct twheel_timer_query *record, const struct span *span)
{
	bool keyed = timer->flags & TWHEEL_KEYED;
	__u64 before = time_on(&span->before, timer->clock);
	__u64 after = time_on(&span->after, timer->clock);
	__u64 least = record->deadline > after ? record->deadline - after : 0;
	__u64 most = record->deadline > before ? record->deadline - before : 0;

	if (record->handle != timer->handle || record->user_data != timer->user_data ||
	    record->flags != (timer->flags & ~TWHEEL_TOUCHED) ||
	    record->key != (keyed ? timer->key : 0) || record->period != timer->period ||
	    record->clock != timer->clock)
		fuzz_fail("timer %llx: told %llx data %llx flags %x key %llx period %llu clock %u",
			  timer->handle, record->handle, record->user_data, record->flags,
			  record->key, record->period, record->clock);
	if (!set_since(timer->clock, span->clock_sets) &&
	    (record->remaining < least || record->remaining > most))
		fuzz_fail("timer %llx: %llu remain, not %llu to %llu", timer->handle,
			  record->remaining, least, most);
	if (record->state != TWHEEL_STATE_EXPIRED && record->state != TWHEEL_STATE_PENDING)
		fuzz_fail("timer %llx: state %u", timer->handle, record->state);
	if (record->state == TWHEEL_STATE_PENDING && timer->expired)
		fuzz_fail("timer %llx is pending, though it has expired", timer->handle);
	if (record->state == TWHEEL_STATE_EXPIRED) {
		if (!may_have_expired(model, timer, &span->after))
			fuzz_fail("timer %llx expired early", timer->handle);
		timer->expired = true;
	}
	timer_told(model, timer, record->deadline, record->limit,
		   record->state == TWHEEL_STATE_PENDING, span);
}

void model_query(struct model *model, __u64 name, __u32 flags,
		 const struct twheel_timer_query *query, int result, const struct span *span)
{
	struct expect expect = { };
	struct timer *timer;

	if (flags & ~TWHEEL_BY_KEY)
		must_fail(&expect, EOPNOTSUPP);
	timer = model_named(model, name, flags, span, &expect);
	coverage_answer(0x100000 | flags, timer ? 1 + timer->expired : 0, result);
	if (!is_expected(&expect, result) || result > 0)
		fuzz_fail("query of %llx flags %x: %d", name, flags, result);
	if (timer && (result == -EALREADY || result == -ENOENT))
		model_gone(model, timer, result, span);
	if (!result)
		check_record(model, timer, query, span);
}

/* A timer was drained. */
void model_record(struct model *model, const struct twheel_timer_query *record,
		  const struct span *span)
{
	struct timer *timer = model_by_handle(model, record->handle);

	if (!timer || timer->owed)
		fuzz_fail("drained %llx, which is no timer", record->handle);
	check_record(model, timer, record, span);
	model->stats.cancels++;
	model->stats.taken_back += record->state == TWHEEL_STATE_EXPIRED;
	model_end(model, timer, CANCELLED);
}

static void check_overruns(const struct timer *timer, const struct twheel_event *event,
			   const struct span *span, bool exact)
{
	__u64 before = exact ? time_on(&span->before, timer->clock) : 0;
	__u64 after = time_on(&span->after, timer->clock);
	__u64 least = 0, most = 0;

	if (timer->period && before > event->deadline)
		least = (before - event->deadline) / timer->period;
	if (timer->period && after > event->deadline)
		most = (after - event->deadline) / timer->period;
	least = least > UINT32_MAX ? UINT32_MAX : least;
	if (!clock_was_set(timer) && (event->overruns < least || event->overruns > most))
		fuzz_fail("timer %llx: %u overruns, not %llu to %llu", timer->handle,
			  event->overruns, least, most);
}

/* A periodic timer continues. */
static void next_period(struct timer *timer, const struct twheel_event *event,
			const struct span *span)
{
	__u64 next = sum(event->deadline + event->overruns * timer->period, timer->period);

	timer->expired = false;
	timer->deadline = (struct range){ next, next };
	if (event->overruns == UINT32_MAX && set_since(timer->clock, span->clock_sets)) {
		timer->deadline = (struct range){ 0, TWHEEL_TIME_NONE };
	} else if (event->overruns == UINT32_MAX) {
		timer->deadline.lo = time_on(&span->before, timer->clock);
		timer->deadline.hi = sum(time_on(&span->after, timer->clock), timer->period);
	}
}

/* A key can happen to be equal to the handle of another timer. */
static struct timer *timer_of(struct model *model, const struct twheel_event *event)
{
	struct timer *timer = model->event_keys ? model_by_key(model, event->handle) : NULL;

	if (timer && timer->user_data == event->user_data)
		return timer;
	timer = model_by_handle(model, event->handle);
	if (!timer || (model->event_keys && timer->flags & TWHEEL_KEYED))
		fuzz_fail("event of %llx, which is no timer", event->handle);
	return timer;
}

/* What a timer does to the connection comes before its event. */
static void check_action(const struct timer *timer)
{
	struct tcp_info info = { };
	socklen_t length = sizeof(info);

	if (!timer->end || !(timer->flags & (TWHEEL_WATCH_SHUTDOWN | TWHEEL_WATCH_ABORT)))
		return;
	if (getsockopt(timer->end->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		fuzz_fail("no state of %d: errno %d", timer->end->fd, errno);
	if (timer->flags & TWHEEL_WATCH_ABORT ? info.tcpi_state != TCP_CLOSE :
	    info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT)
		fuzz_fail("timer %llx: event of flags %x, and the connection is in state %u",
			  timer->handle, timer->flags, info.tcpi_state);
}

/* An event was read, or taken from the ring. */
void model_event(struct model *model, const struct twheel_event *event, const struct span *span)
{
	struct timer *timer = timer_of(model, event);

	if (event->seq != model->seq++)
		fuzz_fail("event %llu, not %llu", event->seq, model->seq - 1);
	if (event->user_data != timer->user_data)
		fuzz_fail("timer %llx: user_data %llx, not %llx", timer->handle,
			  event->user_data, timer->user_data);
	if (!clock_was_set(timer) && (event->fired < event->deadline ||
				      event->fired > time_on(&span->after, timer->clock) ||
				      !may_have_expired(model, timer, &span->after)))
		fuzz_fail("timer %llx: due at %llu, fired at %llu, read by %llu", timer->handle,
			  event->deadline, event->fired, time_on(&span->after, timer->clock));
	timer_told(model, timer, event->deadline, event->reason, false, span);
	check_action(timer);
	check_overruns(timer, event, span, !model->ring);
	model->stats.delivered++;
	if (timer->period) {
		next_period(timer, event, span);
	} else {
		model->one_shots++;
		model_end(model, timer, DELIVERED);
	}
}

static struct range nr_expired(const struct model *model, const struct moment *now)
{
	struct range nr = { 0, 0 };
	unsigned int i;

	for (i = 0; i < model->nr; i++) {
		if (model->timer[i].owed)
			continue;
		nr.lo += model->timer[i].expired && !model->ring;
		nr.hi += may_have_expired(model, &model->timer[i], now);
	}
	return nr;
}

static bool within(__u64 number, struct range range)
{
	return range.lo <= number && number <= range.hi;
}

static struct range nr_ended(const struct model *model)
{
	struct range nr = { model->stats.ended, model->stats.ended };
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		nr.hi += may_vanish(&model->timer[i]);
	return nr;
}

void model_info(struct model *model, const struct twheel_info *info, const struct span *span)
{
	if (info->reserved || info->event_size != sizeof(struct twheel_event) ||
	    info->max_timers != model->max_timers ||
	    !within(info->nr_timers, model_nr(model, &span->after)) ||
	    !within(info->nr_events, nr_expired(model, &span->after)))
		fuzz_fail("info: max %llu, not %llu; %llu timers, %llu events of %u known",
			  info->max_timers, model->max_timers, info->nr_timers, info->nr_events,
			  model->nr);
}

/* A periodic timer may have many events in one read. */
static unsigned int most_events(const struct model *model, const struct span *span,
				unsigned int room)
{
	unsigned int i;

	for (i = 0; i < model->nr; i++)
		if (model->timer[i].period &&
		    may_have_expired(model, &model->timer[i], &span->after))
			return room;
	return nr_expired(model, &span->after).hi;
}

/* read() has returned a number of events, @result, or an error. */
void model_read(struct model *model, int result, unsigned int room, const struct span *span)
{
	struct range nr = nr_expired(model, &span->before);
	unsigned int most = most_events(model, span, room);

	coverage_answer(0x200000 | model->ring, room > 0, result > 0);
	if (model->ring && result == -EBUSY)
		return;
	if (!room && !model->ring && result == -EINVAL)
		return;
	if (model->ring || !room)
		fuzz_fail("read into room for %u: %d", room, result);
	if (result == -EAGAIN && !nr.lo)
		return;
	if (result <= 0 || (unsigned int)result > most || (unsigned int)result > room ||
	    ((unsigned int)result < room && (__u64)result < nr.lo))
		fuzz_fail("read: %d, of %llu to %u events, into room for %u", result, nr.lo, most,
			  room);
}

void model_stats(struct model *model, const struct twheel_context_stats *stats,
		 const struct span *span)
{
	const struct twheel_context_stats *own = &model->stats;
	__u64 in_ring = model->ring ? stats->delivered - own->delivered : 0;

	if (stats->adds != own->adds || stats->cancels != own->cancels ||
	    stats->rearms != own->rearms)
		fuzz_fail("%llu adds, not %llu; %llu cancels, not %llu; %llu rearms, not %llu",
			  stats->adds, own->adds, stats->cancels, own->cancels, stats->rearms,
			  own->rearms);
	if (stats->taken_back != own->taken_back || !within(stats->ended, nr_ended(model)) ||
	    stats->delivered < own->delivered || in_ring > model->nr ||
	    (!model->ring && stats->delivered != own->delivered))
		fuzz_fail("stats: taken back %llu, not %llu; delivered %llu, not %llu; ended %llu",
			  stats->taken_back, own->taken_back, stats->delivered, own->delivered,
			  stats->ended);
	if (stats->expiries != stats->delivered + stats->taken_back + stats->nr_events ||
	    stats->nr_timers - (stats->adds - stats->cancels - stats->ended - stats->delivered +
				own->delivered - model->one_shots) > model->lingering)
		fuzz_fail("%llu expiries, %llu delivered, %llu taken back, %llu wait of %llu",
			  stats->expiries, stats->delivered, stats->taken_back, stats->nr_events,
			  stats->nr_timers);
	if (!within(stats->nr_timers, model_nr(model, &span->after)) ||
	    !within(stats->nr_events, nr_expired(model, &span->after)))
		fuzz_fail("stats: %llu timers, %llu events", stats->nr_timers, stats->nr_events);
	if (stats->deferrals > LOOKS * model->activity + clock_sets() * MOST_TIMERS)
		fuzz_fail("stats: timers were put off %llu times, for %llu activities",
			  stats->deferrals, model->activity);
}
