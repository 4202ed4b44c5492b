// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl idle watch: print the rules' counters periodically
 */
#include <ctype.h>
#include <inttypes.h>

#include "twctl.h"

/**
 * struct state - the last two samples of the rules
 * @fd:		the device
 * @rules:	the samples: the one numbered n, from 0, is in element n % 2
 * @nr:		number of samples taken
 */
struct state {
	int		fd;
	struct rules	rules[2];
	unsigned int	nr;
};

/* The rule in the previous sample, or NULL. */
static const struct twheel_rule *find_previous(const struct state *state, uint32_t id)
{
	const struct rules *before = &state->rules[state->nr % 2];
	size_t i;

	for (i = 0; state->nr > 1 && i < before->nr; i++)
		if (before->rule[i].id == id)
			return &before->rule[i];
	return NULL;
}

static void print_counters(const struct twheel_rule *rule, const struct twheel_rule *before,
			   double seconds)
{
	const char *name;
	uint64_t value;
	size_t i;

	printf("%5" PRIu32, rule->id);
	for (i = 0; rule_counter(rule, i, &name, &value); i++)
		printf(" %11" PRIu64, value);
	if (before)
		printf(" %10.1f  ", (int64_t)(rule->closed - before->closed) / seconds);
	else
		printf(" %10s  ", "-");
	rule_print_match(rule);
	putchar('\n');
}

static struct text upper_case(const char *name)
{
	struct text text = { "" };
	size_t i;

	for (i = 0; name[i] && i < sizeof(text.s) - 1; i++)
		text.s[i] = name[i] == '_' ? '-' : toupper((unsigned char)name[i]);
	return text;
}

static void print_sample(const struct state *state, const struct rules *rules, double seconds)
{
	static const struct twheel_rule none;
	const char *name;
	uint64_t value;
	size_t i;

	pace_print_time(state->nr == 1);
	printf("%5s", "ID");
	for (i = 0; rule_counter(&none, i, &name, &value); i++)
		printf(" %11s", upper_case(name).s);
	printf(" %10s  %s\n", "CLOSED/S", "CONNECTIONS");
	for (i = 0; i < rules->nr; i++)
		print_counters(&rules->rule[i], find_previous(state, rules->rule[i].id), seconds);
}

static void json_rates(struct json *json, const struct twheel_rule *rule,
		       const struct twheel_rule *before, double seconds)
{
	uint64_t value, old;
	const char *name;
	size_t i;

	json_object(json, "per_second");
	for (i = 0; before && rule_counter(rule, i, &name, &value); i++) {
		if (!metrics_is_counter(name))
			continue;
		rule_counter(before, i, &name, &old);
		json_real(json, name, (int64_t)(value - old) / seconds);
	}
	json_end(json);
}

static void json_sample(const struct state *state, const struct rules *rules, double seconds)
{
	struct json json = { .out = stdout };
	size_t i;

	json_object(&json, NULL);
	pace_json_time(&json);
	json_array(&json, "rules");
	for (i = 0; i < rules->nr; i++) {
		rule_json(&json, &rules->rule[i]);
		json_rates(&json, &rules->rule[i],
			   find_previous(state, rules->rule[i].id), seconds);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

static void sample_rules(struct pace *pace, void *data)
{
	struct state *state = data;
	struct rules *rules = &state->rules[state->nr++ % 2];

	rules_gather(state->fd, rules);
	(pace->json ? json_sample : print_sample)(state, rules, pace_seconds(pace));
}

static const struct choice choices[] = { CHOICE_JSON, CHOICE_COUNT, { 0 } };

static int run_idle_watch(int argc, char **argv)
{
	struct pace pace = pace_options(&idle_watch_command, argc, argv);
	struct state state = { .fd = device_open() };

	pace_run(&pace, sample_rules, &state);
	return 0;
}

const struct command idle_watch_command = {
	.name		= "idle watch",
	.operands	= "[SECONDS]",
	.summary	= "what the rules count, each SECONDS (1)",
	.choices	= choices,
	.run		= run_idle_watch,
};
