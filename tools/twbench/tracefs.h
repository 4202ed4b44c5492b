/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twbench record: what the kernel traces
 */
#ifndef TRACEFS_H
#define TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

void tracefs_end_on_signals(void);
void tracefs_open(void);
bool tracefs_enable(const char *event);
void tracefs_start(void);
uint64_t tracefs_follow(double seconds, void (*take)(char *line));

#endif /* TRACEFS_H */
