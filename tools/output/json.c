// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writing JSON: commas and brackets are seen to here
 */
#include <assert.h>
#include <inttypes.h>

#include "json.h"
#include "utf8.h"

/**
 * json_quote - write a string, and nothing around it
 * @out:	where to
 * @string:	the string, as UTF-8; a byte that is not part of any becomes U+FFFD
 */
void json_quote(FILE *out, const char *string)
{
	size_t length;
	const char *c;

	fputc('"', out);
	for (c = string; *c; c += length ?: 1) {
		length = utf8_length(c);
		if (!length)
			fputs("\\ufffd", out);
		else if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (utf8_is_control(c))
			/* Of two bytes the second is the code. */
			fprintf(out, "\\u%04x", (unsigned char)c[length - 1]);
		else
			fwrite(c, 1, length, out);
	}
	fputc('"', out);
}

/* Begins a value. */
static void begin(struct json *json, const char *name)
{
	if (json->begun[json->depth])
		fputs(", ", json->out);
	json->begun[json->depth] = true;
	if (!name)
		return;
	json_quote(json->out, name);
	fputs(": ", json->out);
}

static void nest(struct json *json, const char *name, char open, char close)
{
	assert(json->depth < JSON_DEPTH);
	begin(json, name);
	fputc(open, json->out);
	json->close[json->depth++] = close;
	json->begun[json->depth] = false;
}

/**
 * json_object - begin an object
 * @json:	the document
 * @name:	its name, or NULL
 */
void json_object(struct json *json, const char *name)
{
	nest(json, name, '{', '}');
}

/**
 * json_array - begin an array
 * @json:	the document
 * @name:	its name, or NULL
 */
void json_array(struct json *json, const char *name)
{
	nest(json, name, '[', ']');
}

/**
 * json_end - end the object or array that was begun last; with the first one, the document
 * @json:	the document
 */
void json_end(struct json *json)
{
	fputc(json->close[--json->depth], json->out);
	if (!json->depth) {
		fputc('\n', json->out);
		json->begun[0] = false;
	}
}

/**
 * json_string - write a string
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the string; NULL is written as null
 */
void json_string(struct json *json, const char *name, const char *value)
{
	if (!value) {
		json_null(json, name);
		return;
	}
	begin(json, name);
	json_quote(json->out, value);
}

/**
 * json_number - write a number
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the number
 */
void json_number(struct json *json, const char *name, uint64_t value)
{
	begin(json, name);
	fprintf(json->out, "%" PRIu64, value);
}

/**
 * json_real - write a number with three decimals
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the number, which is finite
 */
void json_real(struct json *json, const char *name, double value)
{
	begin(json, name);
	fprintf(json->out, "%.3f", value);
}

/**
 * json_hex - write a number of 64 bits, of which readers would lose some, as a string
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the number
 */
void json_hex(struct json *json, const char *name, uint64_t value)
{
	begin(json, name);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

/**
 * json_bool - write true or false
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	which
 */
void json_bool(struct json *json, const char *name, bool value)
{
	begin(json, name);
	fputs(value ? "true" : "false", json->out);
}

/**
 * json_null - write null
 * @json:	the document
 * @name:	its name, or NULL
 */
void json_null(struct json *json, const char *name)
{
	begin(json, name);
	fputs("null", json->out);
}
