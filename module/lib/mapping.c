// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: memory that a context shares with its program
 *
 * vmalloc_user() would do, but the memory that it allocates is charged to nobody. All it does
 * beyond __vmalloc() is to mark the memory for remap_vmalloc_range(), and no exported function
 * does that for charged memory. So pages are mapped as the program faults on them.
 *
 * The memory may be preceded by a page that the program can only read. With page_mkwrite() the
 * kernel asks before it maps a page for writing, and is refused that one.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "mapping.h"
#include "memory.h"

/**
 * twheel_mapping_create - allocate the memory
 * @mapping:	filled in
 * @bytes:	length; rounded up to pages
 * @offset:	offset in the file at which it is mapped, in bytes
 * @front:	a page to be mapped in front of it, which the program can only read; or NULL.
 *		It must stay allocated for as long as the mapping exists
 *
 * Context: process; may sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_mapping_create(struct twheel_mapping *mapping, size_t bytes, unsigned long offset,
			  struct page *front)
{
	mapping->front = front;
	mapping->bytes = PAGE_ALIGN(bytes) + (front ? PAGE_SIZE : 0);
	mapping->pgoff = offset >> PAGE_SHIFT;
	mapping->memory = __vmalloc(PAGE_ALIGN(bytes), TWHEEL_GFP_USER | __GFP_ZERO);
	return mapping->memory ? 0 : -ENOMEM;
}

/**
 * twheel_mapping_destroy - free the memory
 * @mapping:	no longer mapped anywhere, because a mapping keeps the file open
 *
 * Context: process.
 */
void twheel_mapping_destroy(struct twheel_mapping *mapping)
{
	vfree(mapping->memory);
}

static vm_fault_t mapping_fault(struct vm_fault *vmf)
{
	const struct twheel_mapping *mapping = vmf->vma->vm_private_data;
	unsigned long n = vmf->pgoff - mapping->pgoff;

	if (n >= mapping->bytes >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	if (mapping->front && !n)
		vmf->page = mapping->front;
	else
		vmf->page = vmalloc_to_page(mapping->memory +
					    ((n - !!mapping->front) << PAGE_SHIFT));
	get_page(vmf->page);
	return 0;
}

/* Called when the program is about to write to a page for the first time. */
static vm_fault_t mapping_page_mkwrite(struct vm_fault *vmf)
{
	const struct twheel_mapping *mapping = vmf->vma->vm_private_data;

	if (vmf->page == mapping->front)
		return VM_FAULT_SIGBUS;
	lock_page(vmf->page);
	return VM_FAULT_LOCKED;
}

static const struct vm_operations_struct mapping_vm_ops = {
	.fault		= mapping_fault,
	.page_mkwrite	= mapping_page_mkwrite,
};

/**
 * twheel_mapping_mmap - handle mmap(2) of the memory: all of it, shared, not executable
 * @mapping:	the memory, or NULL
 * @vma:	the requested mapping
 *
 * Context: process.
 * Return: 0, or -EINVAL.
 */
int twheel_mapping_mmap(struct twheel_mapping *mapping, struct vm_area_struct *vma)
{
	if (!mapping || vma->vm_pgoff != mapping->pgoff ||
	    vma->vm_end - vma->vm_start != mapping->bytes)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	vma->vm_private_data = mapping;
	vma->vm_ops = &mapping_vm_ops;
	return 0;
}
