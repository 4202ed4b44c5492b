// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: reading figures, and finding them
 */
#define _GNU_SOURCE
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

#define MAX_ROUNDS	10000

static void *grow(void *array, size_t nr, size_t size)
{
	array = reallocarray(array, nr + 1, size);
	if (!array)
		errx(EXIT_FAILED, "out of memory");
	return array;
}

/* Peers and sizes are listed in the order in which they are first met. */
static void list_figure(struct figures *figures, const struct figure *figure)
{
	size_t i;

	for (i = 0; i < figures->nr_peers; i++)
		if (!strcmp(figures->peers[i], figure->peer))
			break;
	if (i == figures->nr_peers) {
		figures->peers = grow(figures->peers, i, sizeof(*figures->peers));
		figures->peers[figures->nr_peers++] = strdup(figure->peer);
	}
	if (!strcmp(figure->order, "-"))
		return;
	for (i = 0; i < figures->nr_sizes; i++)
		if (figures->sizes[i] == figure->size)
			return;
	figures->sizes = grow(figures->sizes, i, sizeof(*figures->sizes));
	figures->sizes[figures->nr_sizes++] = figure->size;
}

/* Adds a value to the figure that it belongs to, which may be a new one. */
static void add_value(struct figures *figures, const struct figure *key, double value)
{
	struct figure *figure = (struct figure *)find_figure(figures, key->peer, key->size,
							     key->order, key->operation);

	if (!figure) {
		figures->figure = grow(figures->figure, figures->nr, sizeof(*figures->figure));
		figure = &figures->figure[figures->nr++];
		*figure = *key;
		list_figure(figures, figure);
	}
	if (figure->samples.nr == MAX_ROUNDS)
		errx(EXIT_FAILED, "there are more than %u rounds", MAX_ROUNDS);
	figure->samples.value = grow(figure->samples.value, figure->samples.nr, sizeof(double));
	add_sample(&figure->samples, value);
}

static void add_note(struct figures *figures, const char *note)
{
	size_t i;

	for (i = 0; i < figures->nr_notes; i++)
		if (!strcmp(figures->notes[i], note))
			return;
	figures->notes = grow(figures->notes, i, sizeof(*figures->notes));
	figures->notes[figures->nr_notes++] = strdup(note);
}

/**
 * read_figures - read all figures and notes; exit if a line is neither
 * @figures:	what was read is added to these
 * @in:		the stream to read
 */
void read_figures(struct figures *figures, FILE *in)
{
	unsigned int number = 0, i;
	struct figure key = { 0 };
	size_t room = 0;
	char *line = NULL;
	double value;
	int end;

	while (getline(&line, &room, in) > 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "# ", 2)) {
			add_note(figures, line + 2);
			continue;
		}
		end = 0;
		if (sscanf(line, "%31s %zu %31s %31s %lf%n", key.peer, &key.size, key.order,
			   key.operation, &value, &end) != 5 || line[end] || !isfinite(value))
			errx(EXIT_FAILED, "line %u is no figure: '%s'", number, line);
		add_value(figures, &key, value);
	}
	free(line);
	for (i = 0; i < figures->nr; i++)
		summarise(&figures->figure[i].samples);
}

/**
 * find_figure - find a figure
 * @figures:	all figures
 * @peer:	what timers it was measured with
 * @size:	number of timers
 * @order:	the order
 * @operation:	what was measured
 *
 * Return: the figure, or NULL.
 */
const struct figure *find_figure(const struct figures *figures, const char *peer, size_t size,
				 const char *order, const char *operation)
{
	const struct figure *figure;

	for (figure = figures->figure; figure < figures->figure + figures->nr; figure++)
		if (figure->size == size && !strcmp(figure->peer, peer) &&
		    !strcmp(figure->order, order) && !strcmp(figure->operation, operation))
			return figure;
	return NULL;
}

/**
 * has_operation - is there any figure of this operation?
 * @figures:	all figures
 * @operation:	what was measured
 */
bool has_operation(const struct figures *figures, const char *operation)
{
	size_t i;

	for (i = 0; i < figures->nr; i++)
		if (!strcmp(figures->figure[i].operation, operation))
			return true;
	return false;
}

/**
 * has_size - is there any figure for so many timers in this order?
 * @figures:	all figures
 * @size:	number of timers
 * @order:	the order
 */
bool has_size(const struct figures *figures, size_t size, const char *order)
{
	size_t i;

	for (i = 0; i < figures->nr; i++)
		if (figures->figure[i].size == size && !strcmp(figures->figure[i].order, order))
			return true;
	return false;
}
