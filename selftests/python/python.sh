#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The library's module for Python, with the device.

cd "$(dirname "$0")" || exit
if ! command -v python3 > /dev/null; then
	echo "TAP version 13"
	echo "1..0 # SKIP no Python in this guest"
	exit 4
fi
[ -e /dev/twheel ] || insmod ../../twheel.ko || exit
LD_LIBRARY_PATH=. exec python3 -B -S test.py
