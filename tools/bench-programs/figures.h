/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench-programs: the figures that the programs have printed
 */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdbool.h>

#include "bench-common.h"

#define NAME_BYTES	32

/**
 * struct figure - what was measured, once for each round
 * @peer:	what timers it was measured with
 * @order:	in which order they were visited; "-" if that does not matter
 * @operation:	what was measured
 * @size:	number of timers
 * @samples:	the values
 */
struct figure {
	char		peer[NAME_BYTES];
	char		order[NAME_BYTES];
	char		operation[NAME_BYTES];
	size_t		size;
	struct samples	samples;
};

/**
 * struct figures - all that was measured, in the order in which it was read
 * @figure:	the figures
 * @nr:		number of figures
 * @peers:	the names of the peers
 * @nr_peers:	number of peers
 * @sizes:	the numbers of timers of operations
 * @nr_sizes:	number of these
 * @notes:	the notes, each once
 * @nr_notes:	number of notes
 */
struct figures {
	struct figure	*figure;
	size_t		nr;
	const char	**peers;
	size_t		nr_peers;
	size_t		*sizes;
	size_t		nr_sizes;
	char		**notes;
	size_t		nr_notes;
};

void read_figures(struct figures *figures, FILE *in);
const struct figure *find_figure(const struct figures *figures, const char *peer, size_t size,
				 const char *order, const char *operation);
bool has_operation(const struct figures *figures, const char *operation);
bool has_size(const struct figures *figures, size_t size, const char *order);

#endif /* FIGURES_H */
