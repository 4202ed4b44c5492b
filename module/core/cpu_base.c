// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: pointers to each CPU's base
 */
#include "cpu_base.h"

DEFINE_PER_CPU(struct twheel_base *, twheel_bases);
