#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Does selftests/check/layers detect what it is for? With one fault at a time in a copy of module/.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

cp -r "$TOP/module" "$tmp/module"
layers() {
	"$TOP/selftests/check/layers" "$tmp/module" > "$tmp/output" 2>&1
}

# says TEXT: is this its whole output?
says() {
	[ "$(cat "$tmp/output")" = "$1" ]
}

# line FILE: the number of its first line that includes a header of the same folder.
line() {
	grep -nE -m 1 '^#include "[a-z_]+\.h"' "$tmp/module/$1" | cut -d : -f 1
}

# include FILE HEADER: adds an include to FILE, as an additional line.
include() {
	at=$(line "$1")
	sed -i "${at}i #include \"$2\"" "$tmp/module/$1"
}

# without FILE: undoes that.
without() {
	cp "$TOP/module/$1" "$tmp/module/$1"
}

layers && says ''
ok "the tree is as it should be"
include core/timer.c device/context.h
layers && says "core/timer.c:$at: core must not include device/context.h"
ok "the timer core includes what knows programs"
without core/timer.c
include tcp/watch_worker.c rules/rules.h
layers && says "tcp/watch_worker.c:$at: tcp must not include rules/rules.h"
ok "what watches connections includes policy"
without tcp/watch_worker.c
include device/utimer.c rules/ioctl.h
layers && says "device/utimer.c:$at: device must not include rules/ioctl.h"
ok "a file of the device, other than the one that may, includes rules"
without device/utimer.c
include bench/work.c core/wheel.h
layers && says "bench/work.c:$at: bench must not include core/wheel.h"
ok "the benchmark includes what is behind the in-kernel API"
without bench/work.c
include core/expiry.c ../tcp/watch.h
layers && says "core/expiry.c:$at: core must not include ../tcp/watch.h"
ok "a path that goes around"
without core/expiry.c
echo 'void twheel_keys_destroy(struct twheel_context *ctx);' >> "$tmp/module/device/ring.h"
layers && says "device/ring.h: declares twheel_keys_destroy(), which is in device/keys.c"
ok "a header declares a function of another file"
finish
