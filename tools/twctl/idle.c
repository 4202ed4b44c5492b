// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle: a rule that closes idle connections
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"

#define MAX_PORT	65535

/**
 * struct word - a word of the command line
 * @word:	the word
 * @flags:	of the rule, that it stands for
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

static const struct choice choices[] = {
	{ "port", 'p', "PORT", "connections with this port of this machine" },
	{ "remote-port", 'r', "PORT", "with this port of the other one" },
	{ "pid", 'P', "PID", "that this process begins, or accepts" },
	{ "uid", 'u', "USER", "whose sockets are this user's, by name or number" },
	{ "cgroup", 'g', "PATH", "of a cgroup, by its path below /sys/fs/cgroup" },
	{ "timeout", 't', "DURATION", "close them after so long without data" },
	{ "lifetime", 'l', "DURATION", "close them after so long, idle or not" },
	{ "activity", 'a', "WHAT", "what counts: data received, sent, or either (this one)" },
	{ "action", 'A', "ACTION", "how: abort (this one), or shutdown" },
	{ "rate", 'R', "N", "close up to N a second (1000)" },
	{ "spread", 's', "DURATION", "each later by a random time of up to DURATION" },
	{ "dry-run", 'd', NULL, "only count what would be closed" },
	CHOICE_JSON,
	{ 0 },
};

static uint32_t parse_word(const char *what, const struct word *words, const char *text)
{
	const struct word *word;

	for (word = words; word->word; word++)
		if (!strcmp(word->word, text))
			return word->flags;
	if (words == actions)
		usage(&idle_command, "%s '%s' is not abort or shutdown", what, text);
	usage(&idle_command, "%s '%s' is not received, sent or either", what, text);
}

/* The users of this machine, without asking others who they may be. */
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

static uint32_t parse_user(const char *text)
{
	unsigned long long number;
	uint32_t uid;
	char *end;

	if (find_user(text, &uid))
		return uid;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || number >= UINT32_MAX)
		usage(&idle_command, "--uid '%s' is not a number, nor in /etc/passwd", text);
	return number;
}

static uint32_t parse_rate(const char *text)
{
	char number[32];
	size_t length = strlen(text);

	/* "1000/s" says the same. */
	if (length > 2 && length < sizeof(number) && !strcmp(text + length - 2, "/s"))
		length -= 2;
	snprintf(number, sizeof(number), "%.*s", (int)length, text);
	return parse_count(&idle_command, "--rate", number, UINT32_MAX);
}

static uint64_t parse_limit(const char *what, const char *text)
{
	uint64_t ns = parse_time(&idle_command, what, text);

	if (!ns)
		usage(&idle_command, "%s is 0", what);
	return ns;
}

/* Is it an option that says which connections? */
static bool match_option(struct twheel_rule *rule, int letter, const char *value)
{
	switch (letter) {
	case 'p':
		rule->local_port = parse_count(&idle_command, "--port", value, MAX_PORT);
		rule->flags |= TWHEEL_RULE_LOCAL_PORT;
		return true;
	case 'r':
		rule->remote_port = parse_count(&idle_command, "--remote-port", value, MAX_PORT);
		rule->flags |= TWHEEL_RULE_REMOTE_PORT;
		return true;
	case 'P':
		rule->pid = parse_count(&idle_command, "--pid", value, INT_MAX);
		rule->flags |= TWHEEL_RULE_PID;
		return true;
	case 'u':
		rule->uid = parse_user(value);
		rule->flags |= TWHEEL_RULE_UID;
		return true;
	case 'g':
		rule->cgroup = cgroup_find(value);
		rule->flags |= TWHEEL_RULE_CGROUP;
		return true;
	}
	return false;
}

/* Is it one that says when, and what to do? */
static bool limit_option(struct twheel_rule *rule, int letter, const char *value)
{
	switch (letter) {
	case 't':
		rule->idle = parse_limit("--timeout", value);
		return true;
	case 'l':
		rule->lifetime = parse_limit("--lifetime", value);
		return true;
	case 's':
		rule->spread = parse_time(&idle_command, "--spread", value);
		return true;
	case 'R':
		rule->rate = parse_rate(value);
		return true;
	case 'd':
		rule->flags |= TWHEEL_RULE_DRY_RUN;
		return true;
	}
	return false;
}

/**
 * idle_options - read a rule's options, or exit
 * @argc:	number of words in @argv
 * @argv:	the options, after a word that is not looked at
 * @rule:	begins as zeros; filled in
 *
 * Return: whether JSON is asked for.
 */
bool idle_options(int argc, char **argv, struct twheel_rule *rule)
{
	uint32_t activity = 0, action = TWHEEL_WATCH_ABORT, match;
	bool as_json = false;
	int letter;

	while ((letter = next_option(&idle_command, argc, argv)) >= 0) {
		if (match_option(rule, letter, optarg) || limit_option(rule, letter, optarg))
			continue;
		if (letter == 'a')
			activity = parse_word("--activity", activities, optarg);
		else if (letter == 'A')
			action = parse_word("--action", actions, optarg);
		else
			as_json = true;
	}
	no_operands(&idle_command, argc, argv);
	match = rule->flags & ~TWHEEL_RULE_DRY_RUN;
	if (!match)
		usage(&idle_command, "which connections? %s",
		      "--port, --remote-port, --pid, --uid or --cgroup");
	if (!rule->idle && !rule->lifetime)
		usage(&idle_command, "give a --timeout, or a --lifetime, or both");
	if (activity && !rule->idle)
		usage(&idle_command, "--activity needs a --timeout");
	rule->flags |= activity | action;
	return as_json;
}

static int run(int argc, char **argv)
{
	struct json json = { .out = stdout };
	struct twheel_rule rule = { 0 };
	bool as_json = idle_options(argc, argv, &rule);

	rules_add(device_open(), &rule);
	if (!as_json) {
		printf("rule %" PRIu32 "\n", rule.id);
		return 0;
	}
	json_object(&json, NULL);
	json_number(&json, "id", rule.id);
	json_end(&json);
	return 0;
}

static const struct command *const parts[] = {
	&idle_list_command, &idle_show_command, &idle_watch_command, &idle_remove_command,
	&idle_load_command, &idle_save_command, NULL,
};

const struct command idle_command = {
	.name		= "idle",
	.operands	= "",
	.summary	= "close idle TCP connections, of whatever program",
	.choices	= choices,
	.parts		= parts,
	.run		= run,
};
