/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors of standard output, for all tools
 */
#ifndef STDOUT_H
#define STDOUT_H

void close_stdout(void);

#endif /* STDOUT_H */
