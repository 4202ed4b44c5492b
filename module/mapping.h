/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: memory that a context shares with its program
 */
#ifndef _TWHEEL_MAPPING_H
#define _TWHEEL_MAPPING_H

#include <linux/types.h>

struct vm_area_struct;

/**
 * struct twheel_mapping - memory that can be mapped
 * @memory:	where the kernel sees it; whole pages, zero at first
 * @bytes:	its length
 * @pgoff:	where in the file it is mapped, in pages
 */
struct twheel_mapping {
	void		*memory;
	size_t		bytes;
	unsigned long	pgoff;
};

int twheel_mapping_create(struct twheel_mapping *mapping, size_t bytes, unsigned long offset);
void twheel_mapping_destroy(struct twheel_mapping *mapping);
int twheel_mapping_mmap(struct twheel_mapping *mapping, struct vm_area_struct *vma);

#endif /* _TWHEEL_MAPPING_H */
