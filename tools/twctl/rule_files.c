// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: reading files with rules
 *
 * A line consists of options of 'twctl idle'. rule_options.c parses both.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "twctl.h"

#define MAX_WORDS	64

static void *check_memory(void *memory)
{
	if (!memory)
		errx(EXIT_FAILED, "out of memory");
	return memory;
}

static void append_rule(struct wanted_rules *all, const struct twheel_rule *rule, const char *place)
{
	size_t size = (all->nr + 1) * sizeof(*all->wanted);
	struct wanted *wanted;

	all->wanted = check_memory(realloc(all->wanted, size));
	wanted = &all->wanted[all->nr++];
	wanted->rule = *rule;
	wanted->place = check_memory(strdup(place));
}

static void read_line(struct wanted_rules *all, char *line, const char *place)
{
	/* getopt_long() expects the program's name first. */
	char *words[MAX_WORDS + 1] = { "idle" };
	struct rule_options options = { .command = &idle_command };
	const char *why;
	size_t nr;

	why = words_split(line, words + 1, MAX_WORDS, &nr);
	if (why)
		refuse("%s; quote as in a shell", why);
	if (!nr)
		return;
	/* glibc: reset getopt_long() before it parses another argv. */
	optind = 0;
	rule_options_read(&options, nr + 1, words);
	no_operands(&idle_command, nr + 1, words);
	rule_options_check(&options);
	if (rule_options_has(&options, 'j'))
		refuse("--json has no meaning in a file; remove it");
	if (options.before)
		refuse("--before has no meaning in a file; rules are in the order of its lines");
	if (options.rule.flags & TWHEEL_RULE_PID)
		refuse("--pid is not for files: processes end at a reboot; use --cgroup or --uid");
	append_rule(all, &options.rule, place);
}

static void read_stream(struct wanted_rules *all, FILE *file, const char *name)
{
	static const char mark[] = "\xef\xbb\xbf";
	char place[PATH_MAX + 32], *line = NULL;
	unsigned long number = 0;
	size_t size = 0;
	ssize_t length;

	while (errno = 0, (length = getline(&line, &size, file)) >= 0) {
		snprintf(place, sizeof(place), "%s:%lu", name, ++number);
		text_clean(place);
		options_set_place(place);
		if (strlen(line) != (size_t)length)
			refuse("there is a zero byte; this is not a text file");
		if (length && line[length - 1] == '\n')
			line[length - 1] = '\0';
		/* Lines may end as on other systems, but the end of one must not go unnoticed. */
		if (strchr(line, '\r') && strchr(line, '\r')[1])
			refuse("there is a carriage return within the line; end lines as on Unix");
		/* Some editors put a byte order mark in front. */
		read_line(all, line + (number == 1 && !strncmp(line, mark, 3) ? 3 : 0), place);
	}
	options_set_place(NULL);
	if (!feof(file))
		refuse("%s: cannot be read: %s", name, strerror(errno));
	free(line);
}

static void read_file(struct wanted_rules *all, const char *name)
{
	FILE *file = fopen(name, "re");

	if (!file)
		refuse("%s: %s; give a file, a directory, or - for standard input", name,
		       strerror(errno));
	read_stream(all, file, name);
	fclose(file);
}

static int is_conf(const struct dirent *entry)
{
	return !fnmatch("*.conf", entry->d_name, FNM_PERIOD);
}

/* Compares bytes: the order must not depend on the locale. */
static int compare_names(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void read_directory(struct wanted_rules *all, const char *directory)
{
	int nr, i, length = strlen(directory);
	struct dirent **entries;
	struct stat st;
	char *name;

	nr = scandir(directory, &entries, is_conf, compare_names);
	if (nr < 0)
		refuse("%s: cannot be read: %s", directory, strerror(errno));
	all->empty = nr ? NULL : directory;
	while (length > 1 && directory[length - 1] == '/')
		length--;
	for (i = 0; i < nr; i++) {
		if (asprintf(&name, "%.*s/%s", length, directory, entries[i]->d_name) < 0)
			errx(EXIT_FAILED, "out of memory");
		/* A FIFO may have no end; and a link to /dev/null masks a file of this name. */
		if (!stat(name, &st) && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
			refuse("%s is no regular file; remove it, or give it another name", name);
		read_file(all, name);
		free(name);
		free(entries[i]);
	}
	free(entries);
}

/* Warns of a rule that will never apply: the kernel accepts it, and so idle save may print it. */
static void warn_of_rule(const struct wanted_rules *all, const struct wanted *rule)
{
	const struct wanted *before;

	if (!rule_families(&rule->rule))
		warnx("%s: this rule will never apply: %s", rule->place, NO_FAMILY);
	for (before = all->wanted; before < rule; before++) {
		if (!rule_covers(&before->rule, &rule->rule))
			continue;
		warnx("%s: this rule will never apply: %s comes before it and takes all",
		      rule->place, before->place);
		return;
	}
}

static void check_rules(const struct wanted_rules *all)
{
	const struct wanted *wanted = all->wanted;
	size_t i, j;

	for (i = 0; i < all->nr; i++) {
		options_set_place(wanted[i].place);
		for (j = 0; *wanted[i].rule.name && j < i; j++)
			if (!strcmp(wanted[j].rule.name, wanted[i].rule.name))
				refuse("%s has the name %s, too; give each a name of its own",
				       wanted[j].place, wanted[j].rule.name);
	}
	options_set_place(NULL);
	for (i = 0; i < all->nr; i++)
		warn_of_rule(all, &wanted[i]);
}

/**
 * rule_files_read - read the rules in a file or a directory, or exit
 * @path:	a file; a directory, whose *.conf are read in order of name; or "-" for stdin
 * @all:	zeroed by the caller; filled in: the rules, in order
 *
 * If this exits, nothing has been changed: it does not touch the device.
 */
void rule_files_read(const char *path, struct wanted_rules *all)
{
	struct stat st;

	if (!strcmp(path, "-"))
		read_stream(all, stdin, "standard input");
	else if (!stat(path, &st) && S_ISDIR(st.st_mode))
		read_directory(all, path);
	else
		read_file(all, path);
	check_rules(all);
}
