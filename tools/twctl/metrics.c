// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl metrics: print metrics for Prometheus
 *
 * In the Prometheus text format 0.0.4, which node_exporter's textfile collector reads, or in
 * OpenMetrics 1.0. These differ in the names of counter families, and in the last line.
 */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twctl.h"
#include "utf8.h"

/* Bounds of the histograms' buckets: 2^8 ns = 256 ns to 2^36 ns = 69 s. */
#define FIRST_BOUND	8
#define LAST_BOUND	36

enum type { GAUGE, COUNTER, HISTOGRAM };

/**
 * struct metric - a metric family
 * @key:	the name of the number at its source
 * @name:	the name of the family; a counter's is without "_total"
 * @type:	its type
 * @help:	its description, one sentence
 */
struct metric {
	const char	*key;
	const char	*name;
	enum type	type;
	const char	*help;
};

static const struct metric totals[] = {
	{ "pending", "twheel_timers_pending", GAUGE, "Timers that are armed." },
	{ "adds", "twheel_timers_added", COUNTER, "Timers armed that were not pending." },
	{ "cancels", "twheel_timers_cancelled", COUNTER, "Pending timers cancelled." },
	{ "remote_cancels", "twheel_timers_cancelled_remotely", COUNTER,
	  "Pending timers cancelled that were on another CPU." },
	{ "rearms", "twheel_timers_rearmed", COUNTER, "Pending timers armed anew." },
	{ "expiries", "twheel_timers_expired", COUNTER, "Timers that have expired." },
	{ "cascades", "twheel_cascades", COUNTER, "Timers filed again on their way." },
	{ "ticks", "twheel_ticks", COUNTER, "Calls of the wheels' hrtimers." },
	{ "empty_ticks", "twheel_empty_ticks", COUNTER, "Calls in which no timer expired." },
	{ "spilled", "twheel_timers_spilled", COUNTER,
	  "Timers filed without a chunk, for want of memory." },
	{ "chunks", "twheel_chunks", GAUGE, "Chunks of the wheels, of 64 bytes each." },
	{ "free_chunks", "twheel_free_chunks", GAUGE, "Chunks that are free." },
	{ "contexts", "twheel_contexts", GAUGE, "Open files of the device." },
};

static const struct metric watches[] = {
	{ "watches", "twheel_watches", GAUGE, "Connections that are watched." },
	{ "kicks", "twheel_watch_kicks", COUNTER,
	  "Watched connections that were due and dealt with." },
	{ "ended", "twheel_watch_ended", COUNTER, "Watched connections that were over first." },
	{ "spared", "twheel_watch_spared", COUNTER,
	  "Watched connections that were looked at and left alone, most of them as active." },
	{ "busy", "twheel_watch_busy", COUNTER,
	  "Watched connections that were due, and in use by a program." },
	{ "scans", "twheel_watch_scans", COUNTER,
	  "Looks at all watched connections, after too many changes to note each." },
};

/* The keys are the names that rule_counter() returns. */
static const struct metric rules[] = {
	{ "watched", "twheel_rule_watched", GAUGE, "Connections that the rule applies to now." },
	{ "matched", "twheel_rule_matched", COUNTER,
	  "Connections that the rule was ever applied to." },
	{ "closed", "twheel_rule_closed", COUNTER,
	  "Connections that the rule has closed." },
	{ "would_close", "twheel_rule_would_close", COUNTER,
	  "Connections that the rule would have closed if it had been no dry run." },
	{ "spared", "twheel_rule_spared", COUNTER,
	  "Times that a connection was due, and had been active when its turn came." },
	{ "delayed", "twheel_rule_delayed", COUNTER,
	  "Times that a connection had to wait for the rate." },
	{ "missed", "twheel_rule_missed", COUNTER,
	  "Connections that could not be watched at once for want of memory." },
	{ "waited", "twheel_rule_waited", COUNTER,
	  "Times that a connection was due, and was spared as it waited for its peer." },
	{ "overdue", "twheel_rule_overdue", COUNTER,
	  "Connections that were due when the rule came to apply to them." },
	{ "untimed", "twheel_rule_untimed", COUNTER,
	  "Connections closed that were due before the rule was added or changed." },
};

static bool is_counter(const struct metric *metrics, size_t nr, const char *key)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(metrics[i].key, key))
			return metrics[i].type == COUNTER;
	return false;
}

/**
 * metrics_is_counter - is a number a counter, which only ever grows?
 * @key:	its name in the debugfs file totals, or as returned by rule_counter()
 *
 * A rate per second is meaningful for counters only.
 */
bool metrics_is_counter(const char *key)
{
	return is_counter(totals, ARRAY_SIZE(totals), key) ||
	       is_counter(rules, ARRAY_SIZE(rules), key);
}

static bool openmetrics;

static void print_family(const struct metric *metric)
{
	static const char *const types[] = { "gauge", "counter", "histogram" };
	const char *total = metric->type == COUNTER && !openmetrics ? "_total" : "";

	printf("# HELP %s%s %s\n# TYPE %s%s %s\n", metric->name, total, metric->help,
	       metric->name, total, types[metric->type]);
}

/* Prints a sample; @labels is empty, or labels in braces. */
static void print_sample(const struct metric *metric, const char *labels, uint64_t value)
{
	printf("%s%s%s %" PRIu64 "\n", metric->name, metric->type == COUNTER ? "_total" : "",
	       labels, value);
}

/* Prints nanoseconds as seconds, exactly: with integers, nothing is rounded. */
static void print_seconds(uint64_t ns)
{
	printf("%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

/* Sums a histogram's buckets, the lines that begin with @prefix, up to the bound @bound. */
static uint64_t count_below(const struct pairs *pairs, const char *prefix, uint64_t bound)
{
	const size_t length = strlen(prefix);
	const char *name;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < pairs->nr; i++) {
		name = pairs->pair[i].name;
		if (strncmp(name, prefix, length))
			continue;
		if (bound == UINT64_MAX ||
		    (strcmp(name + length, "inf") && strtoull(name + length, NULL, 10) <= bound))
			sum += pairs->pair[i].value;
	}
	return sum;
}

/*
 * The module's bounds are exclusive, those of "le" are inclusive: in whole nanoseconds, less than
 * a bound is at most the bound minus 1. The sum is unknown, so it is left out. @label is empty, or
 * ends with a comma.
 */
static void print_histogram(const char *name, const char *label, const struct pairs *pairs,
			    const char *prefix)
{
	const uint64_t all = count_below(pairs, prefix, UINT64_MAX);
	unsigned int i;

	for (i = FIRST_BOUND; i <= LAST_BOUND; i++) {
		printf("%s_bucket{%sle=\"", name, label);
		print_seconds((1ULL << i) - 1);
		printf("\"} %" PRIu64 "\n", count_below(pairs, prefix, 1ULL << i));
	}
	printf("%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label, all);
}

static void print_totals(void)
{
	static const struct metric tick = { NULL, "twheel_tick_seconds", GAUGE,
		"Resolution of timers." };
	static const struct metric lateness = { NULL, "twheel_lateness_seconds", HISTOGRAM,
		"Time from a timer's deadline to its expiry." };
	struct pairs pairs;
	const uint64_t *value;
	size_t i;

	debugfs_read("totals", &pairs);
	for (i = 0; i < ARRAY_SIZE(totals); i++) {
		value = pairs_find(&pairs, totals[i].key);
		if (!value)
			continue;
		print_family(&totals[i]);
		print_sample(&totals[i], "", *value);
	}
	value = pairs_find(&pairs, "tick_ns");
	if (value) {
		print_family(&tick);
		printf("%s ", tick.name);
		print_seconds(*value);
		putchar('\n');
	}
	debugfs_read("lateness", &pairs);
	print_family(&lateness);
	print_histogram(lateness.name, "", &pairs, "");
}

/* The debugfs file watch has one line with this suffix for each kind of watches. */
#define WATCHES	" watches"

/* Calls @fn with the name of each kind. */
static void walk_kinds(const struct pairs *pairs,
		       void (*fn)(const struct pairs *pairs, const char *kind,
				  const struct metric *metric), const struct metric *metric)
{
	struct text kind;
	size_t i, length;

	for (i = 0; i < pairs->nr; i++) {
		length = strcspn(pairs->pair[i].name, " ");
		if (strcmp(pairs->pair[i].name + length, WATCHES))
			continue;
		snprintf(kind.s, sizeof(kind.s), "%.*s", (int)length, pairs->pair[i].name);
		fn(pairs, kind.s, metric);
	}
}

static void print_kind(const struct pairs *pairs, const char *kind, const struct metric *metric)
{
	char key[64], labels[64];
	const uint64_t *value;

	snprintf(key, sizeof(key), "%s %s", kind, metric->key);
	snprintf(labels, sizeof(labels), "{kind=\"%s\"}", kind);
	value = pairs_find(pairs, key);
	if (value)
		print_sample(metric, labels, *value);
}

static void print_kind_delay(const struct pairs *pairs, const char *kind,
			     const struct metric *metric)
{
	char prefix[64], label[64];

	snprintf(prefix, sizeof(prefix), "%s %s ", kind, metric->key);
	snprintf(label, sizeof(label), "kind=\"%s\",", kind);
	print_histogram(metric->name, label, pairs, prefix);
}

static void print_watches(void)
{
	static const struct metric delay = { "delay", "twheel_watch_delay_seconds", HISTOGRAM,
		"Time from the expiry of a watched connection's timer to when it was dealt with." };
	struct pairs pairs;
	size_t i;

	debugfs_read("watch", &pairs);
	for (i = 0; i < ARRAY_SIZE(watches); i++) {
		print_family(&watches[i]);
		walk_kinds(&pairs, print_kind, &watches[i]);
	}
	print_family(&delay);
	walk_kinds(&pairs, print_kind_delay, &delay);
}

/*
 * Prints a label, with its value escaped. A reader would reject everything because of one byte that
 * is not UTF-8, so such a byte becomes U+FFFD.
 */
static void print_label(const char *name, const char *value)
{
	size_t length;

	printf(",%s=\"", name);
	for (; *value; value += length ?: 1) {
		length = utf8_length(value);
		if (*value == '"' || *value == '\\')
			putchar('\\');
		if (*value == '\n')
			fputs("\\n", stdout);
		else if (length)
			fwrite(value, 1, length, stdout);
		else
			fputs("\357\277\275", stdout);
	}
	putchar('"');
}

static void print_number_label(bool has, const char *name, uint64_t value)
{
	struct text text;

	if (!has)
		return;
	snprintf(text.s, sizeof(text.s), "%" PRIu64, value);
	print_label(name, text.s);
}

/* The rule's lists, by the names that they have in JSON. */
static void print_list_labels(const struct twheel_rule *rule)
{
	const struct rule_list *list;
	char *text;

	for (list = rule_lists; list->option; list++) {
		text = rule_list_only(rule, list);
		if (text)
			print_label(rule_list_name(list).s, text);
		free(text);
	}
}

static void print_rule(const struct twheel_rule *rule, const struct metric *metric)
{
	const char *name;
	uint64_t value;
	size_t i;

	for (i = 0; rule_counter(rule, i, &name, &value); i++)
		if (!strcmp(name, metric->key))
			break;
	printf("%s%s{rule=\"%u\"", metric->name, metric->type == COUNTER ? "_total" : "",
	       rule->id);
	if (*rule->name)
		print_label("name", rule->name);
	print_number_label(rule->flags & TWHEEL_RULE_LOCAL_PORT, "local_port", rule->local_port);
	print_number_label(rule->flags & TWHEEL_RULE_REMOTE_PORT, "remote_port",
			   rule->remote_port);
	print_number_label(rule->flags & TWHEEL_RULE_PID, "pid", rule->pid);
	print_number_label(rule->flags & TWHEEL_RULE_UID, "uid", rule->uid);
	if (rule->flags & TWHEEL_RULE_CGROUP)
		print_label("cgroup", cgroup_name(rule->cgroup).path);
	print_list_labels(rule);
	if (rule->flags & TWHEEL_RULE_KEEP)
		print_label("keep", "true");
	if (rule->flags & TWHEEL_RULE_DRY_RUN)
		print_label("dry_run", "true");
	printf("} %" PRIu64 "\n", value);
}

static void print_rules(int fd)
{
	struct rules all = { 0 };
	size_t i, j;

	rules_gather(fd, &all);
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		print_family(&rules[i]);
		for (j = 0; j < all.nr; j++)
			print_rule(&all.rule[j], &rules[i]);
	}
	rules_free(&all);
}

static void print_info(void)
{
	static const struct metric info = { NULL, "twheel_info", GAUGE,
		"1, with the version of the module." };
	char labels[64];

	snprintf(labels, sizeof(labels), "{version=\"%s\"}", module_version().s);
	print_family(&info);
	print_sample(&info, labels, 1);
}

static const struct choice choices[] = {
	{ "file", 'f', "FILE", "replace this file with it, or remove it" },
	{ "openmetrics", 'o', NULL, "print OpenMetrics, not the older text format" },
	{ 0 }
};

static int run_metrics(int argc, char **argv)
{
	const char *file = NULL;
	int fd, option;

	while ((option = next_option(&metrics_command, argc, argv)) >= 0) {
		if (option == 'f')
			file = optarg;
		else
			openmetrics = true;
	}
	no_operands(&metrics_command, argc, argv);
	if (file)
		output_begin(file);
	module_require();
	print_info();
	/* Before device_open(): the context that it creates would be counted. */
	print_totals();
	print_watches();
	fd = device_open();
	print_rules(fd);
	close(fd);
	if (openmetrics)
		puts("# EOF");
	output_end();
	return 0;
}

const struct command metrics_command = {
	.name		= "metrics",
	.operands	= "",
	.summary	= "numbers for Prometheus, by node_exporter's textfile collector",
	.choices	= choices,
	.run		= run_metrics,
};
