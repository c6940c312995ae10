/* SPDX-License-Identifier: GPL-2.0 */
/* A few words of test harness: each test is a function, each failure says where */
#ifndef RESOURCE_CHECK_H
#define RESOURCE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);	\
		fprintf(stderr, " " __VA_ARGS__);				\
		fputc('\n', stderr);						\
		exit(1);							\
	}									\
} while (0)

/* splitmix64 (Steele, Lea, Flood 2014) */
struct rnd {
	unsigned long long s;
};

static inline unsigned long long rnd(struct rnd *r)
{
	unsigned long long z = r->s += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline unsigned int below(struct rnd *r, unsigned int n)
{
	return n ? rnd(r) % n : 0;
}

#endif
