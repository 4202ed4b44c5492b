// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the words of a line, quoted as in a shell
 *
 * Blanks separate words. Between single quotes every character stands for itself; elsewhere a
 * backslash takes the special meaning from the next one. A # that begins a word begins a comment.
 * Nothing is expanded.
 */
#include <ctype.h>
#include <string.h>

#include "twctl.h"

/* Unquotes the word at @from in place, and moves @from past it. Returns NULL, or what is wrong. */
static const char *unquote(char **from)
{
	char *in = *from, *out = in;
	char quote = '\0';

	for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
		if (*in == '\\' && quote != '\'') {
			if (!*++in)
				return "nothing follows the backslash";
			*out++ = *in;
		} else if (quote && *in == quote) {
			quote = '\0';
		} else if (!quote && (*in == '"' || *in == '\'')) {
			quote = *in;
		} else {
			*out++ = *in;
		}
	}
	*from = *in ? in + 1 : in;
	/* Not before: without quotes, this is where @in is. */
	*out = '\0';
	return quote ? "a quotation mark has no partner" : NULL;
}

/**
 * words_split - split a line into words
 * @line:	the line, which is overwritten by them
 * @words:	filled in: the words, then NULL
 * @max:	room in @words
 * @nr:		filled in: their number
 *
 * Return: NULL, or what is wrong with the line.
 */
const char *words_split(char *line, char **words, size_t max, size_t *nr)
{
	const char *why;

	for (*nr = 0; ; ++*nr) {
		while (isspace((unsigned char)*line))
			line++;
		words[*nr] = NULL;
		if (!*line || *line == '#')
			return NULL;
		if (*nr == max - 1)
			return "there are too many words";
		words[*nr] = line;
		why = unquote(&line);
		if (why)
			return why;
	}
}

/**
 * words_print - print a word so that words_split(), or a shell, reads it as one
 * @word:	the word
 */
void words_print(const char *word)
{
	const char *c;

	for (c = word; isalnum((unsigned char)*c) || (*c && strchr("-./:@_", *c)); c++)
		;
	if (*word && !*c) {
		fputs(word, stdout);
		return;
	}
	putchar('\'');
	for (c = word; *c; c++) {
		if (*c == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*c);
	}
	putchar('\'');
}
