// SPDX-License-Identifier: GPL-2.0
/* See bank.c */
#include "../../clsw/resource/bank_search.c"
