/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing JSON
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH	8

/**
 * struct json - a document being written, on one line
 * @out:	where to
 * @depth:	how many objects and arrays are open
 * @close:	how to close each of them
 * @begun:	each of them, and the document itself: has something in it
 */
struct json {
	FILE		*out;
	unsigned int	depth;
	char		close[JSON_DEPTH];
	bool		begun[JSON_DEPTH + 1];
};

/*
 * @name is the member's in an object; NULL in an array, and for the document itself.
 */
void json_object(struct json *json, const char *name);
void json_array(struct json *json, const char *name);
void json_end(struct json *json);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, uint64_t value);
void json_real(struct json *json, const char *name, double value);
void json_hex(struct json *json, const char *name, uint64_t value);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);

/* For who writes the rest by himself. */
void json_quote(FILE *out, const char *string);

#endif /* JSON_H */
