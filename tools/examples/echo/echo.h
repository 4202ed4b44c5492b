/* SPDX-License-Identifier: MIT */
/*
 * echo: what the server and its ways to keep timeouts share
 */
#ifndef ECHO_H
#define ECHO_H

#include <stdint.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct timeouts - a way to keep idle timeouts
 * @name:	its name on the command line
 * @begin:	get ready; or NULL, and so are all others that have nothing to do
 * @add:	a connection has come, and its timeout begins
 * @active:	it has been active: its timeout begins anew
 * @remove:	it goes, and its timeout with it
 * @wait:	how long epoll_wait() may wait, in milliseconds; -1: for ever
 * @woken:	epoll_wait() has returned; what it told of is done next
 * @expire:	that is done: see what has timed out
 * @event:	a file is readable that was given to poll_timeouts(), with the same number
 *
 * A connection is known by its file descriptor, which is less than @max_files.
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

/* server.c, for the timeouts */
void timed_out(int fd);
void poll_timeouts(int file, int number);

/* common.c */
extern const char *program;
void check(int ret, const char *what);
void check_errno(int ret, const char *what);
void *allocate(uint64_t nr, uint64_t size);
uint64_t now(void);
int milliseconds_until(uint64_t time);
unsigned int raise_files(void);
uint64_t seconds(const char *what, const char *text);
uint64_t number(const char *what, const char *text, uint64_t min, uint64_t max);

#endif /* ECHO_H */
