// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: the code of the tracepoints in trace.h, once for the module
 */
/* Not below the definition: some of the kernel's headers have tracepoints, too. */
#include "cpu_base.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
