# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the tests of mixtures and traces, after tap.sh and command.sh.

# There are so many schemes with timers.
SCHEMES=13

# all_the_same TRACES: each of them has had the same outcome with all schemes.
all_the_same() {
	same "traces with one outcome" "$(grep -c "the same in $SCHEMES schemes$" "$OUT")" "$1"
}
