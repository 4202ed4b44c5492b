/* SPDX-License-Identifier: MIT */
/*
 * echo: shared by the server and its implementations of timeouts
 */
#ifndef ECHO_H
#define ECHO_H

#include <stdint.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct timeouts - an implementation of idle timeouts
 * @name:	its name on the command line
 * @begin:	initialise. This and all others may be NULL if they have nothing to do
 * @add:	a connection is new: start its timeout
 * @active:	it has been active: restart its timeout
 * @remove:	it is closed: remove its timeout
 * @wait:	how long epoll_wait() may wait, in milliseconds; -1: forever
 * @woken:	epoll_wait() has returned; its events are handled next
 * @expire:	they have been handled: check which connections have timed out
 * @event:	a file that was passed to poll_timeouts() with this number is readable
 *
 * A connection is identified by its file descriptor, which is less than @max_files.
 */
struct timeouts {
	const char	*name;
	void		(*begin)(void);
	void		(*add)(int fd);
	void		(*active)(int fd);
	void		(*remove)(int fd);
	int		(*wait)(void);
	void		(*woken)(void);
	void		(*expire)(void);
	void		(*event)(int number);
};

extern const struct timeouts timeouts_none, timeouts_watch, timeouts_touch, timeouts_heap,
	timeouts_timerfd, timeouts_scan, timeouts_libev;

/* The idle timeout, in nanoseconds. */
extern uint64_t limit;

/* All file descriptors are less than this. */
extern unsigned int max_files;

/* server.c, for the implementations of timeouts */
void timed_out(int fd);
void poll_timeouts(int file, int number);

/* common.c */
extern const char *program;
void check(int ret, const char *what);
void check_errno(int ret, const char *what);
void *allocate(uint64_t nr, uint64_t size);
uint64_t now(void);
int milliseconds_until(uint64_t time);
unsigned int raise_file_limit(void);
uint64_t parse_seconds(const char *what, const char *text);
uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max);

#endif /* ECHO_H */
