# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: kernels that dkms must not build for, each of which must fail for its own reason.

# refused ROOT RELEASE REASON: dkms reports that, with its status, and has no module for it.
refused() {
	local log=$1/var/lib/dkms/twheel/$version/build/make.log

	! in_root "$1" dkms build -m twheel -v "$version" -k "$2" > "$tmp/dkms" 2>&1 || return
	[ ! -e "$log" ] || cat "$log" >> "$tmp/dkms"
	cat "$tmp/dkms"
	grep -qF "$3" "$tmp/dkms" &&
		[ ! -e "$1/var/lib/dkms/twheel/$version/$2/x86_64/module" ]
}

# other_headers ROOT: the newest headers, in the place of those of another kernel.
other_headers() {
	local release other

	release=$(sed -n '1s/-amd64$/-other-amd64/p' "$1/srv/releases")
	other=$(tail -n 1 "$1/srv/releases")
	mkdir "$1/usr/lib/modules/$release"
	ln -s "/usr/src/linux-headers-$other" "$1/usr/lib/modules/$release/build"
	refused "$1" "$release" "to be built for $release, and the headers are of $other"
	local status=$?
	rm -r "$1/usr/lib/modules/$release"
	return $status
}

# older ROOT: suitable headers, of a kernel whose name says that it is too old.
older() {
	local release=6.0.0-1-amd64

	mkdir "$1/usr/lib/modules/$release"
	ln -s "/usr/src/linux-headers-$(tail -n 1 "$1/srv/releases")" "$1/usr/lib/modules/$release/build"
	refused "$1" "$release" BUILD_EXCLUSIVE
	local status=$?
	rm -r "$1/usr/lib/modules/$release"
	return $status
}

# with_hrtimers ROOT RELEASE: only that option was the reason.
with_hrtimers() {
	local headers=$1/usr/src/linux-headers-$2 file status

	for file in .config include/config/auto.conf; do
		[ ! -e "$headers/$file" ] || echo CONFIG_HIGH_RES_TIMERS=y >> "$headers/$file"
	done
	in_root "$1" dkms build -m twheel -v "$version" -k "$2"
	status=$?
	# Later tests have it without them again.
	for file in .config include/config/auto.conf; do
		[ ! -e "$headers/$file" ] || sed -i '/^CONFIG_HIGH_RES_TIMERS=/d' "$headers/$file"
	done
	return $status
}

broken() {
	local slow

	slow=$(cat "$1/srv/slow")
	step "headers that do not match are refused" other_headers "$1"
	step "a kernel older than 6.1 is refused" older "$1"
	step "a kernel without CONFIG_HIGH_RES_TIMERS is refused" refused "$1" "$slow" \
		BUILD_EXCLUSIVE
	step "and for that alone" with_hrtimers "$1" "$slow"
}
