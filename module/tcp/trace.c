// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: generates the code of the tracepoints in trace.h, once for the module
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
