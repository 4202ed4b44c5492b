// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: replacing the rules, all of them or none
 *
 * The first rule that matches a connection applies to it. An existing rule that is also wanted is
 * kept, with its id and its counters, as long as the new rules can be inserted between the kept
 * ones so that any two rules that may match the same connection are in the wanted order. So is one
 * with the same name and the same conditions, which gets other limits.
 *
 * Every new rule is added before any old one is changed or removed. Until then the old rules apply,
 * and a failure is undone by removing the new ones. Then the limits are changed, where a failure is
 * undone, too. Then the old rules are removed, last one first, so that each connection passes from
 * its old rule straight to its new one, and never to a rule in between that was meant for others,
 * such as one to which the old rule was an exception.
 *
 * Old rules that will be removed lose their names first: new ones may need them.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"

/**
 * struct change - a change from the existing rules to the wanted ones
 * @fd:		the device
 * @rules:	the existing rules
 * @keep:	for each of @rules: it is kept
 * @moved:	for each of @rules: it cannot be kept, because its place would be wrong
 * @all:	the wanted rules
 * @stays:	for each of @all: which of @rules it is, from 1; 0 if it is new
 * @place:	for each of @all: the first of @rules, from 0, that it must come before
 * @ids:	for each of @all: its id in the kernel, or 0 if it has not been added yet
 * @nr_added:	number of rules added
 */
struct change {
	int				fd;
	struct rules			rules;
	bool				*keep;
	bool				*moved;
	const struct wanted_rules	*all;
	size_t				*stays;
	size_t				*place;
	uint32_t			*ids;
	size_t				nr_added;
};

/* Do two rules have the same name, if any, and the same conditions? */
static bool has_same_conditions(const struct twheel_rule *old, const struct twheel_rule *wanted)
{
	const struct twheel_rule limits = rule_limits(wanted);
	struct twheel_rule changed = *old;

	changed.flags = (old->flags & ~rule_limits(old).flags) | limits.flags;
	changed.rate = limits.rate;
	changed.idle = limits.idle;
	changed.lifetime = limits.lifetime;
	changed.spread = limits.spread;
	changed.stalled = limits.stalled;
	return rule_same(&changed, wanted);
}

/*
 * The first existing rule after rule @after that equals the wanted one, or that becomes the wanted
 * one with other limits and has its name; from 1, or 0 if none.
 */
static size_t find_same(const struct change *change, size_t after, const struct twheel_rule *wanted)
{
	const struct twheel_rule *rule = change->rules.rule;
	size_t i, found = 0;

	for (i = after; i < change->rules.nr; i++) {
		if (change->keep[i] || change->moved[i])
			continue;
		if (rule_same(&rule[i], wanted))
			return i + 1;
		if (*wanted->name && has_same_conditions(&rule[i], wanted))
			found = i + 1;
	}
	return found;
}

static bool wanted_overlap(const struct change *change, size_t i, size_t j)
{
	return rules_overlap(&change->all->wanted[i].rule, &change->all->wanted[j].rule);
}

/* The last kept rule, from 1, that wanted rule @i must come after; 0 if none. */
static size_t must_follow(const struct change *change, size_t i)
{
	size_t after = 0, j;

	for (j = 0; j < i; j++)
		if (change->stays[j] > after && wanted_overlap(change, i, j))
			after = change->stays[j];
	return after;
}

/* The first existing rule, from 0, that wanted rule @i must come before; their number if none. */
static size_t must_precede(const struct change *change, size_t i)
{
	size_t before = change->rules.nr, j;

	for (j = i + 1; j < change->all->nr; j++)
		if (change->place[j] < before && wanted_overlap(change, i, j))
			before = change->place[j];
	return before;
}

/*
 * Determines which rules are kept, and where the new ones go. Rules for processes are kept: files
 * cannot have them. Returns false if that is impossible: one more rule has been marked as moved.
 */
static bool try_plan(struct change *change)
{
	const struct twheel_rule *rule = change->rules.rule;
	size_t i;

	for (i = 0; i < change->rules.nr; i++)
		change->keep[i] = rule[i].flags & TWHEEL_RULE_PID;
	for (i = 0; i < change->all->nr; i++) {
		change->stays[i] = find_same(change, must_follow(change, i),
					     &change->all->wanted[i].rule);
		if (change->stays[i])
			change->keep[change->stays[i] - 1] = true;
	}
	for (i = change->all->nr; i--; ) {
		if (change->stays[i]) {
			change->place[i] = change->stays[i] - 1;
			continue;
		}
		change->place[i] = must_precede(change, i);
		if (change->place[i] >= must_follow(change, i))
			continue;
		change->moved[change->place[i]] = true;
		return false;
	}
	return true;
}

static void plan_change(struct change *change)
{
	size_t i;

	while (!try_plan(change))
		;
	for (i = 0; i < change->all->nr; i++)
		change->ids[i] = change->stays[i] ? change->rules.rule[change->stays[i] - 1].id : 0;
}

/* Removes the name of an old rule, or restores it. Returns NULL, or why that failed. */
static const char *rename_rule(const struct change *change, const struct twheel_rule *rule,
			       bool with_name)
{
	struct twheel_rule limits = rule_limits(rule);

	if (!with_name)
		memset(limits.name, 0, sizeof(limits.name));
	return rules_try_set(change->fd, &limits);
}

/* Removes the names of all rules that are not kept, or restores them. */
static void rename_old_rules(struct change *change, bool with_name)
{
	const struct twheel_rule *rule;
	const char *why;
	size_t i;

	for (i = 0; i < change->rules.nr; i++) {
		rule = &change->rules.rule[i];
		if (change->keep[i] || !*rule->name)
			continue;
		why = rename_rule(change, rule, with_name);
		if (why && errno != ENOENT)
			warnx("rule %s cannot be renamed: %s", rule_label(rule).s, why);
	}
}

/* Removes the new rules, last one first, so that no connection passes to another new rule. */
static void undo_add(struct change *change)
{
	const char *why;
	size_t i;

	for (i = change->all->nr; i--; ) {
		if (!change->ids[i] || change->stays[i])
			continue;
		why = rules_try_remove(change->fd, change->ids[i]);
		if (why && errno != ENOENT)
			warnx("%s: rule %" PRIu32 " cannot be removed again: %s",
			      change->all->wanted[i].place, change->ids[i], why);
	}
	rename_old_rules(change, true);
}

static void add_new(struct change *change)
{
	const struct wanted *wanted;
	struct twheel_rule rule;
	const char *why;
	size_t i;

	for (i = 0; i < change->all->nr; i++) {
		wanted = &change->all->wanted[i];
		if (change->ids[i])
			continue;
		rule = wanted->rule;
		if (change->place[i] < change->rules.nr)
			rule.before = change->rules.rule[change->place[i]].id;
		why = rules_try_add(change->fd, &rule);
		if (why) {
			if (errno == ENOSPC)
				why = "there are too many, with those it replaces; remove some";
			undo_add(change);
			errx(EXIT_FAILED, "%s: cannot add the rule: %s", wanted->place, why);
		}
		change->ids[i] = rule.id;
		change->nr_added++;
	}
}

/* Gives the first @nr wanted rules that are kept their new limits, or the old ones back. */
static const char *set_limits(const struct change *change, size_t nr, bool back, size_t *done)
{
	const struct twheel_rule *old, *wanted;
	struct twheel_rule limits;
	const char *why;
	size_t i;

	for (i = 0, *done = 0; i < nr; i++) {
		wanted = &change->all->wanted[i].rule;
		if (!change->stays[i])
			continue;
		old = &change->rules.rule[change->stays[i] - 1];
		if (rule_same(old, wanted))
			continue;
		limits = rule_limits(back ? old : wanted);
		limits.id = old->id;
		why = rules_try_set(change->fd, &limits);
		if (why && !back) {
			set_limits(change, i, true, done);
			*done = i;
			return why;
		}
		++*done;
	}
	return NULL;
}

/*
 * Checks that the rules are the old ones in their order, with the limits they had, plus as many as
 * were added. Returns NULL, or what is wrong.
 */
static const char *check_unchanged(const struct change *change)
{
	struct rules rules = { 0 };
	const char *why;
	size_t i, old = 0;
	bool same;

	why = rules_try_gather(change->fd, &rules);
	if (why)
		return why;
	for (i = 0; i < rules.nr; i++) {
		if (old == change->rules.nr || rules.rule[i].id != change->rules.rule[old].id)
			continue;
		/* The others have lost their names. */
		if (change->keep[old] && !rule_same(&rules.rule[i], &change->rules.rule[old]))
			break;
		old++;
	}
	same = old == change->rules.nr && rules.nr == old + change->nr_added;
	rules_free(&rules);
	return same ? NULL : "another program has changed the rules meanwhile";
}

static size_t remove_old(struct change *change)
{
	size_t i, removed = 0;
	const char *why;

	for (i = change->rules.nr; i--; ) {
		if (change->keep[i])
			continue;
		why = rules_try_remove(change->fd, change->rules.rule[i].id);
		if (why && errno != ENOENT)
			errx(EXIT_FAILED, "the new rules are there, but old rule %" PRIu32
			     " cannot be removed: %s", change->rules.rule[i].id, why);
		removed++;
	}
	return removed;
}

/* Refuses to remove all rules because a directory has no file. Rules of processes would stay. */
static void refuse_empty(const struct change *change)
{
	size_t i;

	if (!change->all->empty)
		return;
	for (i = 0; i < change->rules.nr; i++)
		if (!(change->rules.rule[i].flags & TWHEEL_RULE_PID))
			errx(EXIT_FAILED, "%s has no *.conf, but there are rules; %s",
			     change->all->empty, "to remove them, run: twctl idle load /dev/null");
}

/**
 * replace_rules - replace the rules by others, or exit with nothing changed
 * @fd:		the device
 * @all:	the new rules
 *
 * Signals are blocked from the first change on.
 */
struct replaced replace_rules(int fd, const struct wanted_rules *all)
{
	struct change change = { .fd = fd, .all = all };
	struct replaced replaced;
	size_t changed;
	const char *why;
	sigset_t every;

	rules_lock();
	rules_gather(fd, &change.rules);
	refuse_empty(&change);
	change.keep = calloc(change.rules.nr + 1, sizeof(*change.keep));
	change.moved = calloc(change.rules.nr + 1, sizeof(*change.moved));
	change.stays = calloc(all->nr + 1, sizeof(*change.stays));
	change.place = calloc(all->nr + 1, sizeof(*change.place));
	change.ids = calloc(all->nr + 1, sizeof(*change.ids));
	if (!change.keep || !change.moved || !change.stays || !change.place || !change.ids)
		errx(EXIT_FAILED, "out of memory");
	plan_change(&change);
	sigfillset(&every);
	sigprocmask(SIG_BLOCK, &every, NULL);
	rename_old_rules(&change, false);
	add_new(&change);
	why = check_unchanged(&change);
	if (why) {
		undo_add(&change);
		errx(EXIT_FAILED, "%s; nothing is loaded, try again", why);
	}
	why = set_limits(&change, all->nr, false, &changed);
	if (why) {
		undo_add(&change);
		errx(EXIT_FAILED, "%s: cannot change the rule: %s", all->wanted[changed].place,
		     why);
	}
	replaced.added = change.nr_added;
	replaced.removed = remove_old(&change);
	replaced.changed = changed;
	replaced.kept = change.rules.nr - replaced.removed - changed;
	rules_free(&change.rules);
	free(change.keep);
	free(change.moved);
	free(change.stays);
	free(change.place);
	free(change.ids);
	return replaced;
}
