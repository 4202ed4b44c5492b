#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The systemd units: that they are installed, what systemd-analyze says about them, and that twctl
# accepts their command lines.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

twctl=$BUILD/tools/twctl
root=$tmp/root
units=$root/usr/lib/systemd/system

# What systemd-analyze calls exposure, in tenths: 100 is without any protection. Most of the
# remainder is root, and the host's network, which is what the rules are for; and for the metrics,
# that their directory belongs to another user.
declare -A exposure=([twheel-idle]=20 [twheel-idle-log]=20 [twheel-metrics]=22)

installs() {
	make -s -C "$TOP/tools/twctl" install O="$BUILD" DESTDIR="$root" PREFIX=/usr \
		> "$tmp/output" 2>&1 || return
	find "$root" > "$tmp/output"
	[ "$(ls "$units")" = $'twheel-idle-log.service\ntwheel-idle.service\ntwheel-metrics.service\ntwheel-metrics.timer' ] &&
		! grep -r @PREFIX@ "$units" && [ -d "$root/etc/twheel/idle.d" ] &&
		[ -z "$(find "$units" -type f ! -perm 644)" ] &&
		[ -z "$(ls "$root"/etc/twheel/idle.d/*.conf 2> /dev/null)" ]
}

uninstalls() {
	make -s -C "$TOP/tools/twctl" uninstall DESTDIR="$root" PREFIX=/usr > "$tmp/output" 2>&1
	find "$root" ! -type d > "$tmp/output"
	[ ! -s "$tmp/output" ]
}

# verify UNIT SED: is the unit without complaints after this change? The programs that it runs must
# exist, and so must whatever a timer starts.
verify() {
	rm -rf "$tmp/units"
	cp -r "$units" "$tmp/units"
	sed -i -E "s|^(Exec[A-Za-z]+=-?)/|\1$root/|" "$tmp/units"/*
	sed -i -E "$2" "$tmp/units/$1"
	SYSTEMD_UNIT_PATH=$tmp/units: systemd-analyze verify --man=no "$tmp/units/$1" \
		> "$tmp/output" 2>&1 && [ ! -s "$tmp/output" ]
}

verify_finds() {
	! verify "$1" 's/^UMask/UMasks/' && ! verify "$1" 's|/bin/twctl|/bin/nothing|' &&
		! verify "$1" 's/^Type=.*/Type=once/'
}

# exposed SERVICE SED: is it protected well enough after this change?
exposed() {
	sed -E "$2" "$units/$1.service" > "$tmp/$1.service"
	systemd-analyze security --no-pager --offline=yes --threshold="${exposure[$1]}" \
		"$tmp/$1.service" > "$tmp/output" 2>&1
}

security_finds() {
	! exposed "$1" /^CapabilityBoundingSet=/d && ! exposed "$1" /^SystemCallFilter=/d &&
		! exposed "$1" /^Protect/d
}

# commands SERVICE N: there are N, and each is a command line that twctl accepts. None of them does
# anything to this machine.
commands() {
	local command nr=0

	while read -r command; do
		# shellcheck disable=SC2086 # These are words.
		set -- "$1" "$2" ${command#*/usr/bin/twctl }
		"$twctl" "${@:3}" > "$tmp/output" 2>&1
		[ $? = 1 ] && ! grep -q -- --help "$tmp/output" || return
		nr=$((nr + 1))
	done < <(grep ^Exec "$units/$1.service" |
		sed "s| /var/lib/prometheus/| $tmp/nothing/|; s| /etc/twheel/| $tmp/nothing/|
			s| /dev/null| $tmp/nothing|")
	[ $nr = "$2" ]
}

ok_if() {
	local name=$1

	shift
	: > "$tmp/output"
	"$@"
	ok "$name"
}

ok_if "they are installed" installs
for service in twheel-idle twheel-idle-log twheel-metrics; do
	ok_if "$service: systemd-analyze verify" verify $service.service ''
	ok_if "$service: it would find faults" verify_finds $service.service
	ok_if "$service: systemd-analyze security" exposed $service ''
	ok_if "$service: it would find faults, too" security_finds $service
done
ok_if "twheel-idle: its commands" commands twheel-idle 3
ok_if "twheel-idle-log: its command" commands twheel-idle-log 1
ok_if "twheel-metrics: its command" commands twheel-metrics 1
ok_if "the timer: systemd-analyze verify" verify twheel-metrics.timer ''
not_for() {
	! verify twheel-metrics.timer "$1"
}
ok_if "it would find a fault" not_for 's/^OnActiveSec/OnActive/'
ok_if "they are uninstalled" uninstalls
finish
