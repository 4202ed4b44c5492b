/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twheel: memory that a context shares with its program
 */
#ifndef _TWHEEL_LIB_MAPPING_H
#define _TWHEEL_LIB_MAPPING_H

#include <linux/types.h>

struct page;
struct vm_area_struct;

/**
 * struct twheel_mapping - memory that can be mapped
 * @memory:	kernel address; whole pages, initially zero
 * @front:	a page in front of it, which the program can only read; or NULL
 * @bytes:	length of the mapping: @front, if there is one, and @memory
 * @pgoff:	offset in the file at which it is mapped, in pages
 */
struct twheel_mapping {
	void		*memory;
	struct page	*front;
	size_t		bytes;
	unsigned long	pgoff;
};

int twheel_mapping_create(struct twheel_mapping *mapping, size_t bytes, unsigned long offset,
			  struct page *front);
void twheel_mapping_destroy(struct twheel_mapping *mapping);
int twheel_mapping_mmap(struct twheel_mapping *mapping, struct vm_area_struct *vma);

/* Length of the mapping in bytes; 0 if there is none. */
static inline u64 twheel_mapping_bytes(const struct twheel_mapping *mapping)
{
	return mapping ? mapping->bytes : 0;
}

#endif /* _TWHEEL_LIB_MAPPING_H */
