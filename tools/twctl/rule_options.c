// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the options that specify a rule
 *
 * They are used by 'twctl idle', 'idle add' and lines of files, and, except for what cannot be
 * changed, by 'idle set'.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

/* "none" for --stalled: 1 ns, so no peer is ever given time. */
#define NO_TIME		1

/**
 * struct word - a word that stands for flags of a rule
 * @word:	the word
 * @flags:	the flags
 */
struct word {
	const char	*word;
	uint32_t	flags;
};

static const struct word activities[] = {
	{ "received", TWHEEL_WATCH_RECEIVED },
	{ "sent", TWHEEL_WATCH_SENT },
	{ "either", 0 },
	{ 0 },
};

static const struct word actions[] = {
	{ "abort", TWHEEL_WATCH_ABORT },
	{ "shutdown", TWHEEL_WATCH_SHUTDOWN },
	{ 0 },
};

const struct choice rule_choices[] = {
	{ "name", 'N', "NAME", "what the rule is called" },
	{ "before", 'b', "RULE", "it comes before this one, and not last" },
	{ "port", 'p', "PORTS", "connections with these ports of this machine: 80,8000-8099" },
	{ "not-port", 'x', "PORTS", "without these" },
	{ "remote-port", 'r', "PORTS", "with these ports of the other one" },
	{ "not-remote-port", 'X', "PORTS", "without these" },
	{ "remote", 'm', "PREFIXES", "with these addresses of the other one: 10.0.0.0/8,::1" },
	{ "not-remote", 'M', "PREFIXES", "without these" },
	{ "family", 'f', "FAMILY", "inet or inet6" },
	{ "not-family", 'F', "FAMILY", "without this one" },
	{ "pid", 'P', "PID", "that this process begins, or accepts" },
	{ "uid", 'u', "USER", "whose sockets are this user's, by name or number" },
	{ "cgroup", 'g', "PATH", "of a cgroup, by its path below /sys/fs/cgroup" },
	{ "timeout", 't', "DURATION", "close them after so long without data" },
	{ "lifetime", 'l', "DURATION", "close them after so long, idle or not" },
	{ "stalled", 'S', "DURATION", "but let a peer have so long for data on its way (60s)" },
	{ "activity", 'a', "WHAT", "what counts: data received, sent, or either (this one)" },
	{ "action", 'A', "ACTION", "how: abort (this one), or shutdown" },
	{ "keep", 'k', NULL, "do not close them: they are exceptions" },
	{ "rate", 'R', "N", "close up to N a second (1000)" },
	{ "spread", 's', "DURATION", "each later by a random time of up to DURATION" },
	{ "dry-run", 'd', NULL, "only count what would be closed" },
	CHOICE_JSON,
	{ 0 },
};

static uint32_t parse_word(const struct command *command, const char *what,
			   const struct word *words, const char *text)
{
	const struct word *word;

	for (word = words; word->word; word++)
		if (!strcmp(word->word, text))
			return word->flags;
	if (words == actions)
		usage(command, "%s '%s' is not abort or shutdown", what, text);
	usage(command, "%s '%s' is not received, sent or either", what, text);
}

/* Looks up a local user; a name service such as LDAP is not consulted. */
static bool find_user(const char *name, uint32_t *uid)
{
	FILE *file = fopen("/etc/passwd", "r");
	struct passwd *user = NULL;

	while (file && (user = fgetpwent(file)) && strcmp(user->pw_name, name))
		;
	if (user)
		*uid = user->pw_uid;
	if (file)
		fclose(file);
	return user;
}

static uint32_t parse_user(const struct command *command, const char *text)
{
	unsigned long long number;
	uint32_t uid;
	char *end;

	if (find_user(text, &uid))
		return uid;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || number >= UINT32_MAX)
		usage(command, "--uid '%s' is not a number, nor in /etc/passwd", text);
	return number;
}

static uint32_t parse_rate(const struct command *command, const char *text)
{
	char number[32];
	size_t length = strlen(text);

	/* "1000/s" is the same as "1000". */
	if (length > 2 && length < sizeof(number) && !strcmp(text + length - 2, "/s"))
		length -= 2;
	snprintf(number, sizeof(number), "%.*s", (int)length, text);
	return parse_count(command, "--rate", number, UINT32_MAX);
}

/* Parses a limit; 'idle set' can also remove one from an existing rule. */
static uint64_t parse_limit(const struct command *command, const char *what, const char *text)
{
	uint64_t ns;

	if (command == &idle_set_command && !strcmp(text, "none"))
		return 0;
	ns = parse_time(command, what, text);
	if (!ns)
		usage(command, "%s is 0", what);
	return ns;
}

static uint64_t parse_stalled(const struct command *command, const char *text)
{
	uint64_t ns;

	if (!strcmp(text, "none"))
		return NO_TIME;
	ns = parse_time(command, "--stalled", text);
	if (!ns)
		usage(command, "--stalled is 0; give 'none' to spare nobody");
	return ns;
}

/**
 * rule_name_parse - check a rule's name and store it, or exit
 * @command:	the command
 * @text:	the name
 * @name:	filled in
 */
void rule_name_parse(const struct command *command, const char *text, char *name)
{
	const char *c = text;

	if (command == &idle_set_command && !*text) {
		memset(name, 0, TWHEEL_RULE_NAME);
		return;
	}
	while (isascii(*c) && (isalpha(*c) || (c > text && *c && strchr("0123456789-_.", *c))))
		c++;
	if (*c || c == text)
		usage(command, "'%s' is no name: a letter, and then letters, digits, -, _ or .",
		      text);
	if (strlen(text) >= TWHEEL_RULE_NAME || !strcmp(text, "all"))
		usage(command, "'%s' cannot be a name: use one of up to %d letters, and not 'all'",
		      text, TWHEEL_RULE_NAME - 1);
	memset(name, 0, TWHEEL_RULE_NAME);
	memcpy(name, text, strlen(text));
}

/* Handles an option that says which connections match. Returns false if it is another one. */
static bool parse_match_option(const struct command *command, struct twheel_rule *rule, int letter,
			       const char *value)
{
	const struct rule_list *list;
	const struct choice *choice;

	switch (letter) {
	case 'P':
		rule->pid = parse_count(command, "--pid", value, INT_MAX);
		rule->flags |= TWHEEL_RULE_PID;
		return true;
	case 'u':
		rule->uid = parse_user(command, value);
		rule->flags |= TWHEEL_RULE_UID;
		return true;
	case 'g':
		rule->cgroup = cgroup_find(value);
		rule->flags |= TWHEEL_RULE_CGROUP;
		return true;
	}
	for (choice = rule_choices; choice->letter != letter; choice++)
		if (!choice->name)
			return false;
	for (list = rule_lists; list->option; list++)
		if (!strcmp(list->option, choice->name))
			break;
	if (list->option)
		rule_lists_parse(command, rule, list, value);
	return list->option;
}

/* Handles an option that says when and how to close them. Returns false if it is another one. */
static bool parse_limit_option(const struct command *command, struct twheel_rule *rule, int letter,
			       const char *value)
{
	switch (letter) {
	case 't':
		rule->idle = parse_limit(command, "--timeout", value);
		return true;
	case 'l':
		rule->lifetime = parse_limit(command, "--lifetime", value);
		return true;
	case 'S':
		rule->stalled = parse_stalled(command, value);
		return true;
	case 's':
		rule->spread = parse_time(command, "--spread", value);
		return true;
	case 'R':
		rule->rate = parse_rate(command, value);
		return true;
	case 'd':
		rule->flags |= TWHEEL_RULE_DRY_RUN;
		return true;
	case 'k':
		rule->flags |= TWHEEL_RULE_KEEP;
		return true;
	}
	return false;
}

static void set_flags(struct twheel_rule *rule, uint32_t mask, uint32_t flags)
{
	rule->flags = (rule->flags & ~mask) | flags;
}

/**
 * rule_options_read - parse the options of a rule, or exit
 * @options:	@command is set, and @rule has the defaults; filled in
 * @argc:	number of words in @argv
 * @argv:	the options; the first word is ignored
 *
 * Operands are left to the caller.
 */
void rule_options_read(struct rule_options *options, int argc, char **argv)
{
	const struct command *command = options->command;
	struct twheel_rule *rule = &options->rule;
	int letter;

	while ((letter = next_option(command, argc, argv)) >= 0) {
		options->given |= 1ULL << (letter - 'A');
		if (parse_match_option(command, rule, letter, optarg) ||
		    parse_limit_option(command, rule, letter, optarg))
			continue;
		if (letter == 'a')
			set_flags(rule, TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT,
				  parse_word(command, "--activity", activities, optarg));
		else if (letter == 'A')
			set_flags(rule, TWHEEL_WATCH_ABORT | TWHEEL_WATCH_SHUTDOWN,
				  parse_word(command, "--action", actions, optarg));
		else if (letter == 'N')
			rule_name_parse(command, optarg, rule->name);
		else if (letter == 'b')
			options->before = optarg;
	}
	rule_lists_finish(rule);
}

/**
 * rule_options_has - was an option given?
 * @options:	the options
 * @letter:	the option's letter
 */
bool rule_options_has(const struct rule_options *options, int letter)
{
	return options->given >> (letter - 'A') & 1;
}

/**
 * rule_options_check_keep - exit if an option was given that excludes --keep
 * @options:	the options
 */
void rule_options_check_keep(const struct rule_options *options)
{
	const char *letter, not[] = "tlSaARsdL";

	for (letter = not; *letter; letter++)
		if (rule_options_has(options, *letter))
			usage(options->command, "with --keep nothing is closed; leave out %s",
			      "what says when or how");
}

/**
 * rule_options_check - exit unless the options specify a complete rule
 * @options:	the options; defaults are filled in
 */
void rule_options_check(struct rule_options *options)
{
	const uint32_t asks = TWHEEL_RULE_LOCAL_PORT | TWHEEL_RULE_REMOTE_PORT |
			      TWHEEL_RULE_PID | TWHEEL_RULE_UID | TWHEEL_RULE_CGROUP;
	struct twheel_rule *rule = &options->rule;

	if (!(rule->flags & asks) && !rule->nr_matches)
		usage(options->command, "which connections? %s",
		      "--port, --remote-port, --remote, --family, --pid, --uid or --cgroup");
	if (rule->flags & TWHEEL_RULE_KEEP) {
		rule_options_check_keep(options);
		return;
	}
	if (!rule->idle && !rule->lifetime)
		usage(options->command, "give a --timeout, or a --lifetime, or both, or --keep");
	if (rule_options_has(options, 'a') && !rule->idle)
		usage(options->command, "--activity needs a --timeout");
	if (!(rule->flags & (TWHEEL_WATCH_ABORT | TWHEEL_WATCH_SHUTDOWN)))
		rule->flags |= TWHEEL_WATCH_ABORT;
}
