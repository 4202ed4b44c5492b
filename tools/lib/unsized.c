// SPDX-License-Identifier: MIT
/*
 * Calls of the first version that are inline now, for programs that were linked with it. They take
 * the structures of that version.
 */
#include "libtwheel.h"

/* Sizes in bytes. Not sizeof, because structures grow. */
enum {
	INFO	= 48,
	STATS	= 96,
	SETUP	= 40,
	ADD	= 88,
	REARM	= 40,
	QUERY	= 64,
	OP	= 96,
	EVENT	= 48,
};

/* Under another name in C, because the header has an inline function of that name. */
#define EXPORTED(name, ...) \
	int unsized_##name(__VA_ARGS__) __asm__("twheel_" #name); \
	int unsized_##name(__VA_ARGS__)

EXPORTED(info, int fd, struct twheel_info *info)
{
	return twheel_info_sized(fd, info, INFO);
}

EXPORTED(stats, int fd, struct twheel_context_stats *stats)
{
	return twheel_stats_sized(fd, stats, STATS);
}

EXPORTED(setup, int fd, struct twheel_setup *setup)
{
	return twheel_setup_sized(fd, setup, SETUP);
}

EXPORTED(timer_add, int fd, struct twheel_timer_add *add)
{
	return twheel_timer_add_sized(fd, add, ADD);
}

EXPORTED(timer_rearm, int fd, const struct twheel_timer_rearm *rearm)
{
	return twheel_timer_rearm_sized(fd, rearm, REARM);
}

EXPORTED(query, int fd, uint64_t handle, struct twheel_timer_query *query)
{
	return twheel_query_sized(fd, handle, 0, query, QUERY);
}

EXPORTED(query_key, int fd, uint64_t key, struct twheel_timer_query *query)
{
	return twheel_query_sized(fd, key, TWHEEL_BY_KEY, query, QUERY);
}

EXPORTED(drain, int fd, struct twheel_timer_query *timers, unsigned int max, uint64_t *cursor)
{
	return twheel_drain_sized(fd, timers, max, cursor, QUERY);
}

EXPORTED(read, int fd, struct twheel_event *events, unsigned int max)
{
	return twheel_read_sized(fd, events, max, EVENT);
}

EXPORTED(batch_submit, int fd, const struct twheel_batch *batch, unsigned int flags)
{
	return twheel_submit_sized(fd, batch->ops, batch->nr_ops, flags, OP);
}
