/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library may need the system header of the same name. */
#include_next <linux/types.h>
#include "../kernel.h"
