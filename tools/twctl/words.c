// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: splitting a line into words, quoted as in a shell
 *
 * Blanks separate words. Between single quotes every character stands for itself; elsewhere a
 * backslash removes the special meaning of the next character. Between $' and ' a backslash and
 * three octal digits stand for a byte. A # at the beginning of a word starts a comment. Nothing is
 * expanded.
 */
#include <ctype.h>
#include <string.h>

#include "twctl.h"
#include "utf8.h"

/* Parses an escape sequence between $' and '. Returns NULL, or what is wrong. */
static const char *parse_escape(char **in, char *out)
{
	const char *c = *in + 1;

	if (*c == '\\' || *c == '\'') {
		*out = *c;
		*in += 1;
		return NULL;
	}
	if (strspn(c, "01234567") < 3 || *c > '3' || !strncmp(c, "000", 3))
		return "between $' and ' a backslash takes three octal digits, \\ or '";
	*out = (c[0] - '0') << 6 | (c[1] - '0') << 3 | (c[2] - '0');
	*in += 3;
	return NULL;
}

/*
 * Unquotes the word at @from in place, and moves @from past it. Returns NULL, or what is wrong.
 * The variable quote is the quotation mark that is open, with '$' for $', or 0.
 */
static const char *unquote(char **from)
{
	char *in = *from, *out = in, quote = '\0';
	const char *why;

	for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
		if (*in == '\\' && quote == '$') {
			why = parse_escape(&in, out++);
			if (why)
				return why;
		} else if (*in == '\\' && quote != '\'') {
			if (!*++in)
				return "nothing follows the backslash";
			*out++ = *in;
		} else if (quote && *in == (quote == '$' ? '\'' : quote)) {
			quote = '\0';
		} else if (!quote && *in == '$' && in[1] == '\'') {
			quote = *in++;
		} else if (!quote && (*in == '"' || *in == '\'')) {
			quote = *in;
		} else {
			*out++ = *in;
		}
	}
	*from = *in ? in + 1 : in;
	/* Only now: without quotes, @out is @in, which has just been read. */
	*out = '\0';
	return quote ? "a quotation mark has no partner" : NULL;
}

/**
 * words_split - split a line into words
 * @line:	the line, which is overwritten: the words point into it
 * @words:	filled in: the words, then NULL
 * @max:	size of @words
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

/* Can it be printed as it is? Not if it has control characters or is not valid UTF-8. */
static bool is_printable(const char *word)
{
	size_t length;

	for (; *word; word += length) {
		length = utf8_length(word);
		if (!length || utf8_is_control(word))
			return false;
	}
	return true;
}

/* Prints a word between $' and ', with bytes other than printable ASCII in octal. */
static void print_bytes(const char *word)
{
	const unsigned char *c;

	fputs("$'", stdout);
	for (c = (const unsigned char *)word; *c; c++) {
		if (*c == '\'' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < ' ' || *c > '~')
			printf("\\%03o", *c);
		else
			putchar(*c);
	}
	putchar('\'');
}

/**
 * words_print - print a word, quoted so that words_split() or a shell reads it back
 * @word:	the word
 */
void words_print(const char *word)
{
	const char *c;

	for (c = word; isalnum((unsigned char)*c) || (*c && strchr("-,./:@_", *c)); c++)
		;
	if (*word && !*c) {
		fputs(word, stdout);
		return;
	}
	if (!is_printable(word)) {
		print_bytes(word);
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
