/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twctl: declarations shared by its files
 */
#ifndef TWCTL_H
#define TWCTL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <linux/twheel.h>
#include <linux/twheel_rules.h>

#include "json.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Exit statuses: the operation failed; the command line is wrong. */
#define EXIT_FAILED	1
#define EXIT_USAGE	2

/**
 * struct choice - an option of a command
 * @name:	its long name
 * @letter:	its short name
 * @value:	the placeholder for its value, or NULL if it takes none
 * @help:	its help text
 */
struct choice {
	const char	*name;
	char		letter;
	const char	*value;
	const char	*help;
};

#define CHOICE_JSON	{ "json", 'j', NULL, "print JSON" }

/**
 * struct command - a command of twctl
 * @name:	its name; a subcommand's begins with the name of its command
 * @operands:	its operands, for the help
 * @summary:	what it does, in one line
 * @choices:	its options, terminated by one without a name
 * @parts:	its subcommands, terminated by NULL; or NULL if it has none
 * @run:	runs it; argv[0] is the command's name. Returns the exit status
 */
struct command {
	const char		*name;
	const char		*operands;
	const char		*summary;
	const struct choice	*choices;
	const struct command	*const *parts;
	int			(*run)(int argc, char **argv);
};

extern const struct command status_command, watch_command, list_command, histogram_command;
extern const struct command metrics_command;
extern const struct command sleep_command, add_command, info_command, idle_command;
extern const struct command idle_list_command, idle_show_command, idle_watch_command;
extern const struct command idle_remove_command, idle_load_command, idle_save_command;
extern const struct command idle_add_command, idle_set_command, idle_stats_command;
extern const struct command idle_log_command;

/* options.c */
int next_option(const struct command *command, int argc, char **argv);
void no_operands(const struct command *command, int argc, char **argv);
void usage(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void options_set_place(const char *where);
void text_clean(char *text);
void refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
uint64_t parse_count(const struct command *command, const char *what, const char *text,
		     uint64_t max);
uint64_t parse_time(const struct command *command, const char *what, const char *text);

/* output.c */
void output_begin(const char *path);
void output_end(void);

/* duration.c */

/**
 * struct text - a short string that can be returned by value
 * @s:	the string
 */
struct text {
	char	s[32];
};

bool duration_parse(const char *text, uint64_t *ns);
struct text duration_exact(uint64_t ns);
struct text duration_format(uint64_t ns);

/* module.c */

/**
 * struct message - what is wrong, and what to do about it
 * @text:	one line
 */
struct message {
	char	text[256];
};

#define MODULE		"/sys/module/twheel"

bool module_is_loaded(void);
void module_not_loaded(struct message *why);
void module_require(void);
struct text module_version(void);

/* debugfs.c */

/**
 * struct pairs - the contents of a file of lines "name: value"
 * @pair:	the lines, in order
 * @nr:		their number
 */
struct pairs {
	struct {
		char		name[32];
		uint64_t	value;
	} pair[128];
	size_t nr;
};

bool debugfs_try(const char *name, struct pairs *pairs, struct message *why);
void debugfs_read(const char *name, struct pairs *pairs);
const uint64_t *pairs_find(const struct pairs *pairs, const char *name);

/* device.c */
#define DEVICE		"/dev/twheel"

int device_try(struct message *why);
int device_open(void);
void device_info(int fd, struct twheel_info *info);
void device_add(int fd, struct twheel_timer_add *add);
void device_read(int fd, struct twheel_event *event);
const char *clock_name(uint32_t clock);
bool clock_find(const char *name, uint32_t *clock);

/* pace.c */

/**
 * struct pace - how often to take and print samples
 * @count:	number of samples; 0: no limit
 * @interval:	nanoseconds between samples
 * @json:	print JSON
 * @last:	when pace_seconds() was last called
 */
struct pace {
	uint64_t	count;
	uint64_t	interval;
	bool		json;
	int64_t		last;
};

#define CHOICE_COUNT	{ "count", 'n', "N", "end after N times" }

struct pace pace_options(const struct command *command, int argc, char **argv);
void pace_run(struct pace *pace, void (*sample)(struct pace *pace, void *data), void *data);
double pace_seconds(struct pace *pace);
void pace_print_time(bool first);
void pace_json_time(struct json *json);

/* when.c */

/**
 * struct when - the options that say when a timer expires
 * @clock:	the value of --clock, or NULL
 * @until:	the value of --until, or NULL
 */
struct when {
	const char	*clock;
	const char	*until;
};

#define CHOICE_CLOCK	{ "clock", 'c', "CLOCK", "monotonic, boottime or realtime" }
#define CHOICE_UNTIL	{ "until", 'u', "TIME", \
	"at this time: @SECONDS of the clock, HH:MM[:SS] or 'YYYY-MM-DD HH:MM[:SS]'" }

bool when_option(struct when *when, int letter, const char *value);
void when_resolve(const struct command *command, const struct when *when,
		  const char *duration, struct twheel_timer_add *add);

/* status.c */
void status_print_totals(const struct pairs *totals, const struct pairs *before, double seconds);
void status_json_totals(struct json *json, const struct pairs *totals);

/* metrics.c */
bool metrics_is_counter(const char *key);

/* fdinfo.c */

/**
 * struct timer_line - a timer of a context
 * @handle:	its handle
 * @expired:	it has expired, and its event has not been read
 * @deadline:	nanoseconds of @clock, or TWHEEL_TIME_NONE
 * @clock:	a CLOCK_*
 * @remaining:	nanoseconds
 * @period:	nanoseconds, or 0
 * @has_key:	it has a key
 * @key:	the key
 * @user_data:	as set by the program
 */
struct timer_line {
	uint64_t	handle;
	bool		expired;
	uint64_t	deadline;
	uint32_t	clock;
	uint64_t	remaining;
	uint64_t	period;
	bool		has_key;
	uint64_t	key;
	uint64_t	user_data;
};

/**
 * struct context - an open file of the device, as its fdinfo describes it
 * @pid:	a process that has it open
 * @fd:		the file descriptor in that process
 * @command:	the process's name
 * @timers:	number of timers
 * @max_timers:	limit on the number of timers
 * @events:	number of unread events
 * @bytes:	memory used
 * @ring:	entries of the ring, 0 if there is none
 * @touch:	words of the touch array, 0 if there is none
 * @not_shown:	timers that are not in @line
 * @line:	the timers
 * @nr_lines:	number of timers in @line
 */
struct context {
	pid_t			pid;
	int			fd;
	char			command[64];
	uint64_t		timers;
	uint64_t		max_timers;
	uint64_t		events;
	uint64_t		bytes;
	uint64_t		ring;
	uint64_t		touch;
	uint64_t		not_shown;
	struct timer_line	*line;
	size_t			nr_lines;
};

bool fdinfo_read(struct context *context);

/* info.c */
void info_print(const struct twheel_info *info);
void info_json(struct json *json, const struct twheel_info *info);

/* cgroup.c */

/**
 * struct cgroup - a cgroup
 * @path:	its path, or its id in decimal
 */
struct cgroup {
	char	path[PATH_MAX];
};

uint64_t cgroup_find(const char *name);
struct cgroup cgroup_name(uint64_t id);
bool cgroup_exists(uint64_t id);

/* rules.c */

/**
 * struct rules - all rules
 * @rule:	the rules, in the order in which they apply; their lists are at @matches
 * @nr:		their number
 */
struct rules {
	struct twheel_rule	*rule;
	size_t			nr;
};

const char *rules_try_add(int fd, struct twheel_rule *rule);
const char *rules_try_set(int fd, struct twheel_rule *rule);
const char *rules_try_remove(int fd, uint32_t id);
void rules_add(int fd, struct twheel_rule *rule);
void rules_remove(int fd, uint32_t id);
void rules_remove_all(int fd);
const char *rules_try_gather(int fd, struct rules *rules);
void rules_gather(int fd, struct rules *rules);
void rules_free(struct rules *rules);
const struct twheel_rule *rules_find(const struct rules *rules, const char *name);
const struct twheel_rule *rules_require(const struct rules *rules, const char *name);
struct twheel_connection *rules_connections(int fd, uint32_t id, size_t *nr);

/* rules_lock.c */
void rules_lock(void);

/* rule.c */
struct text rule_label(const struct twheel_rule *rule);
const char *rule_activity(const struct twheel_rule *rule);
const char *rule_action(const struct twheel_rule *rule);
uint32_t rule_rate(const struct twheel_rule *rule);
struct twheel_rule rule_spec(const struct twheel_rule *rule);
struct twheel_rule rule_limits(const struct twheel_rule *rule);
bool rule_same(const struct twheel_rule *a, const struct twheel_rule *b);
void rule_print_match(const struct twheel_rule *rule);
bool rule_counter(const struct twheel_rule *rule, size_t i, const char **name, uint64_t *value);
void rule_json(struct json *json, const struct twheel_rule *rule);

/* words.c */
const char *words_split(char *line, char **words, size_t max, size_t *nr);
void words_print(const char *word);

/* rule_lists.c */

/**
 * struct rule_list - a list of ports, addresses or families that a rule may have
 * @option:	the name of its option
 * @kind:	TWHEEL_MATCH_*
 * @flags:	0 or TWHEEL_MATCH_NOT
 */
struct rule_list {
	const char	*option;
	uint16_t	kind;
	uint16_t	flags;
};

/* All lists, terminated by one without a name. */
extern const struct rule_list rule_lists[];

struct twheel_match *rule_matches(const struct twheel_rule *rule);
void rule_lists_parse(const struct command *command, struct twheel_rule *rule,
		      const struct rule_list *list, const char *value);
char *rule_lists_text(const struct twheel_rule *rule, const struct rule_list *list);
char *rule_list_only(const struct twheel_rule *rule, const struct rule_list *list);
struct text rule_list_name(const struct rule_list *list);
void rule_lists_finish(struct twheel_rule *rule);

/* rule_cover.c */
/* What is wrong if rule_families() returns 0. */
#define NO_FAMILY	"no address of --remote, if any, is of a --family that is left"

unsigned int rule_families(const struct twheel_rule *rule);
bool rule_covers(const struct twheel_rule *outer, const struct twheel_rule *inner);
bool rules_overlap(const struct twheel_rule *a, const struct twheel_rule *b);

/* rule_options.c */

/**
 * struct rule_options - a rule as specified by options
 * @command:	the command whose options they are
 * @rule:	the rule
 * @before:	the rule to insert it before, or NULL
 * @given:	a bit for each option that was given: bit 0 for -A and so on
 */
struct rule_options {
	const struct command	*command;
	struct twheel_rule	rule;
	const char		*before;
	uint64_t		given;
};

extern const struct choice rule_choices[];

void rule_options_read(struct rule_options *options, int argc, char **argv);
bool rule_options_has(const struct rule_options *options, int letter);
void rule_options_check_keep(const struct rule_options *options);
void rule_options_check(struct rule_options *options);
void rule_name_parse(const struct command *command, const char *text, char *name);

/* idle_add.c */
int idle_add(struct rule_options *options);

/* rule_text.c */
void rule_text(const struct twheel_rule *rule);

/* rule_files.c */

/**
 * struct wanted - a rule read from a file
 * @rule:	the rule
 * @place:	FILE:LINE
 */
struct wanted {
	struct twheel_rule	rule;
	char			*place;
};

/**
 * struct wanted_rules - the rules read from files
 * @wanted:	the rules, in order
 * @nr:		their number
 * @empty:	the directory, if they are from one without files; else NULL
 */
struct wanted_rules {
	struct wanted	*wanted;
	size_t		nr;
	const char	*empty;
};

void rule_files_read(const char *path, struct wanted_rules *all);

/* replace.c */

/**
 * struct replaced - the outcome of replace_rules(), as numbers of rules
 * @kept:	left as they were
 * @changed:	kept, with other limits
 * @added:	added
 * @removed:	removed
 */
struct replaced {
	size_t	kept;
	size_t	changed;
	size_t	added;
	size_t	removed;
};

struct replaced replace_rules(int fd, const struct wanted_rules *all);

#endif /* TWCTL_H */
