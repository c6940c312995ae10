/* SPDX-License-Identifier: GPL-2.0 */
#include "ring_shim.h"
