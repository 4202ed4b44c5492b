# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: what was installed in a root is used in a guest.

# with_libraries ROOT DIR FILE...: programs of a root, and what they load.
with_libraries() {
	local root=$1 dir=$2 file

	shift 2
	# "NAME => FILE (ADDRESS)", and the loader itself is "FILE (ADDRESS)".
	{
		printf '%s\n' "$@"
		in_root "$root" ldd "$@" | sed -nE 's/.*[ \t](\/[^ ]+) \(0x.*/\1/p'
	} | sort -u | while read -r file; do
		install -D "$(in_root "$root" realpath "$file" | sed "s|^|$root|")" "$dir$file" ||
			return
	done
}

# collect ROOT RELEASE DIR: the modules, whatever dkms has compressed them with, and programs.
collect() {
	local file

	mkdir -p "$3/modules"
	for file in "$1/lib/modules/$2"/updates/dkms/*.ko*; do
		cp "$file" "$3/modules/" || return
	done
	find "$3/modules" -name '*.xz' -exec unxz {} +
	with_libraries "$1" "$3/files" /usr/bin/twctl /srv/timer
}

# compile_test ROOT: the program of the packages' own test.
compile_test() {
	cp "$TOP/debian/tests/timer.c" "$1/srv/" || return
		# shellcheck disable=SC2016 # that shell expands it
	in_root "$1" sh -c 'gcc -O2 -Wall -Werror -o /srv/timer /srv/timer.c \
			$(pkg-config --cflags --libs libtwheel)'
}

# What the guest's own PATH has first is not of the package.
# shellcheck disable=SC2016 # the guest's shell expands these
guest='
	set -e
	uname -r
	modprobe twheel
	cat /sys/module/twheel/version
	/srv/timer
	/usr/bin/twctl sleep 200ms
	/usr/bin/twctl status
	rmmod twheel'

# fires ROOT RELEASE: a timer, by the modules that are installed there for this kernel.
fires() {
	local dir=$tmp/guest

	rm -rf "$dir"
	collect "$1" "$2" "$dir" || return
	"$TOP/tools/vm/run" --kernel "$1/srv/vmlinuz-$2" --modules "$dir/modules" \
		--add "$dir/files" -- "$guest" > "$dir/said"
	local status=$?
	cat "$dir/said"
	[ $status = 0 ] && [ "$(sed -n 1,2p "$dir/said")" = "$2"$'\n'"$version" ] &&
		grep -q '^a timer expired, ' "$dir/said"
}
