/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Printing JSON
 *
 * Why not a library: Debian 12 has no yyjson. jansson has no unsigned 64-bit integers. json-c
 * builds the whole document in memory, whereas "twctl list" streams: it prints each context as it
 * reads it, and there may be a million timers in all.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH	8

/**
 * struct json - a document being written, on one line
 * @out:	the stream to write to
 * @depth:	number of open objects and arrays
 * @close:	the closing bracket of each of them
 * @begun:	by depth, 0 being the document itself: a value has been written
 */
struct json {
	FILE		*out;
	unsigned int	depth;
	char		close[JSON_DEPTH];
	bool		begun[JSON_DEPTH + 1];
};

/* @name is the name of the member in an object; NULL in an array, and for the document itself. */
void json_object(struct json *json, const char *name);
void json_array(struct json *json, const char *name);
void json_end(struct json *json);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, uint64_t value);
void json_real(struct json *json, const char *name, double value);
void json_hex(struct json *json, const char *name, uint64_t value);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);

/* For callers that write everything but strings themselves. */
void json_quote(FILE *out, const char *string);

#endif /* JSON_H */
