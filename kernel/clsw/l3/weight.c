// SPDX-License-Identifier: GPL-2.0
/*
 * Weights of a group's members, as the chip can have them.
 */
#include <linux/gcd.h>

#include "l3.h"

/*
 * The chip's weights end at @most, the kernel's at 65536: those of a group are
 * divided by what they share, then scaled to what fits, none to nothing.
 */
void l3_fit_weights(struct tnd_nhg_member *member, unsigned int count, const u16 *weight,
		    u32 most)
{
	unsigned long share = 0;
	unsigned int i;
	u32 max = 0;

	for (i = 0; i < count; i++) {
		share = gcd(share, weight[i]);
		max = max_t(u32, max, weight[i]);
	}
	share = max(share, 1UL);
	max /= share;
	for (i = 0; i < count; i++) {
		u32 w = weight[i] / share;

		if (max > most)
			w = DIV_ROUND_CLOSEST(w * most, max);
		member[i].weight = cpu_to_le32(max(w, 1U));
	}
}
