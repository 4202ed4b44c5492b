/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: arrays of operations, and draining a context's timers
 */
#ifndef _TWHEEL_DEVICE_SUBMIT_H
#define _TWHEEL_DEVICE_SUBMIT_H

struct twheel_context;
struct twheel_drain;
struct twheel_submit;

long twheel_submit(struct twheel_context *ctx, const struct twheel_submit *submit);
long twheel_drain(struct twheel_context *ctx, struct twheel_drain *drain);

#endif /* _TWHEEL_DEVICE_SUBMIT_H */
