// SPDX-License-Identifier: GPL-2.0
/* See json.h */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"

static void blank(const char **p)
{
	while (isspace((unsigned char)**p))
		(*p)++;
}

static char *string(const char **p)
{
	const char *end;
	char *s;

	if (**p != '"')
		return NULL;
	for (end = *p + 1; *end && *end != '"'; end++) {
		if (*end == '\\')
			return NULL;	/* the vectors have no escapes */
	}
	if (!*end)
		return NULL;
	s = strndup(*p + 1, end - *p - 1);
	*p = end + 1;
	return s;
}

static struct json *value(const char **p, int depth)
{
	struct json *j = calloc(1, sizeof(*j)), **tail = &j->first;
	char close, *end;

	blank(p);
	switch (depth < 8 ? **p : 0) {
	case '"':
		j->kind = JSON_STRING;
		j->text = string(p);
		if (!j->text)
			goto bad;
		return j;
	case '[':
	case '{':
		j->kind = **p == '[' ? JSON_ARRAY : JSON_OBJECT;
		close = **p == '[' ? ']' : '}';
		(*p)++;
		for (blank(p); **p != close; blank(p)) {
			char *key = NULL;

			if (j->first && *(*p)++ != ',')
				goto bad;
			blank(p);
			if (j->kind == JSON_OBJECT) {
				key = string(p);
				blank(p);
				if (!key || *(*p)++ != ':') {
					free(key);
					goto bad;
				}
			}
			*tail = value(p, depth + 1);
			if (!*tail) {
				free(key);
				goto bad;
			}
			(*tail)->key = key;
			tail = &(*tail)->next;
		}
		(*p)++;
		return j;
	default:
		j->number = strtol(*p, &end, 10);
		if (depth >= 8 || end == *p)
			goto bad;
		*p = end;
		return j;
	}
bad:
	json_free(j);
	return NULL;
}

struct json *json_parse(const char *text, const char **where)
{
	struct json *j;

	*where = text;
	j = value(where, 0);
	if (j)
		blank(where);
	if (j && **where) {
		json_free(j);
		j = NULL;
	}
	return j;
}

void json_free(struct json *j)
{
	while (j) {
		struct json *next = j->next;

		json_free(j->first);
		free(j->key);
		free(j->text);
		free(j);
		j = next;
	}
}

const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *j;

	for (j = object ? object->first : NULL; j; j = j->next) {
		if (j->key && !strcmp(j->key, key))
			return j;
	}
	return NULL;
}
