/* SPDX-License-Identifier: GPL-2.0 */
#include_next <linux/if_ether.h>
