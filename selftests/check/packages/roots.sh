# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: roots of Debian. What takes long to install in them is installed once, and tests
# work in copies.

# in_root ROOT COMMAND...: as on a machine with that Debian, in a default environment.
in_root() {
	local root=$1

	shift
	"$TOP/selftests/vm/in-root" "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@" < /dev/null
}

apt_get() {
	local root=$1

	shift
	in_root "$root" apt-get -q -y --no-install-recommends "$@"
}

# copy_tree ROOT: copies this tree to /build/twheel, as if it had been unpacked there.
copy_tree() {
	rm -rf "$1/build"
	mkdir -p "$1/build/twheel"
	tar -C "$TOP" --exclude=./build --exclude=./.git -cf - . | tar -C "$1/build/twheel" -xf -
}

# copy_of SUITE PURPOSE ROOT: a root that prepare_PURPOSE has prepared, once.
copy_of() {
	local from=$CACHE/roots/$1-$2 copy status

	if [ ! -e "$from" ]; then
		"$TOP/selftests/vm/fetch-root" "$1" || return
		copy=$(mktemp -d "$CACHE/roots/tmp.XXXXXX") || return
		cp -a "$CACHE/roots/$1" "$copy/root" && "prepare_$2" "$copy/root" "$1" &&
			mv -T "$copy/root" "$from"
		status=$?
		rm -rf "$copy"
		# Another user of the cache may have been faster.
		[ $status = 0 ] || [ -e "$from" ] || return
	fi
	cp -a "$from" "$3"
}

# For builds: with make, and what `make deb` would install.
prepare_build() {
	apt_get "$1" update && apt_get "$1" install make && copy_tree "$1" &&
		in_root "$1" /build/twheel/tools/deps --install deb lint-deb || return
	rm -rf "$1/build" "$1"/var/cache/apt/archives/*.deb
}

# release ROOT KERNEL: the newest for which this Debian has headers: of one version, or of all.
release() {
	local version='[0-9]+\.[0-9]+'

	[ "$2" = newest ] || version=${2//./\\.}\\.
	in_root "$1" apt-cache pkgnames linux-headers- |
		sed -nE "s/^linux-headers-(${version}[0-9.]*([-+]deb[0-9]+|-[0-9]+)*(\+[a-z0-9]+)?-amd64)\$/\1/p" |
		sort -V | tail -n 1
}

# install_kernel ROOT RELEASE SUITE: with its headers, and without an initramfs, as nothing boots
# from here. dkms compresses its modules like those of the kernel. /srv has the image.
install_kernel() {
	local file install=(env INITRD=No apt-get -q -y --no-install-recommends install
		"linux-image-$2" "linux-headers-$2")

	# A kernel from the backports needs other packages from there.
	in_root "$1" "${install[@]}" || in_root "$1" "${install[@]}" -t "$3-backports" || return
	for file in "$1/boot/vmlinuz-$2" "$1/usr/lib/modules/$2/vmlinuz"; do
		[ ! -e "$file" ] || ln -f "$file" "$1/srv/vmlinuz-$2" || return
	done
	[ -s "$1/srv/vmlinuz-$2" ]
}

# without_hrtimers ROOT RELEASE: similar headers, of a kernel configured without high-resolution
# timers. Prints its release.
without_hrtimers() {
	local name=${2%-amd64}-slow-amd64 to file

	to=$1/usr/src/linux-headers-$name
	cp -a "$1/usr/src/linux-headers-$2" "$to"
	for file in .config include/config/auto.conf; do
		[ ! -e "$to/$file" ] || sed -i '/^CONFIG_HIGH_RES_TIMERS=/d' "$to/$file"
	done
	sed -i "s/\"$2\"/\"$name\"/" "$to/include/generated/utsrelease.h"
	# It names its own directory.
	sed -i "s|/linux-headers-$2\$|/linux-headers-$name|" "$to/Makefile"
	mkdir -p "$1/lib/modules/$name"
	ln -s "/usr/src/linux-headers-$name" "$1/lib/modules/$name/build"
	echo "$name"
}

# For installations: with dkms, all kernels and their headers, and what is needed to compile
# programs. /srv/releases lists the kernels. Starting daemons is denied.
prepare_use() {
	local root=$1 kernel release

	printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	apt_get "$root" update &&
		apt_get "$root" install systemd udev dkms gcc libc6-dev pkgconf openssl || return
	# Not only for the newest kernel and the running one, which does not exist here.
	echo 'autoinstall_all_kernels="yes"' >> "$root/etc/dkms/framework.conf"
	for kernel in ${kernels[$2]}; do
		release=$(release "$root" "$kernel")
		[ "$release" ] && install_kernel "$root" "$release" "$2" || return
		echo "$release" >> "$root/srv/releases"
	done
	without_hrtimers "$root" "$release" > "$root/srv/slow" || return
	# As after any installation.
	for release in "$root"/lib/modules/*; do
		in_root "$root" depmod "${release##*/}"
	done
	rm -f "$root"/var/cache/apt/archives/*.deb
}
