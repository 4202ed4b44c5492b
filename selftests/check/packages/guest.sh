# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: what was installed in a root is used in a guest.

# What a guest does not need, or has itself.
unused=(boot build dev proc sys tmp srv usr/src usr/share/{doc,info,locale,man}
	'usr/lib/modules/*/kernel' var/cache var/lib/apt var/lib/dkms)

# collect ROOT RELEASE DIR: the modules, however dkms has compressed them, and in /srv/root
# everything that is installed, with the packages' own test.
collect() {
	local file root=$3/files/srv/root

	mkdir -p "$3/modules"
	for file in "$1/lib/modules/$2"/updates/dkms/*.ko*; do
		cp "$file" "$3/modules/" || return
	done
	find "$3/modules" -name '*.xz' -exec unxz {} +
	mkdir -p "$root"/{dev,proc,srv,sys,tmp}
	tar -C "$1" "${unused[@]/#/--exclude=./}" -cf - . | tar -C "$root" -xf - &&
		cp -r "$TOP/debian/tests" "$root/srv/" || return
	# The test compiles its examples.
	mkdir "$root/usr/share/doc" &&
		cp -r "$1/usr/share/doc/libtwheel-dev" "$root/usr/share/doc/"
}

# As on a machine with the packages installed, with its own modprobe, compiler and library.
# shellcheck disable=SC2016 # the guest's shell expands these
guest='
	set -e
	root="chroot /srv/root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin"
	for dir in dev proc sys; do
		mount -o rbind /$dir /srv/root/$dir
	done
	uname -r
	$root modprobe twheel
	cat /sys/module/twheel/version
	$root /srv/tests/timer
	! grep "^twheel " /proc/modules'

# As on a machine that systemd has booted; what it boots is the test, and it ends with its status.
# shellcheck disable=SC2016
booted='
	set -e
	unit=/srv/root/etc/systemd/system/test.service
	printf "%s\n" "[Unit]" SuccessAction=exit FailureAction=exit "[Service]" Type=oneshot \
		ExecStart=/srv/tests/services StandardOutput=file:/srv/said StandardError=inherit \
		> $unit
	# Nobody logs in, and the console is for the log of the kernel.
	ln -s /dev/null /srv/root/etc/systemd/system/getty.target
	set +e
	unshare --mount --pid --fork sh -ec "
		mount -o bind /srv/root /srv/root
		cd /srv/root
		mount -t proc proc proc
		mount -t tmpfs tmpfs run
		mount -o rbind /dev dev
		mount -o rbind /sys sys
		mount -o move . /
		exec chroot . env -i container=guest PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			/lib/systemd/systemd --unit=test.service"
	status=$?
	cat /srv/root/srv/said
	exit $status'

# in_guest ROOT RELEASE COMMAND: runs it where what is installed in the root is in /srv/root.
in_guest() {
	local dir=$tmp/guest

	rm -rf "$dir"
	collect "$1" "$2" "$dir" || return
	# The size of what is unpacked once more, and only half of the memory is for files.
	"$TOP/selftests/vm/run" --kernel "$1/srv/vmlinuz-$2" --modules "$dir/modules" \
		--mem 3G --add "$dir/files" -- "$3" > "$tmp/said"
	local status=$?
	cat "$tmp/said"
	return $status
}

# fires ROOT RELEASE: a timer expires, with the modules installed there for this kernel.
fires() {
	in_guest "$1" "$2" "$guest" &&
		[ "$(sed -n 1,2p "$tmp/said")" = "$2"$'\n'"$version" ] &&
		grep -q '^a timer expired, ' "$tmp/said"
}

# serves ROOT RELEASE: systemd starts, reloads and stops the services there.
serves() {
	in_guest "$1" "$2" "$booted" && grep -qx 'the services work' "$tmp/said"
}
