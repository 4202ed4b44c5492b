/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: what a kernel with CONFIG_DEBUG_OBJECTS_TIMERS learns about timers
 *
 * Each of these is called by the code that does to the timer what the name says, beforehand.
 * The exception is a timer that is taken off another CPU's wheel, as only afterwards is it known
 * whether it was armed: then twheel_debug_deactivate() is called after the fact, but before
 * anybody can arm the timer again.
 */
#ifndef _TWHEEL_CORE_DEBUG_TIMERS_H
#define _TWHEEL_CORE_DEBUG_TIMERS_H

struct twheel_timer;

#if defined(CONFIG_DEBUG_OBJECTS_TIMERS) || defined(TWHEEL_INJECT)
void twheel_debug_init(struct twheel_timer *timer);
void twheel_debug_init_on_stack(struct twheel_timer *timer);
void twheel_debug_destroy_on_stack(struct twheel_timer *timer);
void twheel_debug_activate(struct twheel_timer *timer);
void twheel_debug_deactivate(struct twheel_timer *timer);
void twheel_debug_assert_init(struct twheel_timer *timer);
#else
static inline void twheel_debug_init(struct twheel_timer *timer) { }
static inline void twheel_debug_init_on_stack(struct twheel_timer *timer) { }
static inline void twheel_debug_destroy_on_stack(struct twheel_timer *timer) { }
static inline void twheel_debug_activate(struct twheel_timer *timer) { }
static inline void twheel_debug_deactivate(struct twheel_timer *timer) { }
static inline void twheel_debug_assert_init(struct twheel_timer *timer) { }
#endif

#endif /* _TWHEEL_CORE_DEBUG_TIMERS_H */
