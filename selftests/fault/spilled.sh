#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A CPU goes offline whose timers have all spilled, because there was no memory for chunks.

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

unload
insmod /twheel/inject/twheel.ko inject_no_page=1 && ../device/hotplug &&
	[ "$(total chunks)" = 0 ] && [ "$(total spilled)" -gt 0 ]
status=$?
unload
exit $status
