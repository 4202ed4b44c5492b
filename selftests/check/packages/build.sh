# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: building packages in a root.

# An earlier version, which never existed: the same one with another number.
OLD=0.0.9

# make_deb ROOT DIR: builds the packages of the tree in ROOT, and puts them into DIR.
make_deb() {
	in_root "$1" make -s -C /build/twheel deb && mkdir -p "$2" &&
		cp "$1"/build/twheel/build/deb/* "$2/"
}

# age ROOT
age() {
	echo "$OLD" > "$1/build/twheel/VERSION"
	sed -i "1s/(.*)/($OLD-0twheel1)/" "$1/build/twheel/debian/changelog"
}

# clean ROOT: nothing in the tree is new or changed except build/.
clean() {
	diff -r --no-dereference --exclude=build --exclude=.git "$TOP" "$1/build/twheel"
}

# Errors and warnings are failures, and so are unused overrides.
run_lintian() {
	in_root "$1" lintian --allow-root --fail-on error,warning --tag-display-limit 0 \
		"/build/twheel/build/deb/twheel_$version-0twheel1_amd64.changes"
}

# Puts new and old packages into $tmp/SUITE.
build() {
	local root=$tmp/$suite/build

	mkdir -p "$tmp/$suite"
	step "a root to build in" copy_of "$suite" build "$root" || return
	copy_tree "$root"
	step "make deb" make_deb "$root" "$tmp/$suite/new" || return
	step "it leaves the tree as it was" clean "$root"
	step "lintian finds no fault" run_lintian "$root"
	age "$root"
	step "make deb of version $OLD" make_deb "$root" "$tmp/$suite/old" || return
	rm -rf "$root"
}
