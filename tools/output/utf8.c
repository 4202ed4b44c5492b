// SPDX-License-Identifier: GPL-2.0-only
/*
 * Characters of UTF-8, of which names of others need not be made
 */
#include <stdint.h>

#include "utf8.h"

/* By length: the least code that takes so many bytes. */
static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

/* The bytes that a character takes which begins with this one, or 0 if none does. */
static size_t length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc0)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
}

/**
 * utf8_length - the bytes of a character
 * @text:	begins with it; ends with a zero byte
 *
 * Return: how many; 0 if @text does not begin with a character in its one right form.
 */
size_t utf8_length(const char *text)
{
	const size_t length = length_of(*text);
	uint32_t code;
	size_t i;

	if (length <= 1)
		return length;
	code = *text & (0xff >> (length + 1));
	for (i = 1; i < length; i++) {
		/* The zero byte at the end is none that goes on, either. */
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/**
 * utf8_is_control - is a character one that a terminal obeys in place of showing it?
 * @text:	begins with it, as utf8_length() has found
 *
 * These are U+0000 to U+001F, and U+007F to U+009F.
 */
bool utf8_is_control(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	return c[0] < ' ' || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}
