// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: what the tracepoints of trace.h are made of, once for the module
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
