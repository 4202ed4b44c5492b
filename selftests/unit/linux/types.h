/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library may want the types of its own header of that name. */
#include_next <linux/types.h>
#include "../kernel.h"
