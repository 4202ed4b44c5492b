/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Characters of UTF-8, of which names of others need not be made
 */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>

size_t utf8_length(const char *text);
bool utf8_is_control(const char *text);

#endif /* UTF8_H */
