/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: arrays of operations by io_uring
 */
#ifndef _TWHEEL_DEVICE_URING_H
#define _TWHEEL_DEVICE_URING_H

#ifdef CONFIG_IO_URING
struct io_uring_cmd;
int twheel_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
#else
#define twheel_uring_cmd	NULL
#endif

#endif /* _TWHEEL_DEVICE_URING_H */
