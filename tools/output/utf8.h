/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * UTF-8: names chosen by others need not be valid
 */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>

size_t utf8_length(const char *text);
bool utf8_is_control(const char *text);

#endif /* UTF8_H */
