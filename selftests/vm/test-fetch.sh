#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the scripts that fetch and build kernels and programs: failures are reported, and leave
# nothing in the cache, where it would be taken for good. With stand-ins for apt, make and QEMU,
# and packages of a few bytes.

set -u
. "$(dirname "$0")/../../tools/paths.sh"
. "$TOP/selftests/check/tap.sh"

tree=$tmp/tree
cache=$tmp/cache
# The packages of the apt stand-in, and what is wrong with it, as files in $APT.
export REPOSITORY=$tmp/repository APT=$tmp/apt PACKAGES=$TOP/tools/packages
export TWHEEL_CACHE=$cache
# Messages in another language, as far as the tools translate them.
export LANG=de_DE.UTF-8 LANGUAGE=de
unset LC_ALL TWHEEL_ACCEL

# ---- the stand-ins

make_commands() {
	# It offers what is in the file "lists", and has newer packages after an update.
	executable "$tmp/bin/apt-cache" <<-'EOF'
	[ ! -e "$APT/no-cache" ] || exit 100
	[ "${LC_ALL-}" = C ] && english=1 || english=
	lists=$APT/lists
	while [[ $1 == -* ]]; do
		case $1 in
		-t) lists=$APT/$2; [ -e "$lists.newer" ] || lists=$APT/suite; shift ;;
		-o) shift ;;
		esac
		shift
	done
	case $1 in
	pkgnames)
		grep "^$2" "$lists" || true
		;;
	policy)
		[ "$english" ] && word=Candidate: || word=Installationskandidat:
		echo "$2:"
		! grep -qx "$2" "$lists" || echo "  $word 1.0"
		;;
	show)
		shift 2
		for package; do
			grep -qx "$package" "$lists" || exit 100
		done
		;;
	depends)
		[ ! -e "$APT/no-depends" ] || exit 100
		[ "$english" ] && word=Depends: || word='Hängt ab von:'
		shift 2
		for package; do
			echo "$package"
			sed "s/^/  $word /" "$REPOSITORY/$package.depends"
		done
		;;
	esac
	EOF
	executable "$tmp/bin/apt-get" <<-'EOF'
	lists=$APT/lists
	strict=
	while [[ $1 == -* ]]; do
		case $1 in
		--error-on=any) strict=1 ;;
		-t) lists=$APT/$2; [ -e "$lists.newer" ] || lists=$APT/suite; shift ;;
		-o) shift ;;
		esac
		shift
	done
	needed() {
		for package; do
			echo "Inst $package (1.0 Debian)"
			needed $(cat "$REPOSITORY/$package.depends")
		done
	}
	case $1 in
	indextargets)
		echo 'Packages|Debian|http://localhost/debian'
		;;
	update)
		[ ! -e "$APT/no-update" ] || exit 100
		if [ -e "$APT/no-mirror" ]; then
			echo "W: Failed to fetch http://localhost/debian"
			exit ${strict:+100}
		fi
		cat "$lists.newer" > "$lists"
		;;
	install)
		[ ! -e "$APT/no-depends" ] || exit 100
		shift 2
		needed "$@" | sort -u
		;;
	download)
		shift
		[ ! -e "$APT/no-download" ] || exit 100
		for package; do
			cp "$REPOSITORY/$package.deb" .
		done
		;;
	esac
	EOF
	# Everything needed is installed, and so is the source of the kernel to build.
	executable "$tmp/bin/dpkg-query" <<-'EOF'
	case $* in
	*Version*) echo 6.12.9-1 ;;
	*) cat "$APT/installed" 2> /dev/null ||
		awk '!/^#/ && NF { print "ii " $2 }' "$PACKAGES" ;;
	esac
	EOF
	# The real one would find the real apt.
	executable "$tmp/bin/sudo" <<-'EOF'
	exec "$@"
	EOF
	PATH=$tmp/bin:$PATH
}

# package NAME [NEEDED...]: of the files in $tmp/package, in which $file was made.
package() {
	local name=$1

	shift
	mkdir -p "$tmp/package/DEBIAN"
	printf '%s\n' "Package: $name" 'Version: 1.0' 'Architecture: all' \
		'Maintainer: nobody <nobody@localhost>' 'Description: a test' \
		> "$tmp/package/DEBIAN/control"
	dpkg-deb -Znone -b "$tmp/package" "$REPOSITORY/$name.deb" > "$tmp/output" || exit
	printf '%s\n' "$@" | sed '/^$/d' > "$REPOSITORY/$name.depends"
	rm -r "$tmp/package"
}

# contents FILE: a file of the package to be made next.
contents() {
	mkdir -p "$(dirname "$tmp/package/$1")"
	cat > "$tmp/package/$1"
	chmod 755 "$tmp/package/$1"
}

# program PACKAGE FILE: a package of a script, from standard input, that also runs if truncated.
program() {
	{ echo '#!/bin/sh'; cat; echo exit; head -c 9000 /dev/zero | tr '\0' '#'; } | contents "$2"
	package "$1"
}

# filler FILE: a large one. If it is the last of a package, that is cut off there.
filler() {
	head -c 30000 /dev/zero | contents "$1"
}

bytes4() {
	printf '%b' "$(printf '\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) \
		$(($1 >> 16 & 255)) $(($1 >> 24)))"
}

# An image, in the format of the boot protocol, around standard input.
bzimage() {
	local size

	gzip > "$tmp/payload"
	size=$(wc -c < "$tmp/payload")
	head -c 497 /dev/zero
	printf '\x01'
	head -c 16 /dev/zero
	printf HdrS
	head -c 66 /dev/zero
	bytes4 0
	bytes4 $((size + 4))
	head -c 432 /dev/zero
	cat "$tmp/payload"
	bytes4 0
}

release=6.12.9+deb13-amd64
image=linux-image-$release
newest=7.3.4+deb13-amd64
newest_rt=7.3.4+deb13-rt-amd64
needed=(lib.mk kselftest.h kselftest_harness.h kselftest/ktap_helpers.sh)
checkers=(checkpatch.pl spelling.txt const_structs.checkpatch kernel-doc)

# kernel_image LINE: the package of a kernel, which is some kilobytes and a line.
kernel_image() {
	{ head -c 5000 /dev/zero; echo "$1"; } | bzimage | contents "boot/vmlinuz-$release"
	filler "usr/share/doc/$image/changelog"
	package "$image"
}

# What that kernel's modules are built with.
kernel_headers() {
	echo "include /usr/src/linux-headers-6.12.9+deb13-common/Makefile" |
		contents "usr/src/linux-headers-$release/Makefile"
	filler "usr/src/linux-headers-$release/Module.symvers"
	package "linux-headers-$release" linux-headers-6.12.9+deb13-common linux-image-amd64
}

# source FILE...: the package of a source that has these, and some that are not needed.
source_package() {
	local file dir=$tmp/source/linux-source-6.12

	for file in COPYING "$@"; do
		mkdir -p "$(dirname "$dir/$file")"
		echo "$file" > "$dir/$file"
	done
	tar -C "$tmp/source" -cJf - linux-source-6.12 | contents usr/src/linux-source-6.12.tar.xz
	package linux-source-6.12
	rm -r "$tmp/source"
}

source_files=("${needed[@]/#/tools/testing/selftests/}" "${checkers[@]/#/scripts/}")

# newest_kernel RELEASE: one that only another suite has.
newest_kernel() {
	{ head -c 5000 /dev/zero; echo "Linux version $1 (somebody)"; } | bzimage |
		contents "usr/lib/modules/$1/vmlinuz"
	filler "usr/share/doc/linux-binary-$1/changelog"
	package "linux-binary-$1"
	echo | contents usr/share/doc/linux
	package "linux-image-$1" "linux-binary-$1"
	echo "include /usr/src/linux-headers-7.3.4+deb13-common/Makefile" |
		contents "usr/src/linux-headers-$1/Makefile"
	filler "usr/src/linux-headers-$1/Module.symvers"
	package "linux-headers-$1" linux-headers-7.3.4+deb13-common libneeded
}

# In two flavours, with what their build files need.
newest_packages() {
	local name

	newest_kernel "$newest"
	newest_kernel "$newest_rt"
	echo | contents usr/src/linux-headers-7.3.4+deb13-common/Makefile
	package linux-headers-7.3.4+deb13-common
	contents usr/lib/libneeded < /dev/null
	package libneeded
	for name in bash binutils coreutils dash findutils grep make mawk perl sed; do
		contents "usr/bin/$name" < /dev/null
		package "$name"
	done
	mkdir -p "$tmp/package/usr/bin"
	ln -s usr/bin "$tmp/package/bin"
	package base-files
}

make_packages() {
	mkdir -p "$REPOSITORY"
	kernel_image "Linux version $release (somebody)"
	kernel_headers
	echo | contents usr/src/linux-headers-6.12.9+deb13-common/Makefile
	package linux-headers-6.12.9+deb13-common
	newest_packages
	source_package "${source_files[@]}"
	contents bin/busybox <<< '#!/bin/sh'
	package busybox-static
	contents usr/sbin/nginx < /dev/null
	package nginx libc6
	for file in redis-server redis-cli; do
		contents "usr/bin/$file" < /dev/null
	done
	package redis-tools libc6
	echo | contents usr/share/doc/redis
	package redis-server redis-tools
	# As the loader: if a library is missing it says so, and lists nothing.
	contents lib64/ld-linux-x86-64.so.2 <<-'EOF'
	#!/bin/bash
	root=$(dirname "${0%/*}")
	[ -e "$root/usr/lib/libz.so" ] || exit 127
	echo "	libz.so => $root/usr/lib/libz.so (0x0001)"
	EOF
	package libc6 libz
	echo | contents usr/lib/libz.so
	package libz
	program prometheus usr/bin/promtool < /dev/null
	program qemu-system-x86 usr/bin/qemu-system-x86_64 <<< 'echo QEMU emulator version 8.1.0'
	for file in qemu-system-common qemu-system-data seabios; do
		package "$file"
	done
}

# ---- tests

# fetch NAME STATUS COMMAND...: runs it, with the faults that were put into $APT, in an empty cache.
# $keep keeps what is in there.
keep=
fetch() {
	local name=$1 status=$2 got

	shift 2
	[ "$keep" ] || rm -rf "$cache"
	"$tree/$1" "${@:2}" > "$tmp/output" 2>&1
	got=$?
	case $status in
	bad) [ $got != 0 ] && [ $got != 4 ] ;;
	*) [ $got = "$status" ] ;;
	esac
	ok "$name"
}

# offers: apt works, except for what is given. Without no-update, it can fetch its lists.
offers() {
	local file

	rm -rf "$APT"
	mkdir -p "$APT"
	(cd "$REPOSITORY" && printf '%s\n' *.deb | sed 's/\.deb$//') > "$APT/suite.newer"
	grep -v 7.3.4 "$APT/suite.newer" | tee "$APT/lists.newer" > "$APT/lists"
	for file; do
		: > "$APT/$file"
	done
}

# Nothing is left but the basis for the next attempt, and the locks on which others wait.
nothing() {
	local left

	left=$(find "$1" -mindepth 1 -maxdepth 1 ! -name apt ! -name '*.lock' 2> /dev/null)
	echo "$left" >> "$tmp/output"
	[ ! "$left" ]
	ok "$2: nothing of it is left"
}

# cut_off PACKAGE: its download is truncated.
cut_off() {
	truncate -s $(($(stat -c %s "$REPOSITORY/$1.deb") / 2)) "$REPOSITORY/$1.deb"
}

# Does not die from a signal when a file exceeds the size limit.
limited() {
	(
		trap '' XFSZ
		ulimit -f "$1"
		"$tree/$2" "${@:3}" 2>&1
	) | cat > "$tmp/output"
	[ "${PIPESTATUS[0]}" != 0 ]
}

kernel_is_there() {
	local dir=$cache/kernels/6.12

	[ "$(cat "$dir/release")" = "$release" ] &&
		grep -qa "Linux version $release" "$dir/vmlinux" &&
		[ -e "$dir/build/../linux-headers-6.12.9+deb13-common/Makefile" ] &&
		! grep -q ' /usr/src' "$dir/build/Makefile"
}

# What others cannot read in a directory.
unreadable() {
	find "$1" ! -type l ! -perm -a+r -o -type d ! -perm -a+x
}

# broken_kernel NAME: with the package as it is now.
broken_kernel() {
	fetch "kernel: $1" bad selftests/vm/fetch-kernel 6.12
	nothing "$cache/kernels" "kernel: $1"
}

kernels() {
	local file name

	offers
	fetch "kernel: fetched, by an apt that speaks German" 0 selftests/vm/fetch-kernel 6.12
	kernel_is_there
	ok "kernel: with its headers"
	offers no-download
	keep=1 fetch "kernel: once" 0 selftests/vm/fetch-kernel 6.12
	broken_kernel "no download"
	offers no-download no-update
	broken_kernel "no download, and no newer lists"
	offers
	fetch "kernel: none of this version" 4 selftests/vm/fetch-kernel 6.1
	offers no-mirror
	fetch "kernel: none of this version, and no newer lists" bad selftests/vm/fetch-kernel 6.1
	offers
	: > "$APT/lists"
	fetch "kernel: none, and then newer lists" 0 selftests/vm/fetch-kernel 6.12
	kernel_is_there
	ok "kernel: it is that of the newer lists"
	offers no-cache
	broken_kernel "apt does not tell names"
	offers no-depends
	broken_kernel "apt does not tell what the headers need"
	offers
	rm -rf "$cache"
	limited 4 selftests/vm/fetch-kernel 6.12
	ok "kernel: the disk is full"
	nothing "$cache/kernels" "kernel: the disk is full"
	rm -rf "$cache"
	(umask 077; "$tree/selftests/vm/fetch-kernel" 6.12 > "$tmp/output" 2>&1) &&
		[ -z "$(unreadable "$cache/kernels" | tee -a "$tmp/output")" ]
	ok "kernel: with any umask, it is for all to read"

	for file in no-update update; do
		offers $file
		kernel_image "Linux version 6.12.8 (somebody)"
		broken_kernel "another one, $file"
		contents "boot/vmlinuz-$release" < /dev/null
		package "$image"
		broken_kernel "a file of 0 bytes, $file"
		{ echo "Linux version $release " | bzimage | head -c 1030; } |
			contents "boot/vmlinuz-$release"
		package "$image"
		broken_kernel "its image is cut off, $file"
		kernel_image "Linux version $release (somebody)"
		for name in "$image" "linux-headers-$release"; do
			cut_off "$name"
			broken_kernel "the package $name is cut off, $file"
			kernel_image "Linux version $release (somebody)"
			kernel_headers
		done
	done
}

# A kernel of another suite: a directory with its headers where they are when installed, and
# everything that they need.
newest_is_there() {
	local dir=$cache/kernels/$1 release=${2-$newest}

	[ "$(cat "$dir/release")" = "$release" ] &&
		grep -qa "Linux version $release" "$dir/vmlinux" &&
		grep -q "^include /usr/src/linux-headers-7.3.4+deb13-common/" "$dir/build/Makefile" &&
		[ -e "$dir/usr/src/linux-headers-7.3.4+deb13-common/Makefile" ] &&
		[ -x "$dir/usr/bin/make" ] && [ -L "$dir/bin" ] && [ -e "$dir/usr/lib/libneeded" ] &&
		[ ! -e "$dir/usr/lib/modules" ]
}

newest_kernels() {
	local file name

	offers
	fetch "newest: fetched, by an apt that speaks German" 0 selftests/vm/fetch-kernel newest
	newest_is_there newest
	ok "newest: of another suite, with what it needs"
	fetch "newest: by its version" 0 selftests/vm/fetch-kernel 7.3
	newest_is_there 7.3
	ok "newest: by its version, of another suite"
	# No longer in that suite, or not yet, but in that of the release before.
	mv "$APT/suite.newer" "$APT/bookworm.newer"
	: > "$APT/suite.newer"
	fetch "newest: by its version, of the release before" 0 selftests/vm/fetch-kernel 7.3
	newest_is_there 7.3
	ok "newest: by its version, all of it of the release before"
	fetch "newest: the release before has none" 4 selftests/vm/fetch-kernel newest
	nothing "$cache/kernels" "newest: the release before has none"
	offers
	fetch "newest: with PREEMPT_RT" 0 selftests/vm/fetch-kernel newest-rt
	newest_is_there newest-rt "$newest_rt"
	ok "newest: with PREEMPT_RT, the kernel of that flavour"
	fetch "newest: no flavour of this name" 4 selftests/vm/fetch-kernel newest-cloud
	nothing "$cache/kernels" "newest: no flavour of this name"
	offers no-update
	fetch "newest: out of reach" 4 selftests/vm/fetch-kernel newest
	nothing "$cache/kernels" "newest: out of reach"
	for file in no-download no-depends no-cache; do
		offers $file
		fetch "newest: $file" bad selftests/vm/fetch-kernel newest
		nothing "$cache/kernels" "newest: $file"
	done
	offers
	for name in "linux-binary-$newest" "linux-headers-$newest"; do
		cut_off "$name"
		fetch "newest: the package $name is cut off" bad selftests/vm/fetch-kernel newest
		nothing "$cache/kernels" "newest: the package $name is cut off"
		newest_kernel "$newest"
	done
	echo | contents usr/share/doc/linux
	package "linux-binary-$newest"
	fetch "newest: no image in the package" bad selftests/vm/fetch-kernel newest
	nothing "$cache/kernels" "newest: no image in the package"
}

# What apt has on the machine of signatures(): names, sizes and times, also of directories.
apt_state() {
	find "$tmp/machine" -printf '%P %y %s %T@\n' | sort
}

# The real apt is given complete lists that are not signed. Its machine is a directory: that of the
# tests may have its lists fetched at any time.
signatures() {
	local dists=$tmp/archive/dists/trixie file=main/binary-amd64/Packages machine=$tmp/machine

	mkdir -p "$dists/${file%/*}"
	: > "$dists/$file"
	printf '%s\n' 'Origin: Debian' 'Codename: trixie' 'Architectures: amd64' 'Components: main' \
		"Date: $(date -Ru)" SHA256: " $(sha256sum < "$dists/$file" | cut -d ' ' -f 1) 0 $file" \
		> "$dists/Release"
	mkdir -p "$machine"/etc/apt/{apt.conf,preferences,sources.list,trusted.gpg}.d \
		"$machine"/var/{lib/dpkg,{lib/apt/lists,cache/apt/archives}/partial}
	echo "deb [trusted=yes] file:$tmp/archive trixie main" > "$machine/etc/apt/sources.list"
	echo "deb file:$tmp/nowhere trixie main" > "$machine/etc/apt/sources.list.d/other.list"
	: > "$machine/var/lib/dpkg/status"
	printf '%s\n' "Dir \"$machine\";" "Dir::State::status \"$machine/var/lib/dpkg/status\";" \
		> "$tmp/apt.conf"
	executable "$tmp/real/apt-get" <<-EOF
	case \$* in
	indextargets*) echo 'Packages|Debian|file:$tmp/archive' ;;
	*) APT_CONFIG=$tmp/apt.conf exec /usr/bin/apt-get "\$@" ;;
	esac
	EOF
	apt_state > "$tmp/before"
	PATH=$tmp/real:$PATH fetch "lists: not signed" 4 selftests/vm/apt-of trixie update
	grep -q 'is not signed' "$tmp/output"
	ok "lists: they are refused for that"
	sed -i.own 's/signed-by=[^]]*/trusted=yes/' "$tree/selftests/vm/apt-of"
	PATH=$tmp/real:$PATH fetch "lists: not signed, of a trusted source" 0 selftests/vm/apt-of trixie update
	mv "$tree/selftests/vm/apt-of.own" "$tree/selftests/vm/apt-of"
	apt_state | diff "$tmp/before" - > "$tmp/output"
	ok "lists: the machine's own apt is as it was"
	APT_CONFIG=$tmp/apt.conf /usr/bin/apt-get -q -o APT::Sandbox::User=root update \
		> "$tmp/output" 2>&1
	! apt_state | cmp -s "$tmp/before" -
	ok "lists: it would not be if they were fetched for the machine"
}

sources() {
	offers
	fetch "source: fetched" 0 tools/fetch-source
	[ "$(cd "$cache/linux" && find . -type f | wc -l)" = "${#source_files[@]}" ]
	ok "source: all that is needed"
	for file in no-update update; do
		offers no-download $file
		fetch "source: no download, $file" bad tools/fetch-source
		nothing "$cache" "source: no download, $file"
		offers $file
		source_package "${source_files[@]:1}"
		fetch "source: a file is missing, $file" bad tools/fetch-source
		nothing "$cache" "source: a file is missing, $file"
		source_package "${source_files[@]}"
	done
	offers no-update
	: > "$APT/lists"
	fetch "source: none" bad tools/fetch-source
	nothing "$cache" "source: none"
}

# software_fails NAME: and nothing is left.
software_fails() {
	fetch "software: $1" bad selftests/vm/fetch-software
	nothing "$cache" "software: $1"
}

software() {
	offers
	fetch "software: fetched, by an apt that speaks German" 0 selftests/vm/fetch-software
	[ "$(cd "$cache/software" && find . -type f | sort | tr '\n' ' ')" = \
		"./usr/bin/redis-cli ./usr/bin/redis-server ./usr/lib/libz.so ./usr/sbin/nginx " ]
	ok "software: with the library, and nothing else"
	for file in no-update update; do
		offers no-download $file
		software_fails "no download, $file"
		offers no-depends $file
		software_fails "apt does not tell what it needs, $file"
		offers $file
		: > "$REPOSITORY/libc6.depends"
		software_fails "a library is missing, $file"
		echo libz > "$REPOSITORY/libc6.depends"
		contents usr/bin/redis-server < /dev/null
		package redis-tools libc6
		software_fails "a program is missing, $file"
		for name in redis-server redis-cli; do
			contents "usr/bin/$name" < /dev/null
		done
		package redis-tools libc6
	done
}

busybox() {
	offers
	umask 077
	fetch "busybox: fetched" 0 selftests/vm/fetch-busybox
	umask 022
	[ -x "$cache/busybox/bin/busybox" ] &&
		[ -z "$(unreadable "$cache/busybox" | tee -a "$tmp/output")" ]
	ok "busybox: for all to use"
	for file in no-update update; do
		offers no-download $file
		fetch "busybox: no download, $file" bad selftests/vm/fetch-busybox
		nothing "$cache" "busybox: no download, $file"
	done
	offers
	contents bin/busybox <<< $'#!/bin/sh\nexit 1'
	package busybox-static
	fetch "busybox: does not run" bad selftests/vm/fetch-busybox
	nothing "$cache" "busybox: does not run"
}

promtool() {
	offers
	fetch "promtool: fetched" 0 selftests/check/fetch-promtool
	[ -x "$cache/promtool" ]
	ok "promtool: where it is looked for"
	offers no-download
	keep=1 fetch "promtool: once" 0 selftests/check/fetch-promtool
	for file in no-update update; do
		offers no-download $file
		fetch "promtool: no download, $file" bad selftests/check/fetch-promtool
		nothing "$cache" "promtool: no download, $file"
		offers $file
		cut_off prometheus
		fetch "promtool: cut off, $file" bad selftests/check/fetch-promtool
		nothing "$cache" "promtool: cut off, $file"
		program prometheus usr/bin/promtool < /dev/null
	done
	rm -rf "$cache"
	limited 4 selftests/check/fetch-promtool
	ok "promtool: the disk is full"
	nothing "$cache" "promtool: the disk is full"
	program prometheus usr/bin/promtool <<< 'exit 1'
	fetch "promtool: does not run" bad selftests/check/fetch-promtool
	nothing "$cache" "promtool: does not run"
}

# qemu_fails NAME: and nothing is left.
qemu_fails() {
	fetch "QEMU: $1" bad selftests/vm/fetch-qemu
	nothing "$cache" "QEMU: $1"
}

# If this machine's QEMU is too old.
qemus() {
	local qemu=usr/bin/qemu-system-x86_64

	executable "$tmp/bin/qemu-system-x86_64" <<< 'echo QEMU emulator version 7.2.0'
	offers
	fetch "QEMU: fetched" 0 selftests/vm/fetch-qemu
	[ "$(tail -n 5 "$tmp/output" | sed -n 1p)" = "$cache/qemu/$qemu" ] && [ -x "$cache/qemu/$qemu" ]
	ok "QEMU: its command is printed"
	offers no-download no-update
	keep=1 fetch "QEMU: once" 0 selftests/vm/fetch-qemu
	fetch "QEMU: out of reach" 4 selftests/vm/fetch-qemu
	nothing "$cache" "QEMU: out of reach"
	offers no-download
	qemu_fails "no download"
	offers
	cut_off qemu-system-x86
	qemu_fails "cut off"
	program qemu-system-x86 $qemu <<< 'exit 1'
	qemu_fails "does not run"
	program qemu-system-x86 $qemu <<< 'echo QEMU emulator version 8.0.5'
	qemu_fails "too old"
	program qemu-system-x86 $qemu <<< 'echo QEMU emulator version 8.1.0'
	rm -rf "$cache"
	limited 4 selftests/vm/fetch-qemu
	ok "QEMU: the disk is full"
	nothing "$cache" "QEMU: the disk is full"
	sed -i.all /qemu/d "$APT/suite.newer"
	fetch "QEMU: not offered" 4 selftests/vm/fetch-qemu
	mv "$APT/suite.newer.all" "$APT/suite.newer"
	keep=1 fetch "QEMU: it is by then" 0 selftests/vm/fetch-qemu
	executable "$tmp/bin/qemu-system-x86_64" <<< 'echo QEMU emulator version 10.0.2'
	fetch "QEMU: this machine's is new enough" 0 selftests/vm/fetch-qemu
	[ "$(cat "$tmp/output")" = qemu-system-x86_64 ] && [ ! -e "$cache/qemu" ]
	ok "QEMU: that is taken"
	rm "$tmp/bin/qemu-system-x86_64"
}

# root_fails NAME STATUS: and nothing is left.
root_fails() {
	fetch "root: $1" "$2" selftests/vm/fetch-root bookworm
	nothing "$cache/roots" "root: $1"
}

# Nothing is mounted, and root privileges are not needed.
roots() {
	local name

	executable "$tmp/bin/id" <<< 'echo 0'
	executable "$tmp/bin/unshare" <<-'EOF'
	while [[ $1 == --* ]]; do
		shift
	done
	exec "$@"
	EOF
	executable "$tree/selftests/vm/in-root" <<< 'shift; exec "$@"'
	executable "$tmp/bin/debootstrap" <<-'EOF'
	set -e
	while [[ $1 == --* ]]; do
		shift
	done
	mkdir -p "$2/etc/apt/apt.conf.d" "$2/var/cache/apt/archives"
	head -c 5000 /dev/zero > "$2/etc/large"
	echo "W: retrieving"
	[ ! -e "$APT/no-download" ] || { echo "E: cut off"; exit 1; }
	echo "$1" > "$2/etc/debian_version"
	EOF
	offers
	fetch "root: made" 0 selftests/vm/fetch-root bookworm
	[ "$(cat "$cache/roots/bookworm/etc/debian_version")" = bookworm ] &&
		[ "$(grep -c 'signed-by=' "$cache/roots/bookworm/etc/apt/sources.list")" = 3 ]
	ok "root: with signed sources"
	offers no-download
	keep=1 fetch "root: once" 0 selftests/vm/fetch-root bookworm
	root_fails "cut off" 4
	grep -q 'E: cut off' "$tmp/output"
	ok "root: cut off: what debootstrap says of it is passed on"
	offers no-update
	root_fails "no package lists" bad
	offers
	rm -rf "$cache"
	limited 4 selftests/vm/fetch-root bookworm
	ok "root: the disk is full"
	nothing "$cache/roots" "root: the disk is full"
	for name in id unshare debootstrap; do
		rm "$tmp/bin/$name"
	done
}

# newer_source VERSION: a package of a source that only another suite has, of this version.
newer_source() {
	local dir=$tmp/source/linux-source-7.3

	mkdir -p "$dir"
	echo mainmenu > "$dir/Kconfig"
	tar -C "$tmp/source" -cJf - linux-source-7.3 | contents usr/src/linux-source-7.3.tar.xz
	rm -r "$tmp/source"
	echo "linux ($1) trixie-backports; urgency=medium" | gzip |
		contents usr/share/doc/linux-source-7.3/changelog.Debian.gz
	filler usr/src/patches
	package linux-source-7.3
}

# source_fails NAME STATUS: a kernel is not built, and nothing is left of a source.
source_fails() {
	fetch "build: $1" "$2" selftests/vm/build-kernel uml
	! compgen -G "$cache/linux-source*" >> "$tmp/output"
	ok "build: $1: no source is left"
}

# The source of a kernel comes from another suite.
build_sources() {
	newer_source 7.3.9-1
	offers
	fetch "build: its source is fetched" 0 selftests/vm/build-kernel uml
	[ "$(cd "$cache" && echo linux-source*)" = linux-source-7.3.9-1 ] &&
		[ -e "$cache/linux-source-7.3.9-1/Kconfig" ]
	ok "build: the source is where it is looked for, and nothing else of it is left"
	offers no-update
	source_fails "out of reach" 4
	offers no-download
	source_fails "no download" bad
	offers
	sed -i /linux-source-7.3/d "$APT/suite.newer"
	source_fails "not offered" 4
	offers
	cut_off linux-source-7.3
	source_fails "the package is cut off" bad
	newer_source 7.4.1-1
	source_fails "the package is of another version" bad
	head -c 100 /dev/zero | contents usr/src/linux-source-7.3.tar.xz
	echo "linux (7.3.9-1) trixie-backports; urgency=medium" | gzip |
		contents usr/share/doc/linux-source-7.3/changelog.Debian.gz
	package linux-source-7.3
	source_fails "what is in the package is no archive" bad
}

# build NAME STATUS: with what the stand-in for make does, in $tmp/make.
build() {
	mkdir -p "$cache/linux-source-7.3.9-1"
	echo mainmenu > "$cache/linux-source-7.3.9-1/Kconfig"
	: > "$tmp/made"
	keep=1 fetch "build: $1" "$2" selftests/vm/build-kernel uml
}

# How often a kernel was built.
made() {
	[ "$(wc -l < "$tmp/made")" = "$1" ]
}

builds() {
	local own before other=$cache/built/uml-000000000000 old=$cache/built/uml-111111111111

	rm -rf "$cache"
	executable "$tmp/bin/make" <<-EOF
	for argument; do
		case \$argument in
		O=*) out=\${argument#O=} ;;
		KBUILD_BUILD_*) export "\$argument" ;;
		allnoconfig) exit ;;
		esac
	done
	echo made >> "$tmp/made"
	echo "  CC      main.o"
	mkdir -p "\$out/include/config"
	echo 7.3.9 > "\$out/include/config/kernel.release"
	# What says otherwise who built it, on which machine, how often and when.
	echo "Linux version 7.3.9 (\${KBUILD_BUILD_USER:?}@\${KBUILD_BUILD_HOST:?})" \
		"#\${KBUILD_BUILD_VERSION:?} \${KBUILD_BUILD_TIMESTAMP:?}" > "\$out/vmlinux"
	. "$tmp/make"
	EOF
	executable "$tmp/bin/objcopy" <<-'EOF'
	[ ! -e "$APT/no-room" ] || exit 1
	exec cp "$2" "$3"
	EOF

	: > "$tmp/make"
	build_sources
	rm -rf "$cache"

	echo 'exit 2' > "$tmp/make"
	build "make fails" bad
	nothing "$cache/kernels" "build: make fails"
	build "make fails once more" bad
	made 1
	ok "build: what failed is made again"
	# shellcheck disable=SC2016 # expanded by make's stand-in
	echo 'echo > "$out/vmlinux"' > "$tmp/make"
	build "what was made is no kernel" bad
	nothing "$cache/kernels" "build: what was made is no kernel"

	: > "$tmp/make"
	offers no-room
	build "there is no room for it" bad
	nothing "$cache/kernels" "build: there is no room for it"
	offers
	rm -rf "$cache/built"
	: > "$tmp/made"
	mkdir -p "$other" "$old"
	touch -d '8 days ago' "$old"
	build "made" 0
	own=$(readlink "$cache/kernels/uml/build")
	made 1 && [ -e "$own/built" ] && [ "$(cat "$cache/kernels/uml/release")" = 7.3.9 ]
	ok "build: and put where it is looked for"
	[ -e "$other" ] && [ ! -e "$old" ]
	ok "build: another clone's is kept, an old one not"
	touch -d '8 days ago' "$own"
	build "it is there" 0
	made 0 && [ -z "$(find "$own" -maxdepth 0 -mtime +6)" ]
	ok "build: once, and it counts as in use"
	# The other clone has its own turn.
	touch -d '8 days ago' "$own"
	echo another > "$cache/kernels/uml/key"
	build "another clone's is there" 0
	made 0 && [ -z "$(find "$own" -maxdepth 0 -mtime +6)" ]
	ok "build: what was made is taken, and counts as in use"
	# Only the owner can mark it as in use.
	executable "$tmp/bin/touch" <<< 'exit 1'
	before=$(stat -c %i "$cache/kernels/uml")
	build "another user's" 0
	made 0 && [ "$(stat -c %i "$cache/kernels/uml")" = "$before" ]
	ok "build: it is taken as it is"
	rm "$tmp/bin/touch"
	rm -r "$own"
	build "somebody has removed it" 0
	made 1 && [ -e "$own/built" ]
	ok "build: it is made again"
	rm "$tmp/bin/make" "$tmp/bin/objcopy"
}

# accel NAME ANSWER: what it prints. On standard error it may say that KVM is tried, no more.
accel() {
	local answer

	answer=$("$tree/selftests/vm/accel" /dev/null 2> "$tmp/output") && [ "$answer" = "$2" ] &&
		! grep -qvx 'Trying whether KVM works here' "$tmp/output"
	ok "KVM: $1"
}

# A machine that boots, and has /dev/kvm.
kvm() {
	local kvm=$tmp/kvm boot=$tmp/boot_id qemu=$tmp/bin/qemu-system-x86_64

	rm -rf "$cache"
	mkdir -p "$cache/busybox/bin"
	: > "$cache/busybox/bin/busybox"
	sed -i "s|/dev/kvm|$kvm|g; s|/proc/sys/kernel/random/boot_id|$boot|" "$tree/selftests/vm/accel"
	executable "$tmp/good" <<-'EOF'
	while [ "$1" != -serial ]; do
		shift
	done
	echo alive > "${2#file:}"
	EOF
	# The shell would report it.
	# shellcheck disable=SC2016 # the stand-in's shell expands it
	executable "$tmp/bad" <<< 'ulimit -c 0; kill -ABRT $$'
	# Out of time.
	executable "$tmp/slow" <<< 'exit 124'
	echo first > "$boot"
	accel "none" tcg
	: > "$kvm"
	cp "$tmp/good" "$qemu"
	executable "$tmp/bin/cpio" <<< 'exit 1'
	keep=1 fetch "KVM: it cannot be tried" bad selftests/vm/accel /dev/null
	! compgen -G "$cache/accel.*" > "$tmp/output"
	ok "KVM: that is no answer"
	rm "$tmp/bin/cpio"
	cp "$tmp/slow" "$qemu"
	accel "a slow attempt" tcg
	cp "$tmp/good" "$qemu"
	accel "it is tried again at once" kvm
	cp "$tmp/bad" "$qemu"
	accel "the answer stays" kvm
	echo second > "$boot"
	accel "until the machine boots; QEMU aborts" tcg
	cp "$tmp/good" "$qemu"
	accel "that answer stays, too" tcg
	rm "$cache"/accel.*
	# The answer cannot be kept.
	limited 0 selftests/vm/accel /dev/null
	accel "an attempt whose answer could not be kept" kvm
}

# With a module that depmod is not asked about.
initramfs() {
	mkdir -p "$tmp/modules" "$tmp/job" "$tree/build/tools/examples"
	: > "$tmp/modules/one.ko"
	executable "$tmp/bin/depmod" < /dev/null
	executable "$tree/build/tools/twctl" < /dev/null
	executable "$tree/build/selftests/list" < /dev/null
	chmod 700 "$tree/build/tools/twctl" "$tree/build/tools/examples"
	chmod 600 "$tree/build/selftests/list"
	(umask 077; "$tree/selftests/vm/initramfs" 6.12 "$tmp/modules" "$tmp/job" \
		> "$tmp/initrd" 2> "$tmp/output")
	cpio -itv < "$tmp/initrd" > "$tmp/output" 2>&1
	grep -q '^-rwxr-xr-x .* twheel/tools/twctl$' "$tmp/output" &&
		grep -q '^drwxr-xr-x .* twheel/tools/examples$' "$tmp/output" &&
		grep -q '^-rw.r-.r-. .* twheel/selftests/list$' "$tmp/output" &&
		grep -q '^drwxr-xr-x .* \.$' "$tmp/output"
	ok "guest: what a umask hid is for all to read"
}

# What Debian 13 has instead of a package provides that package.
packages() {
	mkdir -p "$APT"
	sed -n 's/^ii //p' < <(dpkg-query -W) | sed 's/^libelf1$/libelf1t64, libelf1 (= 0.192-4), other/
		s/^/ii /' > "$tmp/installed"
	mv "$tmp/installed" "$APT/installed"
	grep -q '^ii libelf1t64,' "$APT/installed" &&
		"$tree/tools/deps" kernel > "$tmp/output" 2>&1
	ok "packages: another one provides what is needed"
	sed -i '/libelf1/d' "$APT/installed"
	! "$tree/tools/deps" kernel > "$tmp/output" 2>&1 &&
		grep -q '^  libelf1 ' "$tmp/output" && ! grep -q libssl3 "$tmp/output"
	ok "packages: one is missing"
	rm "$APT/installed"
}

mkdir -p "$tree"
cp -r "$TOP/tools" "$tree/"
mkdir "$tree/selftests"
cp -r "$TOP"/selftests/{check,vm} "$tree/selftests/"
make_commands
make_packages
packages
kernels
make_packages
newest_kernels
make_packages
signatures
sources
software
busybox
promtool
qemus
roots
builds
kvm
initramfs
finish
