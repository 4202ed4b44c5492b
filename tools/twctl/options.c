// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: parsing the options of commands
 *
 * This uses getopt_long(), but not its messages: ours are one line, and say what to do. Options
 * cannot be abbreviated: an abbreviation that is unique today may be ambiguous tomorrow.
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"
#include "utf8.h"

#define MAX_CHOICES	24

static const struct choice help_choice = { "help", 'h', NULL, "print this" };

/* Where the options come from: FILE:LINE, or NULL for the command line. */
static const char *place;

/**
 * options_set_place - set where the options that are read next come from
 * @where:	FILE:LINE, a string that must stay valid; or NULL for the command line
 */
void options_set_place(const char *where)
{
	place = where;
}

/**
 * text_clean - replace control characters and invalid UTF-8 by question marks
 * @text:	the text, which then stays on one line and cannot control a terminal
 */
void text_clean(char *text)
{
	size_t length;
	char *c;

	for (c = text; *c; c += length) {
		length = utf8_length(c);
		if (length && !utf8_is_control(c))
			continue;
		length = length ?: 1;
		memset(c, '?', length);
	}
}

/* The message may quote arbitrary bytes. */
static void __attribute__((noreturn)) complain_and_exit(int status, const char *prefix, char *text)
{
	text_clean(text);
	errx(status, "%s%s%s", prefix, *prefix ? ": " : "", text);
}

/**
 * usage - report what is wrong with the options, and exit
 * @command:	the command, or NULL
 * @format:	what is wrong
 *
 * The exit status is EXIT_USAGE for the command line, and EXIT_FAILED for a file.
 */
void usage(const struct command *command, const char *format, ...)
{
	char wrong[512], text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(wrong, sizeof(wrong), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s; see 'twctl%s%s --help'", wrong, command ? " " : "",
		 command ? command->name : "");
	if (place)
		complain_and_exit(EXIT_FAILED, place, text);
	complain_and_exit(EXIT_USAGE, command ? command->name : "", text);
}

/**
 * refuse - report why what the options ask for is impossible, and exit
 * @format:	why, and what to do
 */
void refuse(const char *format, ...)
{
	char text[PATH_MAX + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain_and_exit(EXIT_FAILED, place ?: "", text);
}

static const struct choice *find_choice(const struct command *command, int letter)
{
	const struct choice *choice;

	for (choice = command->choices; choice->name; choice++)
		if (choice->letter == letter)
			return choice;
	return letter == help_choice.letter ? &help_choice : NULL;
}

static void print_choice(const struct choice *choice)
{
	char name[32];

	snprintf(name, sizeof(name), "--%s%s%s", choice->name, choice->value ? " " : "",
		 choice->value ?: "");
	printf("  -%c, %-20s %s\n", choice->letter, name, choice->help);
}

static void print_help(const struct command *command)
{
	const struct choice *choice;
	const struct command *const *part;

	printf("usage: twctl %s [OPTION...]%s%s\n%s\n\n", command->name,
	       *command->operands ? " " : "", command->operands, command->summary);
	for (choice = command->choices; choice->name; choice++)
		print_choice(choice);
	print_choice(&help_choice);
	if (command->parts)
		putchar('\n');
	for (part = command->parts; part && *part; part++)
		printf("  %s%s%s\n      %s\n", (*part)->name, *(*part)->operands ? " " : "",
		       (*part)->operands, (*part)->summary);
}

/* Is @word the long option @name in full? getopt_long() accepts abbreviations, too. */
static bool is_whole(const char *word, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(word, "--", 2) && !strncmp(word + 2, name, length) &&
	       (!word[2 + length] || word[2 + length] == '=');
}

static void __attribute__((noreturn)) unknown_option(const struct command *command,
						     const char *word)
{
	usage(command, "there is no option '%s'", word);
}

static void report_bad_option(const struct command *command, int problem, char **argv)
{
	const struct choice *choice = find_choice(command, optopt);
	char letter[3] = { '-', optopt, 0 };
	const char *word = argv[optind - 1];

	/* An abbreviation: report the word as it was given. */
	if (choice && !strncmp(word, "--", 2) && !is_whole(word, choice->name))
		unknown_option(command, word);
	if (problem == ':')
		usage(command, "--%s needs a value: %s", choice->name, choice->value);
	if (choice)
		usage(command, "--%s takes no value", choice->name);
	unknown_option(command, optopt ? letter : word);
}

/* The word with the option that was read last; if its value is a word of its own, skip that. */
static const char *last_option(char **argv)
{
	return argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
}

/**
 * next_option - read the next option, or exit
 * @command:	the command
 * @argc:	as passed to its @run
 * @argv:	likewise
 *
 * Return: the option's letter, with its value in optarg; or -1 if there are no more, with the
 * operands in @argv from optind on.
 */
int next_option(const struct command *command, int argc, char **argv)
{
	struct option longs[MAX_CHOICES + 2] = { 0 };
	char shorts[2 * MAX_CHOICES + 3] = ":", *s = shorts + 1;
	const struct choice *choice;
	int letter, found = -1;
	size_t i = 0;

	for (choice = command->choices; choice->name && i < MAX_CHOICES; choice++) {
		longs[i++] = (struct option) { choice->name, !!choice->value, NULL,
					       choice->letter };
		*s++ = choice->letter;
		if (choice->value)
			*s++ = ':';
	}
	longs[i] = (struct option) { help_choice.name, 0, NULL, help_choice.letter };
	*s = help_choice.letter;
	opterr = 0;
	letter = getopt_long(argc, argv, shorts, longs, &found);
	if (letter == '?' || letter == ':')
		report_bad_option(command, letter, argv);
	if (found >= 0 && !is_whole(last_option(argv), longs[found].name))
		unknown_option(command, last_option(argv));
	if (letter != help_choice.letter)
		return letter;
	if (place)
		refuse("--help has no meaning in a file; remove it");
	print_help(command);
	exit(EXIT_SUCCESS);
}

/**
 * no_operands - exit if an operand is left
 * @command:	the command
 * @argc:	as passed to its @run
 * @argv:	likewise
 */
void no_operands(const struct command *command, int argc, char **argv)
{
	if (optind < argc)
		usage(command, "'%s' is too much", argv[optind]);
}

/**
 * parse_count - parse a number from 1 to @max, or exit
 * @command:	the command
 * @what:	what the number is, for the message
 * @text:	the text to parse
 * @max:	the largest valid number
 */
uint64_t parse_count(const struct command *command, const char *what, const char *text,
		     uint64_t max)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || !number || number > max)
		usage(command, "%s '%s' is not a number from 1 to %llu", what, text,
		      (unsigned long long)max);
	return number;
}

/**
 * parse_time - parse a duration, or exit
 * @command:	the command
 * @what:	what the duration is, for the message
 * @text:	the text to parse
 *
 * Return: nanoseconds.
 */
uint64_t parse_time(const struct command *command, const char *what, const char *text)
{
	uint64_t ns;

	if (!duration_parse(text, &ns))
		usage(command, "%s '%s' is not one like 300ms, 1.5s, 2m, 1h or 10", what, text);
	return ns;
}
