/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the part of a timer that its wheel uses
 *
 * It lies in the objects of other modules, so this header is installed with twheel.h.
 */
#ifndef _TWHEEL_TYPES_H
#define _TWHEEL_TYPES_H

#include <linux/list.h>
#include <linux/types.h>

/* What the low bits of struct twheel_node::location say. */
#define TWHEEL_IN_CELL		1UL	/* the rest is the cell that points to it */
#define TWHEEL_SPILLED		2UL	/* the rest is the pointer that points to it */
#define TWHEEL_HELD		4UL	/* out of a spill list, to be filed at once */
#define TWHEEL_ENTRY		7UL	/* any of these: the node has an entry */
#define TWHEEL_SHUT		8UL	/* alone: it has none, and must not get one any more */

/**
 * struct twheel_node - the wheel's part of a timer
 * @deadline:	when the timer is due, in nanoseconds. If twheel_may_defer(), it may
 *		be changed without telling the wheel
 * @location:	0 if the node has no entry; else what the low bits say. Written by the
 *		wheel's owner, and by who takes the node away; read by any CPU.
 *		%TWHEEL_SHUT is the caller's: the wheel takes it for no entry
 * @defer_after:	the node's cell serves deadlines after this, in nanoseconds
 * @next:	the next of a spill list, or of the owner's list of nodes without entry
 * @link:	the owner's, while the node has no entry. When it is in no list any
 *		more, @location must be set to 0
 * @owner:	the number of the wheel that the node is, or was last, filed on
 * @state:	not used by the wheel
 * @generation:	not used by the wheel
 */
struct twheel_node {
	u64				deadline;
	union {
		struct {
			unsigned long		location;
			union {
				u64			defer_after;
				struct twheel_node	*next;
			};
		};
		struct list_head	link;
	};
	u16				owner;
	u16				state;
	u32				generation;
};

#endif /* _TWHEEL_TYPES_H */
