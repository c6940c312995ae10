// SPDX-License-Identifier: GPL-2.0
/* The chip's own copy of the exact-match memory: the driver's is a model of this one */
#include "../../clsw/resource/bank.c"
