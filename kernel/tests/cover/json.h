/* SPDX-License-Identifier: GPL-2.0 */
/* As much of JSON as the test vectors use: objects, arrays, strings, integers */
#ifndef COVER_JSON_H
#define COVER_JSON_H

enum json_kind { JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	char *key;		/* in an object */
	char *text;		/* of a string */
	long number;
	struct json *first;	/* child */
	struct json *next;	/* sibling */
};

/* NULL: not a document; *where is the place of the error */
struct json *json_parse(const char *text, const char **where);
void json_free(struct json *j);
/* NULL: there is none of that name */
const struct json *json_get(const struct json *object, const char *key);

#endif
