// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: what there is to say of a rule
 */
#include <stddef.h>

#include "twctl.h"

/**
 * rule_activity - what counts as activity
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
 * rule_action - how connections are closed
 * @rule:	the rule
 */
const char *rule_action(const struct twheel_rule *rule)
{
	return rule->flags & TWHEEL_WATCH_SHUTDOWN ? "shutdown" : "abort";
}

/**
 * rule_rate - how many connections may be closed in a second
 * @rule:	the rule
 */
uint32_t rule_rate(const struct twheel_rule *rule)
{
	return rule->rate ?: TWHEEL_RULE_RATE;
}

/**
 * rule_spec - what a rule was asked to do
 * @rule:	the rule
 *
 * Return: the rule without its number and what it has counted, in the one form of several that mean
 * the same: memcmp() finds equal rules.
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
	};

	if (!rule->idle || (rule->flags & activity) == activity)
		spec.flags &= ~activity;
	return spec;
}

/* Prints what stands between the parts of a line, but not before the first. */
static const char *between(bool *begun)
{
	const char *text = *begun ? " " : "";

	*begun = true;
	return text;
}

/**
 * rule_print_match - print what a rule asks for
 * @rule:	the rule
 */
void rule_print_match(const struct twheel_rule *rule)
{
	bool begun = false;

	if (rule->flags & TWHEEL_RULE_LOCAL_PORT)
		printf("%sport=%u", between(&begun), rule->local_port);
	if (rule->flags & TWHEEL_RULE_REMOTE_PORT)
		printf("%sremote-port=%u", between(&begun), rule->remote_port);
	if (rule->flags & TWHEEL_RULE_PID)
		printf("%spid=%d", between(&begun), rule->pid);
	if (rule->flags & TWHEEL_RULE_UID)
		printf("%suid=%u", between(&begun), rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP) {
		printf("%scgroup=", between(&begun));
		words_print(cgroup_name(rule->cgroup).path);
	}
}

/* A number that the rule need not have. */
static void json_match(struct json *json, const char *name, bool has, uint64_t value)
{
	if (has)
		json_number(json, name, value);
	else
		json_null(json, name);
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
}

/* What a rule counts. */
static const struct {
	const char	*name;
	size_t		offset;
} counters[] = {
	{ "watched", offsetof(struct twheel_rule, watched) },
	{ "matched", offsetof(struct twheel_rule, matched) },
	{ "closed", offsetof(struct twheel_rule, closed) },
	{ "spared", offsetof(struct twheel_rule, spared) },
	{ "delayed", offsetof(struct twheel_rule, delayed) },
	{ "missed", offsetof(struct twheel_rule, missed) },
};

/**
 * rule_counter - a number that a rule counts
 * @rule:	the rule
 * @i:		which, from 0
 * @name:	filled in: what it is called
 * @value:	filled in
 *
 * Return: false if there is none.
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
 * rule_json - begin an object that tells of a rule; it stays open
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
	json_matches(json, rule);
	json_number(json, "timeout_ns", rule->idle);
	json_number(json, "lifetime_ns", rule->lifetime);
	json_number(json, "spread_ns", rule->spread);
	json_string(json, "activity", rule_activity(rule));
	json_string(json, "action", rule_action(rule));
	json_bool(json, "dry_run", rule->flags & TWHEEL_RULE_DRY_RUN);
	json_number(json, "rate", rule_rate(rule));
	for (i = 0; rule_counter(rule, i, &name, &value); i++)
		json_number(json, name, value);
}
