/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors of standard output, for all tools
 */
#ifndef STDOUT_H
#define STDOUT_H

extern int close_stdout_status;

void close_stdout(void);

#endif /* STDOUT_H */
