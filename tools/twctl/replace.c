// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: replacing the rules by others, all of them or none
 *
 * The first rule that matches a connection applies. A rule that is there and wanted stays, with
 * its number and what it has counted, as long as the order of rules that may match the same
 * connection can be had by adding the new ones between those that stay.
 *
 * Every new rule is added before any old one is removed. Until then the old rules apply, and what
 * fails is undone by removing the new ones. Then the old rules go, the last one first: so
 * each connection passes from its old rule straight to its new one, and never to a rule in between
 * that was meant for others, such as that to which the old one was an exception.
 *
 * An old rule that goes gives up its name first: a new one may have it.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "twctl.h"

/**
 * struct change - from some rules to others
 * @fd:		the device
 * @rules:	those that there are
 * @keep:	for each of these: it stays
 * @moved:	for each of these: it cannot stay, as its place would be wrong
 * @all:	those that are wanted
 * @stays:	for each of these: which of @rules it is, from 1; 0 if it is new
 * @place:	for each of these: which of @rules, from 0, it comes before, at the latest
 * @ids:	for each of these: the kernel's number, or 0 if it is not there yet
 * @nr_added:	how many were added
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

/* The first rule behind @after of those that there are that is the wanted one; from 1, or 0. */
static size_t find_same(const struct change *change, size_t after, const struct twheel_rule *wanted)
{
	size_t i;

	for (i = after; i < change->rules.nr; i++)
		if (!change->keep[i] && !change->moved[i] &&
		    rule_same(&change->rules.rule[i], wanted))
			return i + 1;
	return 0;
}

static bool overlap(const struct change *change, size_t i, size_t j)
{
	return rules_overlap(&change->all->wanted[i].rule, &change->all->wanted[j].rule);
}

/* Behind how many of the rules that there are has a wanted one to come? */
static size_t comes_after(const struct change *change, size_t i)
{
	size_t after = 0, j;

	for (j = 0; j < i; j++)
		if (change->stays[j] > after && overlap(change, i, j))
			after = change->stays[j];
	return after;
}

/* Which of the rules that there are has a wanted one to come before? */
static size_t comes_before(const struct change *change, size_t i)
{
	size_t before = change->rules.nr, j;

	for (j = i + 1; j < change->all->nr; j++)
		if (change->place[j] < before && overlap(change, i, j))
			before = change->place[j];
	return before;
}

/*
 * Finds out which rules stay, and where the others come. Those of processes stay: no file can ask
 * for them. Returns whether that can be; if not, a rule more is known to have to move.
 */
static bool try_plan(struct change *change)
{
	const struct twheel_rule *rule = change->rules.rule;
	size_t i;

	for (i = 0; i < change->rules.nr; i++)
		change->keep[i] = rule[i].flags & TWHEEL_RULE_PID;
	for (i = 0; i < change->all->nr; i++) {
		change->stays[i] = find_same(change, comes_after(change, i),
					     &change->all->wanted[i].rule);
		if (change->stays[i])
			change->keep[change->stays[i] - 1] = true;
	}
	for (i = change->all->nr; i--; ) {
		if (change->stays[i]) {
			change->place[i] = change->stays[i] - 1;
			continue;
		}
		change->place[i] = comes_before(change, i);
		if (change->place[i] >= comes_after(change, i))
			continue;
		change->moved[change->place[i]] = true;
		return false;
	}
	return true;
}

static void plan(struct change *change)
{
	size_t i;

	while (!try_plan(change))
		;
	for (i = 0; i < change->all->nr; i++)
		change->ids[i] = change->stays[i] ? change->rules.rule[change->stays[i] - 1].id : 0;
}

/* Gives a rule that goes its name, or takes that from it. Returns NULL, or why not. */
static const char *rename_old(const struct change *change, const struct twheel_rule *rule,
			      bool with_name)
{
	struct twheel_rule limits = rule_limits(rule);

	if (!with_name)
		memset(limits.name, 0, sizeof(limits.name));
	return rules_try_set(change->fd, &limits);
}

/* Takes the names of all rules that go, or gives them back. */
static void rename_all(struct change *change, bool with_name)
{
	const struct twheel_rule *rule;
	const char *why;
	size_t i;

	for (i = 0; i < change->rules.nr; i++) {
		rule = &change->rules.rule[i];
		if (change->keep[i] || !*rule->name)
			continue;
		why = rename_old(change, rule, with_name);
		if (why && errno != ENOENT)
			warnx("rule %s cannot be renamed: %s", rule_label(rule).s, why);
	}
}

/* Removes what was added; the last one first, so that no connection passes to another one. */
static void undo(struct change *change)
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
	rename_all(change, true);
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
			undo(change);
			errx(EXIT_FAILED, "%s: cannot add the rule: %s", wanted->place, why);
		}
		change->ids[i] = rule.id;
		change->nr_added++;
	}
}

/*
 * Are there the old rules in their order, and as many as are new, and no others? Returns NULL, or
 * why not.
 */
static const char *disturbed(const struct change *change)
{
	struct rules rules = { 0 };
	const char *why;
	size_t i, old = 0;
	bool same;

	why = rules_try_gather(change->fd, &rules);
	if (why)
		return why;
	for (i = 0; i < rules.nr; i++)
		if (old < change->rules.nr && rules.rule[i].id == change->rules.rule[old].id)
			old++;
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

/**
 * replace_rules - have some rules and no others, or exit with nothing changed
 * @fd:		the device
 * @all:	the rules
 *
 * Signals wait until that is done.
 */
struct replaced replace_rules(int fd, const struct wanted_rules *all)
{
	struct change change = { .fd = fd, .all = all };
	struct replaced replaced;
	const char *why;
	sigset_t every;

	rules_gather(fd, &change.rules);
	change.keep = calloc(change.rules.nr + 1, sizeof(*change.keep));
	change.moved = calloc(change.rules.nr + 1, sizeof(*change.moved));
	change.stays = calloc(all->nr + 1, sizeof(*change.stays));
	change.place = calloc(all->nr + 1, sizeof(*change.place));
	change.ids = calloc(all->nr + 1, sizeof(*change.ids));
	if (!change.keep || !change.moved || !change.stays || !change.place || !change.ids)
		errx(EXIT_FAILED, "out of memory");
	plan(&change);
	sigfillset(&every);
	sigprocmask(SIG_BLOCK, &every, NULL);
	rename_all(&change, false);
	add_new(&change);
	why = disturbed(&change);
	if (why) {
		undo(&change);
		errx(EXIT_FAILED, "%s; nothing is loaded, try again", why);
	}
	replaced.added = change.nr_added;
	replaced.removed = remove_old(&change);
	replaced.kept = change.rules.nr - replaced.removed;
	rules_free(&change.rules);
	free(change.keep);
	free(change.moved);
	free(change.stays);
	free(change.place);
	free(change.ids);
	return replaced;
}
