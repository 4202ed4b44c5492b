/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: the part of a timer that its wheel uses
 *
 * It is embedded in the objects of other modules, so this header is installed with twheel.h.
 */
#ifndef _TWHEEL_TYPES_H
#define _TWHEEL_TYPES_H

#include <linux/list.h>
#include <linux/types.h>

/**
 * enum twheel_location - the low bits of struct twheel_node::location
 * @TWHEEL_IN_CELL: the rest is the address of its cell
 * @TWHEEL_SPILLED: the rest is the address of the pointer to it
 * @TWHEEL_HELD: off a spill list, about to be enqueued
 * @TWHEEL_ENTRY: any of these: the node has an entry
 * @TWHEEL_SHUT: on its own: it has none, and must never get one
 *
 * Code that is inlined into other modules knows them. As constants of a type in the structure, they
 * are part of the symbols' versions (CONFIG_MODVERSIONS).
 */
enum twheel_location {
	TWHEEL_IN_CELL	= 1,
	TWHEEL_SPILLED	= 2,
	TWHEEL_HELD	= 4,
	TWHEEL_ENTRY	= 7,
	TWHEEL_SHUT	= 8,
};

/**
 * struct twheel_node - the wheel's part of a timer
 * @deadline:	when the timer is due, in nanoseconds. May be changed without involving
 *		the wheel if twheel_may_defer() returns true
 * @location:	0 if the node has no entry; otherwise see the low bits. Written by the
 *		wheel's owner and by any CPU that takes the node away; read by any CPU.
 *		%TWHEEL_SHUT is set by the caller; the wheel treats it as no entry
 * @location_bits: not used: it names the type of these
 * @defer_after: the node's cell can serve any deadline later than this, in nanoseconds
 * @next:	the next node on a spill list, or on the caller's list of nodes without entry
 * @link:	for the caller's use while the node has no entry. Once the node is off the
 *		caller's list, @location must be set to 0
 * @owner:	the number of the wheel that the node is on, or was on last
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
		enum twheel_location	location_bits;
	};
	u16				owner;
	u16				state;
	u32				generation;
};

#endif /* _TWHEEL_TYPES_H */
