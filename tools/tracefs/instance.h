/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace instance of the kernel, for all tools
 */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

void instance_create(const char *prefix);
void instance_remove(void);
bool instance_write(const char *name, const char *text);
void instance_need(const char *name, const char *text);
int instance_open_pipe(void);
ssize_t instance_read_pipe(char *buffer, size_t size);

#endif /* INSTANCE_H */
