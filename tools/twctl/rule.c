// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: properties of a rule, as text and as JSON
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"

/**
 * rule_label - get what to call a rule in messages
 * @rule:	the rule
 *
 * Return: its name, or its id if it has none.
 */
struct text rule_label(const struct twheel_rule *rule)
{
	struct text text;

	if (*rule->name)
		snprintf(text.s, sizeof(text.s), "%s", rule->name);
	else
		snprintf(text.s, sizeof(text.s), "%" PRIu32, rule->id);
	return text;
}

/**
 * rule_activity - get what counts as activity, as a word
 * @rule:	the rule
 */
const char *rule_activity(const struct twheel_rule *rule)
{
	switch (rule->flags & (TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT)) {
	case TWHEEL_WATCH_RECEIVED:
		return "received";
	case TWHEEL_WATCH_SENT:
		return "sent";
	}
	return "either";
}

/**
 * rule_action - get what is done with connections, as a word
 * @rule:	the rule
 */
const char *rule_action(const struct twheel_rule *rule)
{
	if (rule->flags & TWHEEL_RULE_KEEP)
		return "keep";
	return rule->flags & TWHEEL_WATCH_SHUTDOWN ? "shutdown" : "abort";
}

/**
 * rule_rate - get how many connections the rule may close per second
 * @rule:	the rule
 */
uint32_t rule_rate(const struct twheel_rule *rule)
{
	return rule->rate ?: TWHEEL_RULE_RATE;
}

/**
 * rule_spec - get the specification of a rule
 * @rule:	the rule
 *
 * Return: the rule without its id and its counters, in canonical form: equal rules compare equal
 * with memcmp(), except for their lists.
 */
struct twheel_rule rule_spec(const struct twheel_rule *rule)
{
	const uint32_t activity = TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT;
	struct twheel_rule spec = {
		.flags		= rule->flags,
		.rate		= rule_rate(rule),
		.local_port	= rule->local_port,
		.remote_port	= rule->remote_port,
		.uid		= rule->uid,
		.pid		= rule->pid,
		.cgroup		= rule->cgroup,
		.idle		= rule->idle,
		.lifetime	= rule->lifetime,
		.spread		= rule->spread,
		.stalled	= rule->stalled ?: TWHEEL_RULE_STALLED,
		.nr_matches	= rule->nr_matches,
	};

	if (!rule->idle || (rule->flags & activity) == activity)
		spec.flags &= ~activity;
	memcpy(spec.name, rule->name, sizeof(spec.name));
	return spec;
}

/**
 * rule_limits - get what can be changed of a rule
 * @rule:	the rule
 *
 * Return: what to pass to rules_try_set() to leave the rule as it is.
 */
struct twheel_rule rule_limits(const struct twheel_rule *rule)
{
	struct twheel_rule limits = {
		.id		= rule->id,
		.flags		= rule->flags & (TWHEEL_WATCH_ABORT | TWHEEL_WATCH_SHUTDOWN |
						 TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SENT |
						 TWHEEL_RULE_DRY_RUN | TWHEEL_RULE_KEEP),
		.idle		= rule->idle,
		.lifetime	= rule->lifetime,
		.spread		= rule->spread,
	};

	if (!(rule->flags & TWHEEL_RULE_KEEP)) {
		limits.rate = rule->rate;
		limits.stalled = rule->stalled;
	}
	memcpy(limits.name, rule->name, sizeof(limits.name));
	return limits;
}

/**
 * rule_same - do two rules have the same specification?
 * @a:		one rule
 * @b:		the other one
 */
bool rule_same(const struct twheel_rule *a, const struct twheel_rule *b)
{
	const struct twheel_rule left = rule_spec(a), right = rule_spec(b);

	return !memcmp(&left, &right, sizeof(left)) &&
	       (!a->nr_matches || !memcmp(rule_matches(a), rule_matches(b),
					  a->nr_matches * sizeof(struct twheel_match)));
}

/* Returns what separates the next part of a line from the one before, if any. */
static const char *next_separator(bool *begun)
{
	const char *text = *begun ? " " : "";

	*begun = true;
	return text;
}

/**
 * rule_print_match - print which connections a rule matches
 * @rule:	the rule
 */
void rule_print_match(const struct twheel_rule *rule)
{
	const struct rule_list *list;
	bool begun = false;
	char *text;

	for (list = rule_lists; list->option; list++) {
		text = rule_lists_text(rule, list);
		if (text)
			printf("%s%s=%s", next_separator(&begun), list->option, text);
		free(text);
	}
	if (rule->flags & TWHEEL_RULE_PID)
		printf("%spid=%d", next_separator(&begun), rule->pid);
	if (rule->flags & TWHEEL_RULE_UID)
		printf("%suid=%u", next_separator(&begun), rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP) {
		printf("%scgroup=", next_separator(&begun));
		words_print(cgroup_name(rule->cgroup).path);
	}
}

/* Writes a number, or null if the rule does not have it. */
static void json_match(struct json *json, const char *name, bool has, uint64_t value)
{
	if (has)
		json_number(json, name, value);
	else
		json_null(json, name);
}

/* Writes the rule's lists in the syntax of the options, without its single ports. */
static void json_lists(struct json *json, const struct twheel_rule *rule)
{
	const struct rule_list *list;
	struct text name;
	char *text;

	for (list = rule_lists; list->option; list++) {
		name = rule_list_name(list);
		text = rule_list_only(rule, list);
		if (text)
			json_string(json, name.s, text);
		else
			json_null(json, name.s);
		free(text);
	}
}

static void json_matches(struct json *json, const struct twheel_rule *rule)
{
	json_match(json, "local_port", rule->flags & TWHEEL_RULE_LOCAL_PORT, rule->local_port);
	json_match(json, "remote_port", rule->flags & TWHEEL_RULE_REMOTE_PORT,
		   rule->remote_port);
	json_match(json, "pid", rule->flags & TWHEEL_RULE_PID, rule->pid);
	json_match(json, "uid", rule->flags & TWHEEL_RULE_UID, rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP)
		json_string(json, "cgroup", cgroup_name(rule->cgroup).path);
	else
		json_null(json, "cgroup");
	json_lists(json, rule);
}

/* The counters of a rule. */
static const struct {
	const char	*name;
	size_t		offset;
} counters[] = {
	{ "watched", offsetof(struct twheel_rule, watched) },
	{ "matched", offsetof(struct twheel_rule, matched) },
	{ "closed", offsetof(struct twheel_rule, closed) },
	{ "would_close", offsetof(struct twheel_rule, would_close) },
	{ "spared", offsetof(struct twheel_rule, spared) },
	{ "delayed", offsetof(struct twheel_rule, delayed) },
	{ "missed", offsetof(struct twheel_rule, missed) },
	{ "waited", offsetof(struct twheel_rule, waited) },
	{ "overdue", offsetof(struct twheel_rule, overdue) },
	{ "untimed", offsetof(struct twheel_rule, untimed) },
};

/**
 * rule_counter - get a counter of a rule
 * @rule:	the rule
 * @i:		which counter, from 0
 * @name:	filled in: its name
 * @value:	filled in: its value
 *
 * Return: false if there is no counter @i.
 */
bool rule_counter(const struct twheel_rule *rule, size_t i, const char **name, uint64_t *value)
{
	if (i >= ARRAY_SIZE(counters))
		return false;
	*name = counters[i].name;
	*value = *(const __u64 *)((const char *)rule + counters[i].offset);
	return true;
}

/**
 * rule_json - begin an object that describes a rule; the caller ends it
 * @json:	the document
 * @rule:	the rule
 */
void rule_json(struct json *json, const struct twheel_rule *rule)
{
	const char *name;
	uint64_t value;
	size_t i;

	json_object(json, NULL);
	json_number(json, "id", rule->id);
	if (*rule->name)
		json_string(json, "name", rule->name);
	else
		json_null(json, "name");
	json_number(json, "place", rule->place);
	json_matches(json, rule);
	json_number(json, "timeout_ns", rule->idle);
	json_number(json, "lifetime_ns", rule->lifetime);
	json_number(json, "spread_ns", rule->spread);
	json_number(json, "stalled_ns", rule->stalled);
	json_string(json, "activity", rule_activity(rule));
	json_string(json, "action", rule_action(rule));
	json_bool(json, "dry_run", rule->flags & TWHEEL_RULE_DRY_RUN);
	json_number(json, "rate", rule_rate(rule));
	for (i = 0; rule_counter(rule, i, &name, &value); i++)
		json_number(json, name, value);
}
