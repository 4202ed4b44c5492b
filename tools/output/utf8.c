// SPDX-License-Identifier: GPL-2.0-only
/*
 * UTF-8: names chosen by others need not be valid
 */
#include <stdint.h>

#include "utf8.h"

/* The lowest code point of a sequence, by the sequence's length. */
static const uint32_t min_code[] = { 0, 0, 0x80, 0x800, 0x10000 };

/* The length of a sequence that begins with this byte, or 0 if none does. */
static size_t sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc0)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
}

/**
 * utf8_length - get the length of a character
 * @text:	begins with the character; NUL-terminated
 *
 * Return: the length in bytes; 0 if @text does not begin with a valid character in its shortest
 * form.
 */
size_t utf8_length(const char *text)
{
	const size_t length = sequence_length(*text);
	uint32_t code;
	size_t i;

	if (length <= 1)
		return length;
	code = *text & (0xff >> (length + 1));
	for (i = 1; i < length; i++) {
		/* This stops at the terminating NUL, too. */
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < min_code[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/**
 * utf8_is_control - is a character a control character, which a terminal obeys and does not show?
 * @text:	begins with a valid character: utf8_length() is not 0
 *
 * Control characters are U+0000 to U+001F, and U+007F to U+009F.
 */
bool utf8_is_control(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	return c[0] < ' ' || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}
