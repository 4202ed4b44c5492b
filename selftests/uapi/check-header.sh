#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The UAPI headers must compile on their own, whoever includes them: every language and word
# size gives the same layout and the same ioctl numbers. Prints TAP.

cd "$(dirname "$0")/../.." || exit
number=0
failed=0

# What must hold wherever the header is used, expressed in C90: an array of negative size is an
# error.
expectations() {
	cat <<-'EOT'
	#include <linux/twheel_rules.h>
	#include <linux/twheel_rules.h>
	#include <linux/twheel.h>

	#define JOIN_(a, b) a ## b
	#define JOIN(a, b) JOIN_(a, b)
	#define HOLDS(condition) \
		extern char JOIN(holds_, __LINE__)[(condition) ? 1 : -1]
	#define AT(type, field, offset) \
		HOLDS(__builtin_offsetof(struct type, field) == (offset))

	HOLDS(sizeof(struct twheel_info) == 48);
	HOLDS(sizeof(struct twheel_timer_add) == 88);
	HOLDS(sizeof(struct twheel_timer_cancel) == 16);
	HOLDS(sizeof(struct twheel_timer_rearm) == 40);
	HOLDS(sizeof(struct twheel_timer_query) == 64);
	HOLDS(sizeof(struct twheel_op) == 96);
	HOLDS(sizeof(struct twheel_submit) == 16);
	HOLDS(sizeof(struct twheel_drain) == 24);
	HOLDS(sizeof(struct twheel_context_stats) == 96);
	HOLDS(sizeof(struct twheel_setup) == 40);
	HOLDS(sizeof(struct twheel_ring) == 128);
	HOLDS(sizeof(struct twheel_touch) == 4096);
	HOLDS(sizeof(struct twheel_event) == 48);
	HOLDS(sizeof(struct twheel_rule) == 376);
	HOLDS(sizeof(struct twheel_match) == 32);
	HOLDS(sizeof(struct twheel_connection) == 80);
	HOLDS(sizeof(struct twheel_connections) == 32);
	AT(twheel_info, event_size, 40);
	AT(twheel_info, reserved, 44);
	AT(twheel_timer_add, handle, 16);
	AT(twheel_timer_add, clock, 28);
	AT(twheel_timer_add, key, 32);
	AT(twheel_timer_add, touch, 80);
	AT(twheel_timer_add, sock_fd, 80);
	AT(twheel_timer_add, reserved, 84);
	AT(twheel_timer_cancel, reserved, 12);
	AT(twheel_timer_rearm, limit, 20);
	AT(twheel_timer_rearm, spread, 32);
	AT(twheel_timer_query, state, 32);
	AT(twheel_timer_query, flags, 36);
	AT(twheel_timer_query, key, 40);
	AT(twheel_timer_query, limit, 60);
	AT(twheel_op, result, 36);
	AT(twheel_op, key, 40);
	AT(twheel_op, sock_fd, 88);
	AT(twheel_op, limit, 92);
	AT(twheel_submit, flags, 14);
	AT(twheel_drain, cursor, 16);
	AT(twheel_context_stats, ended, 80);
	AT(twheel_context_stats, postponed, 88);
	AT(twheel_setup, reserved, 20);
	AT(twheel_setup, touch_bytes, 32);
	AT(twheel_ring, tail, 64);
	AT(twheel_ring, events, 128);
	AT(twheel_touch, words, 4096);
	AT(twheel_event, seq, 32);
	AT(twheel_event, reason, 44);
	AT(twheel_rule, uid, 16);
	AT(twheel_rule, cgroup, 32);
	AT(twheel_rule, missed, 104);
	AT(twheel_rule, name, 112);
	AT(twheel_rule, stalled, 144);
	AT(twheel_rule, before, 164);
	AT(twheel_rule, age, 176);
	AT(twheel_rule, late, 200);
	AT(twheel_rule, untimed, 368);
	AT(twheel_match, prefix, 10);
	AT(twheel_match, address, 16);
	AT(twheel_connection, uid, 32);
	AT(twheel_connection, remote_address, 56);
	AT(twheel_connection, unacked, 76);
	AT(twheel_connections, cursor, 16);
	AT(twheel_connections, reserved, 28);
	HOLDS(TWHEEL_IOC_INFO == 0x803074a0);
	HOLDS(TWHEEL_IOC_TIMER_ADD == 0xc05874a1);
	HOLDS(TWHEEL_IOC_TIMER_CANCEL == 0x401074a2);
	HOLDS(TWHEEL_IOC_TIMER_REARM == 0x402874a3);
	HOLDS(TWHEEL_IOC_TIMER_QUERY == 0xc04074a4);
	HOLDS(TWHEEL_IOC_SUBMIT == 0x401074a5);
	HOLDS(TWHEEL_IOC_DRAIN == 0xc01874a6);
	HOLDS(TWHEEL_IOC_STATS == 0x806074a7);
	HOLDS(TWHEEL_IOC_SETUP == 0xc02874a8);
	HOLDS(TWHEEL_IOC_RULE_ADD == 0xc17874b0);
	HOLDS(TWHEEL_IOC_RULE_REMOVE == 0x417874b1);
	HOLDS(TWHEEL_IOC_RULE_NEXT == 0xc17874b2);
	HOLDS(TWHEEL_IOC_RULE_CONNECTIONS == 0xc02074b3);
	HOLDS(TWHEEL_IOC_RULE_SET == 0xc17874b4);
	HOLDS(TWHEEL_WAS_PENDING == 0 && TWHEEL_WAS_EXPIRED == 1);
	HOLDS(TWHEEL_WAS_ABSENT == 2 && TWHEEL_WAS_DELIVERED == 3);
	HOLDS(TWHEEL_OP_ADD == 0 && TWHEEL_OP_CANCEL == 1 && TWHEEL_OP_REARM == 2);
	HOLDS(TWHEEL_OP_SIZE_MIN == 40 && TWHEEL_SUBMIT_STOP == 1);
	HOLDS(TWHEEL_STATE_PENDING == 1 && TWHEEL_STATE_EXPIRED == 2);
	HOLDS(TWHEEL_LIMIT_DEADLINE == 0 && TWHEEL_LIMIT_IDLE == 1);
	HOLDS(TWHEEL_LIMIT_LIFETIME == 2);
	HOLDS(TWHEEL_TIME_ABS == 1 && TWHEEL_BY_KEY == 2 && TWHEEL_ACTIVE == 4);
	HOLDS(TWHEEL_KEYED == 8 && TWHEEL_TOUCHED == 16);
	HOLDS(TWHEEL_WATCHED == 32 && TWHEEL_WATCH_RECEIVED == 64 && TWHEEL_WATCH_SENT == 128);
	HOLDS(TWHEEL_WATCH_SHUTDOWN == 256 && TWHEEL_WATCH_ABORT == 512);
	HOLDS(TWHEEL_FEATURE_WATCH == 256 && TWHEEL_FEATURE_RULES == 512);
	HOLDS(TWHEEL_FEATURE_EVENT_KEYS == 2048 && TWHEEL_SETUP_EVENT_KEYS == 1);
	HOLDS(TWHEEL_FEATURE_SUBMIT == 1 && TWHEEL_FEATURE_URING == 128);
	HOLDS(TWHEEL_RULE_LOCAL_PORT == 0x10000 && TWHEEL_RULE_REMOTE_PORT == 0x20000);
	HOLDS(TWHEEL_RULE_UID == 0x40000 && TWHEEL_RULE_CGROUP == 0x80000);
	HOLDS(TWHEEL_RULE_PID == 0x100000 && TWHEEL_RULE_DRY_RUN == 0x200000);
	HOLDS(TWHEEL_RULE_KEEP == 0x400000 && TWHEEL_MATCH_NOT == 1);
	HOLDS(TWHEEL_RING_OFFSET == 0 && TWHEEL_TOUCH_OFFSET == 0x40000000);
	HOLDS(TWHEEL_RING_WAITING == 1 && TWHEEL_URING_SUBMIT == 0);
	HOLDS(TWHEEL_TIME_NONE == 0xffffffffffffffffULL);
	HOLDS(TWHEEL_TIME_MAX == 0x7fffffffffffffffULL);
	EOT
}

result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number $2"
	else
		failed=$((failed + 1))
		echo "not ok $number $2"
	fi
}

# compiles NAME COMPILER FLAG...
compiles() {
	name=$1
	shift
	output=$(expectations | "$@" -Wall -Wextra -Werror -Iuapi -fsyntax-only - 2>&1)
	status=$?
	if [ "$output" ]; then
		echo "$output" | sed 's/^/# /'
	fi
	result $status "$name"
}

# Prints each type and bit-field that is not the same for both word sizes.
portable_types() {
	sed -e 's|/\*.*\*/||; /\/\*/,/\*\//d' uapi/linux/twheel.h uapi/linux/twheel_rules.h |
		grep -nE '\b(long|int|short|char|size_t|time_t|bool|__packed|__u64)\b|: *[0-9]+;' |
		grep -vE '^[0-9]+:	char [a-z_]+\[[A-Z_]+\];$'
}

# The kernel's own headers, for compilations that are not for this machine.
asm=$(gcc -print-file-name=include)
for dir in "/usr/include/$(gcc -print-multiarch)" /usr/include; do
	if [ -e "$dir/asm/ioctl.h" ]; then
		asm=$dir
		break
	fi
done

echo "TAP version 13"
echo "1..9"
compiles "C90" gcc -x c -std=c90
compiles "C99" gcc -x c -std=c99 -pedantic
compiles "C11" gcc -x c -std=c11 -pedantic
compiles "GNU C" gcc -x c
compiles "C++98" g++ -x c++ -std=c++98
compiles "C++17" g++ -x c++ -std=c++17 -pedantic
compiles "C11, 32 bits" gcc -x c -std=c11 -m32 -idirafter "$asm"
compiles "C11, 32-bit pointers on 64 bits" gcc -x c -std=c11 -mx32 -idirafter "$asm"
output=$(portable_types)
if [ "$output" ]; then
	echo "$output" | sed 's/^/# /'
fi
[ ! "$output" ]
result $? "only types that are the same everywhere"
[ $failed = 0 ]
