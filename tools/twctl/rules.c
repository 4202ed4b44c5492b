// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: the device's rules for idle connections
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "twctl.h"

#define RECORDS		1024

static const char *explain_error(int error)
{
	switch (error) {
	case ENOTTY:
	case EOPNOTSUPP:
	case E2BIG:
		return "this module cannot do that; use one of twctl's own version";
	case EINVAL:
		return "the timeout and its spread are longer than 2^31 jiffies; give shorter ones";
	case EEXIST:
		return "another rule has this name; see 'twctl idle list'";
	case EPERM:
		return "this takes CAP_NET_ADMIN in the network namespace; run this as root";
	case ESRCH:
		return "there is no such process; see ps, or pidof NAME";
	case ENOENT:
		return "there is no such cgroup any more; see /sys/fs/cgroup";
	case ENOSPC:
		return "there are 256 rules, or 1024 ports, prefixes and families; remove some";
	}
	return strerror(error);
}

/* explain_error() for a rule with limits. */
static const char *explain_limits_error(const struct twheel_rule *rule, int error)
{
	/* The minimum is TWHEEL_IDLE_MIN or two jiffies, whichever is longer. */
	if (error == EINVAL && rule->idle && rule->idle < 2 * TWHEEL_IDLE_MIN)
		return "the timeout is shorter than 10 ms, or than two jiffies; give a longer one";
	return explain_error(error);
}

static void __attribute__((noreturn)) exit_no_rule(uint32_t id)
{
	errx(EXIT_FAILED, "there is no rule %" PRIu32 "; 'twctl idle list' shows those there are",
	     id);
}

/**
 * rules_try_add - add a rule
 * @fd:		the device
 * @rule:	the rule; its id is filled in
 *
 * Return: NULL; or why it cannot be added, with errno set.
 */
const char *rules_try_add(int fd, struct twheel_rule *rule)
{
	if (!ioctl(fd, TWHEEL_IOC_RULE_ADD, rule))
		return NULL;
	return explain_limits_error(rule, errno);
}

/**
 * rules_try_set - change a rule
 * @fd:		the device
 * @rule:	its id, and its new limits; the rest is filled in
 *
 * Return: NULL; or why it cannot be changed, with errno set.
 */
const char *rules_try_set(int fd, struct twheel_rule *rule)
{
	if (!ioctl(fd, TWHEEL_IOC_RULE_SET, rule))
		return NULL;
	if (errno == ENOENT)
		return "it is gone; see 'twctl idle list'";
	return explain_limits_error(rule, errno);
}

/**
 * rules_add - add a rule, or exit
 * @fd:		the device
 * @rule:	the rule; its id is filled in
 */
void rules_add(int fd, struct twheel_rule *rule)
{
	const char *why = rules_try_add(fd, rule);

	if (why)
		errx(EXIT_FAILED, "%s: cannot add the rule: %s", DEVICE, why);
}

/**
 * rules_try_remove - remove a rule
 * @fd:		the device
 * @id:		its id
 *
 * Return: NULL; or why it cannot be removed, with errno set.
 */
const char *rules_try_remove(int fd, uint32_t id)
{
	struct twheel_rule rule = { .id = id };

	return ioctl(fd, TWHEEL_IOC_RULE_REMOVE, &rule) ? explain_error(errno) : NULL;
}

static void __attribute__((noreturn)) exit_cannot_remove(uint32_t id, const char *why)
{
	errx(EXIT_FAILED, "%s: cannot remove rule %" PRIu32 ": %s", DEVICE, id, why);
}

/**
 * rules_remove - remove a rule, or exit
 * @fd:		the device
 * @id:		its id
 */
void rules_remove(int fd, uint32_t id)
{
	const char *why = rules_try_remove(fd, id);

	if (why && errno == ENOENT)
		exit_no_rule(id);
	if (why)
		exit_cannot_remove(id, why);
}

/*
 * Finds the next rule: @rule has the id of the one before it, or 0, and is filled in. Its lists are
 * at @matches, to be freed by the caller. Returns NULL, with an id of 0 if there is no next rule;
 * or why the rules cannot be listed.
 */
static const char *try_next(int fd, struct twheel_rule *rule)
{
	struct twheel_match *matches = calloc(TWHEEL_RULE_MATCHES, sizeof(*matches));
	int error;

	if (!matches)
		return strerror(ENOMEM);
	*rule = (struct twheel_rule) {
		.id		= rule->id,
		.matches	= (uintptr_t)matches,
		.nr_matches	= TWHEEL_RULE_MATCHES,
	};
	if (!ioctl(fd, TWHEEL_IOC_RULE_NEXT, rule)) {
		if (rule->nr_matches)
			return NULL;
		rule->matches = 0;
		free(matches);
		return NULL;
	}
	error = errno;
	free(matches);
	rule->id = 0;
	return error == ENOENT ? NULL : explain_error(error);
}

static int compare_places(const void *left, const void *right)
{
	const struct twheel_rule *a = left, *b = right;

	return a->place < b->place ? -1 : a->place > b->place;
}

/**
 * rules_try_gather - get all rules
 * @fd:		the device
 * @rules:	initially zeroed; what is in it is freed, and replaced by the rules in the order in
 *		which they apply
 *
 * Return: NULL; or why they cannot be listed, with @rules empty.
 */
const char *rules_try_gather(int fd, struct rules *rules)
{
	struct twheel_rule rule = { 0 }, *all;
	const char *why;

	rules_free(rules);
	while (!(why = try_next(fd, &rule)) && rule.id) {
		all = reallocarray(rules->rule, rules->nr + 1, sizeof(rule));
		if (!all) {
			free(rule_matches(&rule));
			why = strerror(ENOMEM);
			break;
		}
		rules->rule = all;
		rules->rule[rules->nr++] = rule;
	}
	if (why)
		rules_free(rules);
	if (rules->nr)
		qsort(rules->rule, rules->nr, sizeof(rule), compare_places);
	return why;
}

/**
 * rules_gather - get all rules, or exit
 * @fd:		the device
 * @rules:	as for rules_try_gather()
 */
void rules_gather(int fd, struct rules *rules)
{
	const char *why = rules_try_gather(fd, rules);

	if (why)
		errx(EXIT_FAILED, "%s: cannot list the rules: %s", DEVICE, why);
}

/**
 * rules_free - free the rules that rules_gather() got
 * @rules:	the rules; empty afterwards
 */
void rules_free(struct rules *rules)
{
	while (rules->nr)
		free(rule_matches(&rules->rule[--rules->nr]));
	free(rules->rule);
	rules->rule = NULL;
}

/**
 * rules_find - find a rule by its name or id
 * @rules:	the rules
 * @name:	the name, or the id in decimal
 *
 * Return: the rule, or NULL.
 */
const struct twheel_rule *rules_find(const struct rules *rules, const char *name)
{
	unsigned long id = 0;
	char *end;
	size_t i;

	if (isdigit((unsigned char)*name)) {
		id = strtoul(name, &end, 10);
		if (*end)
			id = 0;
	}
	for (i = 0; i < rules->nr; i++)
		if (id ? rules->rule[i].id == id :
			 *name && !strcmp(rules->rule[i].name, name))
			return &rules->rule[i];
	return NULL;
}

/**
 * rules_require - find a rule by its name or id, or exit
 * @rules:	the rules
 * @name:	as for rules_find()
 */
const struct twheel_rule *rules_require(const struct rules *rules, const char *name)
{
	const struct twheel_rule *rule = rules_find(rules, name);

	if (!rule)
		errx(EXIT_FAILED, "there is no rule '%s'; 'twctl idle list' shows those there are",
		     name);
	return rule;
}

/**
 * rules_remove_all - remove all rules, or exit
 * @fd:		the device
 *
 * It is not an error if somebody else has removed one meanwhile.
 */
void rules_remove_all(int fd)
{
	struct rules rules = { 0 };
	const char *why;
	size_t i;

	rules_gather(fd, &rules);
	for (i = 0; i < rules.nr; i++) {
		why = rules_try_remove(fd, rules.rule[i].id);
		if (why && errno != ENOENT)
			exit_cannot_remove(rules.rule[i].id, why);
	}
	rules_free(&rules);
}

/**
 * rules_connections - get the connections that a rule watches, or exit
 * @fd:		the device
 * @id:		the rule's id
 * @nr:		filled in: their number
 *
 * Return: an array, to be freed by the caller.
 */
struct twheel_connection *rules_connections(int fd, uint32_t id, size_t *nr)
{
	struct twheel_connection *all = NULL;
	struct twheel_connections ask = {
		.nr_records = RECORDS,
		.record_size = sizeof(*all),
		.id = id,
	};
	int got;

	*nr = 0;
	do {
		all = realloc(all, (*nr + RECORDS) * sizeof(*all));
		if (!all)
			errx(EXIT_FAILED, "out of memory");
		ask.records = (uintptr_t)(all + *nr);
		got = ioctl(fd, TWHEEL_IOC_RULE_CONNECTIONS, &ask);
		if (got < 0 && errno == ENOENT)
			exit_no_rule(id);
		if (got < 0)
			errx(EXIT_FAILED, "%s: cannot list the connections: %s", DEVICE,
			     explain_error(errno));
		*nr += got;
	} while (got);
	return all;
}
