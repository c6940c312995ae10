/* SPDX-License-Identifier: GPL-2.0 */
/* Between bank.c and bank_search.c */
#ifndef _CLSW_RESOURCE_BANK_PRIV_H
#define _CLSW_RESOURCE_BANK_PRIV_H

#include "bank.h"

#define BANK_IN_STASH	0x80000000U

/* Bits of @width slots from @at on */
static inline u8 bank_run(u32 at, u32 width)
{
	return ((1U << width) - 1) << at;
}

/* The bucket of a key in each bank, numbered through all banks */
void bank_buckets(const struct bank *b, const struct bank_key *key, u32 *out);
/* False: no such entry in the banks */
bool bank_read(const struct bank *b, u32 id, struct bank_key *key, u32 *width);
void bank_move_entry(struct bank *b, u32 id, u32 to);

/* A free run of slots in these buckets, BANK_NONE; with @pinned not one that is being cleared */
u32 bank_free_run(const struct bank *b, const u32 *buckets, u32 width, bool pinned);
/* The same, cleared by moving others if need be */
u32 bank_find_room(struct bank *b, const struct bank_key *key, u32 width, u32 *moves);
/* Back to where they came from, down to @mark moves */
void bank_undo_moves(struct bank *b, u32 mark);

#endif
