// SPDX-License-Identifier: GPL-2.0-only
/*
 * Printing JSON, with the commas and brackets where they belong
 */
#include <assert.h>
#include <inttypes.h>

#include "json.h"
#include "utf8.h"

/**
 * json_quote - write a string in quotes, and nothing else
 * @out:	the stream to write to
 * @string:	the string, in UTF-8; invalid bytes become U+FFFD
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
			/* If it takes two bytes, the second equals the code point. */
			fprintf(out, "\\u%04x", (unsigned char)c[length - 1]);
		else
			fwrite(c, 1, length, out);
	}
	fputc('"', out);
}

/* Writes what precedes a value: a comma, unless it is the first, and the name, if any. */
static void begin_value(struct json *json, const char *name)
{
	if (json->begun[json->depth])
		fputs(", ", json->out);
	json->begun[json->depth] = true;
	if (!name)
		return;
	json_quote(json->out, name);
	fputs(": ", json->out);
}

static void begin_nested(struct json *json, const char *name, char open, char close)
{
	assert(json->depth < JSON_DEPTH);
	begin_value(json, name);
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
	begin_nested(json, name, '{', '}');
}

/**
 * json_array - begin an array
 * @json:	the document
 * @name:	its name, or NULL
 */
void json_array(struct json *json, const char *name)
{
	begin_nested(json, name, '[', ']');
}

/**
 * json_end - end the innermost open object or array; the outermost one ends the document
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
	begin_value(json, name);
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
	begin_value(json, name);
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
	begin_value(json, name);
	fprintf(json->out, "%.3f", value);
}

/**
 * json_hex - write a 64-bit number as a hexadecimal string, so that readers lose no bits of it
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the number
 */
void json_hex(struct json *json, const char *name, uint64_t value)
{
	begin_value(json, name);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

/**
 * json_bool - write true or false
 * @json:	the document
 * @name:	its name, or NULL
 * @value:	the value
 */
void json_bool(struct json *json, const char *name, bool value)
{
	begin_value(json, name);
	fputs(value ? "true" : "false", json->out);
}

/**
 * json_null - write null
 * @json:	the document
 * @name:	its name, or NULL
 */
void json_null(struct json *json, const char *name)
{
	begin_value(json, name);
	fputs("null", json->out);
}
