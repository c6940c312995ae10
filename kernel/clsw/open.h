/* SPDX-License-Identifier: GPL-2.0 */
#ifndef CLSW_OPEN_H
#define CLSW_OPEN_H

#include "core.h"

#define CLSW_OPEN_MAX	2048	/* commands in flight */

/**
 * struct clsw_open - a command in flight
 * @next: the next free one, if it is free
 * @obj: WRITE; NULL once the command was given up
 * @since: jiffies when posted
 * @tag: lease slot, lease id
 * @gen: makes cookies of earlier use void
 * @kind: enum clsw_open_kind
 * @used: it is in flight
 */
struct clsw_open {
	struct clsw_open *next;
	struct clsw_obj *obj;
	unsigned long since;
	u32 tag;
	u32 gen;
	u8 kind;
	bool used;
};

/* Locked: one that is free, of enum clsw_open_kind; NULL: too many are in flight */
struct clsw_open *clsw_open_get(struct clsw_device *cd, u8 kind);
/* Locked: it is over, its cookie void */
void clsw_open_put(struct clsw_device *cd, struct clsw_open *open);
/* What the chip gives back with its answer */
__le64 clsw_open_cookie(struct clsw_device *cd, const struct clsw_open *open);

#endif /* CLSW_OPEN_H */
