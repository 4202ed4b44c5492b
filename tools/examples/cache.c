// SPDX-License-Identifier: MIT
/*
 * cache: a limited number of keys and values that expire
 *
 * The timer of an entry has a key: the entry's number. So the cache stores no handles, and
 * setting an entry again, with a new time to live, is one call, whether its timer is
 * pending, has just expired, or does not exist. An event is never from an earlier life of the
 * entry.
 *
 * usage: cache [ENTRIES]		reads commands, one per line:
 *	set KEY MS VALUE	store VALUE for so many milliseconds
 *	get KEY			print the value, or -
 *	expire KEY MS		change the time to live
 *	delete KEY
 *	count			print the number of entries
 *	wait MS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libtwheel.h>

#define MSEC	1000000ULL

struct entry {
	struct entry *next;	/* in its bucket, or on the free list */
	char key[64];
	char value[256];
};

static struct entry *entries, **buckets, *unused;
static size_t nr_entries = 1000, nr_used;
static int fd;

static int check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "cache: %s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

/* Returns where the pointer to the entry with this key is, or would be. */
static struct entry **find_entry(const char *key)
{
	size_t hash = 5381;
	struct entry **link;
	const char *p;

	for (p = key; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	for (link = &buckets[hash % nr_entries]; *link; link = &(*link)->next)
		if (!strcmp((*link)->key, key))
			break;
	return link;
}

/* The number of an entry, which is the key of its timer. */
static uint64_t entry_number(const struct entry *entry)
{
	return (uint64_t)(entry - entries);
}

static void remove_entry(struct entry **link)
{
	struct entry *entry = *link;

	*link = entry->next;
	entry->next = unused;
	unused = entry;
	nr_used--;
}

static void set_key(const char *key, unsigned long ms, const char *value)
{
	struct entry **link = find_entry(key), *entry = *link;

	if (!entry) {
		if (!unused) {
			puts("full");
			return;
		}
		entry = unused;
		unused = entry->next;
		entry->next = NULL;
		*link = entry;
		snprintf(entry->key, sizeof(entry->key), "%s", key);
		nr_used++;
	}
	snprintf(entry->value, sizeof(entry->value), "%s", value);
	check(twheel_add_key(fd, entry_number(entry), ms * MSEC, 0, entry_number(entry)), "add");
}

static void get_key(const char *key)
{
	struct entry *entry = *find_entry(key);

	puts(entry ? entry->value : "-");
}

/* If the timer has expired meanwhile, this revokes its event. */
static void expire_key(const char *key, unsigned long ms)
{
	struct entry *entry = *find_entry(key);

	if (entry)
		check(twheel_rearm_key(fd, entry_number(entry), ms * MSEC, 0), "re-arm");
}

static void delete_key(const char *key)
{
	struct entry **link = find_entry(key);

	if (*link) {
		check(twheel_cancel_key(fd, entry_number(*link)), "cancel");
		remove_entry(link);
	}
}

/* Removes expired entries. In between, the timers need no attention. */
static void take_events(void)
{
	struct twheel_event events[64];
	int i, n;

	while ((n = twheel_read(fd, events, 64)) != -EAGAIN) {
		check(n, "read");
		for (i = 0; i < n; i++)
			remove_entry(find_entry(entries[events[i].user_data].key));
	}
}

static void run_command(const char *line)
{
	char key[64], value[256];
	unsigned long ms;

	if (sscanf(line, "set %63s %lu %255s", key, &ms, value) == 3)
		set_key(key, ms, value);
	else if (sscanf(line, "get %63s", key) == 1)
		get_key(key);
	else if (sscanf(line, "expire %63s %lu", key, &ms) == 2)
		expire_key(key, ms);
	else if (sscanf(line, "delete %63s", key) == 1)
		delete_key(key);
	else if (sscanf(line, "wait %lu", &ms) == 1)
		usleep((useconds_t)ms * 1000);
	else if (!strcmp(line, "count\n"))
		printf("%zu\n", nr_used);
	else
		fprintf(stderr, "cache: no such command: %s", line);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct twheel_setup setup;
	char line[512];
	size_t i;

	if (argc > 1)
		nr_entries = strtoul(argv[1], NULL, 10);
	if (argc > 2 || !nr_entries) {
		fputs("usage: cache [ENTRIES]\n", stderr);
		return 2;
	}
	entries = (struct entry *)calloc(nr_entries, sizeof(*entries));
	buckets = (struct entry **)calloc(nr_entries, sizeof(*buckets));
	if (!entries || !buckets) {
		perror("cache");
		return 1;
	}
	for (i = 0; i < nr_entries; i++) {
		entries[i].next = unused;
		unused = &entries[i];
	}
	fd = check(twheel_open(O_NONBLOCK), "/dev/twheel");
	memset(&setup, 0, sizeof(setup));
	setup.max_timers = nr_entries;
	check(twheel_setup(fd, &setup), "setup");
	while (fgets(line, sizeof(line), stdin)) {
		take_events();
		run_command(line);
	}
	return 0;
}
