#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Rules are removed while connections of theirs begin anew with the same sockets: there is a delay
# after one has left its old state (TWHEEL_POINT_RENEW).

cd "$(dirname "$0")" || exit
. ../lib/tap.sh

unload
insmod /twheel/inject/twheel.ko inject_points=$((1 << 9)) inject_us=1000 &&
	TWHEEL_ROUNDS=20 ../rules/rules_races -r rules.removed_while_connected_again &&
	read -r hits < /sys/module/twheel/parameters/inject_hits && echo "# delays: $hits" &&
	[ "${hits##* }" -gt 0 ]
status=$?
unload
exit $status
