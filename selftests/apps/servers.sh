# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts in this directory: a rule, connections to a server, and what became
# of them.

. ../lib/tap.sh

# The idle timeout of the rules, in milliseconds; what a slow machine may add to it; and what a host
# that stalls the CPU which counts jiffies may take off.
LIMIT_MS=1000
LATE_MS=1500
EARLY_MS=50
END_MS=1000
TALK_MS=$((LIMIT_MS + LATE_MS + END_MS))
SILENT=20

# The error at the other end of an aborted connection.
# shellcheck disable=SC2034 # for scripts that source this
RESET="Connection reset by peer"

# rule OPTION...: adds a rule, whose id is then in $rule.
# shellcheck disable=SC2034 # for scripts that source this
rule() {
	twctl idle --timeout ${LIMIT_MS}ms "$@" --json > /tmp/rule 2>&1 ||
		wrong "no rule: $(cat /tmp/rule)" || return
	rule=$(sed 's/.*"id": \([0-9]*\).*/\1/' /tmp/rule)
}

no_rules() {
	twctl idle remove all > /tmp/rule 2>&1 || wrong "$(cat /tmp/rule)"
}

# counter NAME RULE
counter() {
	twctl idle list --json | tr '{' '\n' |
		sed -n "s/^\"id\": $2,.*\"$1\": \\([0-9]*\\).*/\\1/p"
}

# same WHAT A B
same() {
	[ "$2" = "$3" ] || wrong "$1: '$2', not '$3'"
}

# counts NAME RULE NUMBER: is the count NUMBER?
counts() {
	same "$1 of rule $2" "$(counter "$1" "$2")" "$3"
}

# listening PORT: waits until somebody listens on it.
listening() {
	tries=100
	while ! nc 127.0.0.1 "$1" < /dev/null > /dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || wrong "nobody listens on port $1" || return
		sleep 0.1
	done
}

# talk PORT TEXT: $SILENT connections that fall silent, and a busy one; what became of them is
# in /tmp/talk.PORT.
talk() {
	./talk "$1" $SILENT $TALK_MS "$2" > "/tmp/talk.$1" 2>&1
}

# The silent ones were closed, none of them too early, and in this way.
silent_closed() {
	awk -v limit=$((LIMIT_MS - EARLY_MS)) -v most_allowed=$((LIMIT_MS + LATE_MS)) -v how="$2" '
		$1 != "silent" { next }
		{ if ($2 > most) most = $2 }
		$0 ~ how "$" && $2 >= limit && $2 <= most_allowed { good++; next }
		{ print "# " $0 }
		END { print "# " good + 0 " closed, after " most " ms at most" }
		END { exit good != '$SILENT' }' "/tmp/talk.$1"
}

silent_open() {
	same "open" "$(grep -c '^silent - open$' "/tmp/talk.$1")" $SILENT
}

# All that the busy one asked was answered, on the same connection.
busy_open() {
	awk '$1 == "busy" && $3 == "open" && $4 >= 5 && $5 == $4 { good = 1 }
		END { exit !good }' "/tmp/talk.$1" || wrong "$(grep busy "/tmp/talk.$1")"
}

# Waits until the connections of a talk that begins now are in the state they will have at its end.
before_the_end() {
	usleep $(((TALK_MS - END_MS) * 1000))
}
