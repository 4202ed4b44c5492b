// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: where each CPU's base is
 */
#include "cpu_base.h"

DEFINE_PER_CPU(struct twheel_base *, twheel_bases);
