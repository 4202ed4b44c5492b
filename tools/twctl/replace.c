// SPDX-License-Identifier: GPL-2.0-only
/*
 * twctl: replacing the rules by others, all of them or none
 *
 * The kernel adds a rule behind all others, and the first one that matches a connection applies.
 * A rule that is there and wanted stays, with its number and what it has counted, if no new rule
 * has to come before it. That is so if no connection can match both: their order means nothing.
 *
 * Every new rule is added before any old one is removed. Until then the old rules apply, and what
 * fails is undone by removing the new ones. Then the old rules go, the last one first: so
 * each connection passes from its old rule straight to its new one, and never to a rule in between
 * that was meant for others, such as that to which the old one was an exception.
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
 * @all:	those that are wanted
 * @ids:	for each of these: the kernel's number, or 0 if it is not there yet
 * @nr_added:	how many were added
 */
struct change {
	int				fd;
	struct rules			rules;
	bool				*keep;
	const struct wanted_rules	*all;
	uint32_t			*ids;
	size_t				nr_added;
};

/* May a connection match both? */
static bool may_overlap(const struct twheel_rule *a, const struct twheel_rule *b)
{
	const uint32_t both = a->flags & b->flags;

	if ((both & TWHEEL_RULE_LOCAL_PORT) && a->local_port != b->local_port)
		return false;
	if ((both & TWHEEL_RULE_REMOTE_PORT) && a->remote_port != b->remote_port)
		return false;
	return !(both & TWHEEL_RULE_UID) || a->uid == b->uid;
}

static bool same(const struct twheel_rule *a, const struct twheel_rule *b)
{
	const struct twheel_rule left = rule_spec(a), right = rule_spec(b);

	return !memcmp(&left, &right, sizeof(left));
}

/*
 * Behind which of the rules that there are has a wanted one to come? Its number, 0 for none; or
 * UINT32_MAX if it is behind a new one.
 */
static uint32_t comes_after(const struct change *change, size_t i)
{
	const struct wanted *wanted = change->all->wanted;
	uint32_t last = 0;
	size_t j;

	for (j = 0; j < i; j++) {
		if (!may_overlap(&wanted[j].rule, &wanted[i].rule))
			continue;
		if (!change->ids[j])
			return UINT32_MAX;
		if (change->ids[j] > last)
			last = change->ids[j];
	}
	return last;
}

/* Finds out which rules stay. Those of processes do: no file can ask for them. */
static void plan(struct change *change)
{
	const struct twheel_rule *rule = change->rules.rule;
	size_t i, j;
	uint32_t after;

	for (j = 0; j < change->rules.nr; j++)
		change->keep[j] = rule[j].flags & TWHEEL_RULE_PID;
	for (i = 0; i < change->all->nr; i++) {
		after = comes_after(change, i);
		for (j = 0; j < change->rules.nr && !change->ids[i]; j++) {
			if (change->keep[j] || rule[j].id <= after ||
			    !same(&rule[j], &change->all->wanted[i].rule))
				continue;
			change->keep[j] = true;
			change->ids[i] = rule[j].id;
		}
	}
}

/* Is a rule among those that there were? */
static bool was_there(const struct change *change, uint32_t id)
{
	return change->rules.nr && id <= change->rules.rule[change->rules.nr - 1].id;
}

/* Removes what was added; the last one first, so that no connection passes to another one. */
static void undo(struct change *change)
{
	const char *why;
	size_t i;

	for (i = change->all->nr; i--; ) {
		if (!change->ids[i] || was_there(change, change->ids[i]))
			continue;
		why = rules_try_remove(change->fd, change->ids[i]);
		if (why && errno != ENOENT)
			warnx("%s: rule %" PRIu32 " cannot be removed again: %s",
			      change->all->wanted[i].place, change->ids[i], why);
	}
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

/* Are there the old rules and as many as are new, and no others? */
static bool undisturbed(const struct change *change)
{
	struct twheel_rule rule = { 0 };
	size_t nr;

	for (nr = 0; rules_next(change->fd, &rule); nr++)
		if (nr < change->rules.nr && rule.id != change->rules.rule[nr].id)
			return false;
	return nr == change->rules.nr + change->nr_added;
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
	sigset_t every;

	rules_gather(fd, &change.rules);
	change.keep = calloc(change.rules.nr + 1, sizeof(*change.keep));
	change.ids = calloc(all->nr + 1, sizeof(*change.ids));
	if (!change.keep || !change.ids)
		errx(EXIT_FAILED, "out of memory");
	plan(&change);
	sigfillset(&every);
	sigprocmask(SIG_BLOCK, &every, NULL);
	add_new(&change);
	if (!undisturbed(&change)) {
		undo(&change);
		errx(EXIT_FAILED,
		     "another program has changed the rules meanwhile; nothing is loaded, try again");
	}
	replaced.added = change.nr_added;
	replaced.removed = remove_old(&change);
	replaced.kept = change.rules.nr - replaced.removed;
	free(change.rules.rule);
	free(change.keep);
	free(change.ids);
	return replaced;
}
