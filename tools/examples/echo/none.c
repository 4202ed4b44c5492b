// SPDX-License-Identifier: MIT
/*
 * echo: no timeouts at all
 */
#include "echo.h"

const struct timeouts timeouts_none = {
	.name	= "none",
};
