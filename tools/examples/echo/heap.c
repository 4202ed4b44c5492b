// SPDX-License-Identifier: MIT
/*
 * echo: a binary heap of deadlines; epoll_wait() waits for the earliest
 *
 * Each connection's position in the heap is known, so a message moves its deadline in place. A
 * connection takes 16 bytes in the heap and 4 in @position, in two arrays: a heap can hardly do
 * with less.
 */
#include <stddef.h>

#include "echo.h"

struct node {
	uint64_t	deadline;
	uint32_t	fd;
};

static struct node *heap;
static uint32_t *position;
static uint32_t size;
static uint64_t clock;

static void put(uint32_t i, struct node node)
{
	heap[i] = node;
	position[node.fd] = i;
}

/* Puts @node at @i, or higher if it is due earlier. */
static void sift_up(uint32_t i, struct node node)
{
	uint32_t parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (heap[parent].deadline <= node.deadline)
			break;
		put(i, heap[parent]);
	}
	put(i, node);
}

/* Puts @node at @i, or lower if it is due later. */
static void sift_down(uint32_t i, struct node node)
{
	uint32_t child;

	while ((child = 2 * i + 1) < size) {
		if (child + 1 < size && heap[child + 1].deadline < heap[child].deadline)
			child++;
		if (node.deadline <= heap[child].deadline)
			break;
		put(i, heap[child]);
		i = child;
	}
	put(i, node);
}

static void heap_begin(void)
{
	heap = allocate(max_files, sizeof(*heap));
	position = allocate(max_files, sizeof(*position));
}

static void heap_add(int fd)
{
	sift_up(size++, (struct node) { clock + limit, fd });
}

static void heap_active(int fd)
{
	sift_down(position[fd], (struct node) { clock + limit, fd });
}

static void heap_remove(int fd)
{
	uint32_t i = position[fd];
	struct node last;

	/* It has timed out, and is no longer in the heap. */
	if (i >= size || heap[i].fd != (uint32_t)fd)
		return;
	last = heap[--size];
	if (i == size)
		return;
	if (last.deadline < heap[i].deadline)
		sift_up(i, last);
	else
		sift_down(i, last);
}

static int heap_wait(void)
{
	return size ? milliseconds_until(heap[0].deadline) : -1;
}

/* Reads the clock once for all events of an epoll_wait(). */
static void heap_woken(void)
{
	clock = now();
}

static void heap_expire(void)
{
	int fd;

	while (size && heap[0].deadline <= clock) {
		fd = heap[0].fd;
		heap_remove(fd);
		timed_out(fd);
	}
}

const struct timeouts timeouts_heap = {
	.name	= "heap",
	.begin	= heap_begin,
	.add	= heap_add,
	.active	= heap_active,
	.remove	= heap_remove,
	.wait	= heap_wait,
	.woken	= heap_woken,
	.expire	= heap_expire,
};
