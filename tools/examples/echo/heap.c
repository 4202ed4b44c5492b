// SPDX-License-Identifier: MIT
/*
 * echo: a binary heap of deadlines, and epoll_wait() with the first of them
 *
 * Each connection knows where in the heap it is, so that a message moves its deadline where
 * it is. 16 bytes of the heap and 4 of @position for each connection, in two arrays: there is
 * little that a heap could do without.
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

/* Where @node goes, if it is as low as @i or higher. */
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

/* Where @node goes, if it is as high as @i or lower. */
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

static void begin(void)
{
	heap = allocate(max_files, sizeof(*heap));
	position = allocate(max_files, sizeof(*position));
}

static void add(int fd)
{
	sift_up(size++, (struct node) { clock + limit, fd });
}

static void active(int fd)
{
	sift_down(position[fd], (struct node) { clock + limit, fd });
}

static void drop(int fd)
{
	uint32_t i = position[fd];
	struct node last;

	/* It has timed out, and is not there any more. */
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

static int wait(void)
{
	return size ? milliseconds_until(heap[0].deadline) : -1;
}

/* The clock is read once for all that epoll_wait() has told of. */
static void woken(void)
{
	clock = now();
}

static void expire(void)
{
	int fd;

	while (size && heap[0].deadline <= clock) {
		fd = heap[0].fd;
		drop(fd);
		timed_out(fd);
	}
}

const struct timeouts timeouts_heap = {
	.name	= "heap",
	.begin	= begin,
	.add	= add,
	.active	= active,
	.remove	= drop,
	.wait	= wait,
	.woken	= woken,
	.expire	= expire,
};
