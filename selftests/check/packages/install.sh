# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: installing, upgrading, removing and purging in a root.

# module_versions ROOT: of the modules that modprobe finds; a line for each kernel and module.
module_versions() {
	local release module

	while read -r release; do
		for module in twheel twheel_bench; do
			echo "$release $module $(in_root "$1" modinfo -k "$release" -F version \
				"$module")"
		done
	done < "$1/srv/releases"
}

# has ROOT VERSION: all kernels have the modules, and no other version is left anywhere.
has() {
	local left

	module_versions "$1" > "$tmp/versions" 2>&1
	cat "$tmp/versions"
	find "$1/usr/lib/modules" -name 'twheel*'
	[ "$(awk '{ print $3 }' "$tmp/versions" | sort -u)" = "$2" ] || return
	left=$(cd "$1" && ls -d usr/src/twheel-* var/lib/dkms/twheel/[0-9]*)
	echo "$left"
	[ "$left" = "usr/src/twheel-$2"$'\n'"var/lib/dkms/twheel/$2" ]
}

# A kernel that dkms has to leave out does not make the package fail.
left_out() {
	[ ! -e "$1/lib/modules/$(cat "$1/srv/slow")/updates" ]
}

# The rule's group exists, and the device is assigned to it.
group() {
	in_root "$1" getent group twheel &&
		grep -q 'GROUP="twheel"' "$1/usr/lib/udev/rules.d/60-twheel.rules"
}

# No script of the packages makes the firmware trust a key.
enrols_none() {
	! grep -E 'mokutil|import|enrol' "$1"/var/lib/dpkg/info/{twheel-*,libtwheel*}.p* \
		"$1"/usr/src/twheel-*/dkms.conf
}

# The tools find what they need, and print their version.
tools() {
	in_root "$1" twctl --version && in_root "$1" twbench --version &&
		[ -e "$1/usr/share/man/man1/twctl.1.gz" ] &&
		[ -e "$1/usr/share/man/man3/twheel_cancel_key.3.gz" ] &&
		[ -e "$1/usr/share/bash-completion/completions/twctl" ]
}

# It finds the library, and each call in it. -B: Python must not leave behind files of its own.
python_module() {
	in_root "$1" python3 -B -c 'import twheel; twheel._load()'
}

# Where this release of Debian has its units.
units() {
	local unit

	for unit in twheel-idle.service twheel-idle-log.service twheel-metrics.service \
		twheel-metrics.timer; do
		[ -e "$1/usr/lib/systemd/system/$unit" ] ||
			[ -e "$1/lib/systemd/system/$unit" ] || return
	done
	[ -e "$1/etc/twheel/idle.d/README" ]
}

enabled_units() {
	find "$1/etc/systemd" -name 'twheel*'
}

# A purge must undo that.
enable_units() {
	[ -z "$(enabled_units "$1")" ] &&
		in_root "$1" systemctl enable twheel-idle.service twheel-metrics.timer &&
		[ "$(enabled_units "$1" | wc -l)" = 2 ]
}

# Another module is built against each of the installed modules, as described in kernel-api.rst.
builds_module() {
	local release

	mkdir -p "$1/srv/module"
	while read -r release; do
		cp "$TOP"/tools/examples/module/* "$1/srv/module/" &&
			in_root "$1" make -C "/lib/modules/$release/build" M=/srv/module \
				TWHEEL="/var/lib/dkms/twheel/kernel-$release-x86_64/devel" modules &&
			in_root "$1" modinfo -F depends /srv/module/twheel_example.ko |
				grep -qx twheel ||
			return
		rm -r "$1"/srv/module/*
	done < "$1/srv/releases"
}

packages=(libtwheel-dev libtwheel0 python3-twheel twheel-dkms twheel-tools)

# put ROOT FROM: installs the packages in a directory, without the debug packages.
put() {
	local name

	rm -rf "$1/srv/packages"
	mkdir "$1/srv/packages"
	for name in "${packages[@]}"; do
		cp "$2/${name}_"*.deb "$1/srv/packages/" || return
	done
	in_root "$1" sh -c 'apt-get -q -y --no-install-recommends install /srv/packages/*.deb'
}

# take ROOT HOW: removes or purges them, and what was installed for them, even if others recommend
# it.
take() {
	apt_get "$1" "$2" --auto-remove -o APT::AutoRemove::RecommendsImportant=false \
		-o APT::AutoRemove::SuggestsImportant=false "${packages[@]}"
}

# installed ROOT FROM VERSION
installed() {
	put "$1" "$2" && has "$1" "$3"
}

collected=var/lib/prometheus/node-exporter

# write_metrics ROOT: as twheel-metrics.service does, which may be killed meanwhile, and others do.
write_metrics() {
	mkdir -p "$1/$collected" && touch "$1/$collected"/{twheel.prom,twheel.prom.new,other.prom}
}

# Only those of others are left. node_exporter would go on serving what is in twheel.prom.
metrics_removed() {
	[ "$(ls "$1/$collected")" = other.prom ] || { ls "$1/$collected"; return 1; }
}

removed() {
	write_metrics "$1" && take "$1" remove && metrics_removed "$1" &&
		! find "$1/usr/lib/modules/" "$1/usr/src" "$1/var/lib/dkms" -name '*twheel*' | grep .
}

# dpkg no longer knows most of them.
purged() {
	local rest

	mapfile -t rest < <(in_root "$1" dpkg-query -W -f "\${db:Status-Abbrev}\${Package}\n" |
		sed -n 's/^rc *//p')
	echo "left to purge: ${rest[*]}"
	write_metrics "$1" && apt_get "$1" purge "${rest[@]}" && metrics_removed "$1" &&
		rm -r "$1/var/lib/prometheus" && list "$1" | diff "$tmp/before" -
}

# A member has joined, so the group stays. The modules do not matter, and dkms builds none.
members() {
	touch "$1/etc/dkms/no-autoinstall"
	put "$1" "$2" && in_root "$1" usermod -a -G twheel nobody && take "$1" purge &&
		in_root "$1" getent group twheel
}

install_all() {
	list "$1" > "$tmp/before"
	step "version $OLD is installed, with modules for all kernels" \
		installed "$1" "$2/old" "$OLD"
	step "but for one that has no high-resolution timers" left_out "$1"
	step "upgraded, nothing of $OLD is left" installed "$1" "$2/new" "$version"
	step "the tools, their manual and completion" tools "$1"
	step "the module for Python" python_module "$1"
	step "a group, which the udev rule gives the device to" group "$1"
	step "services" units "$1"
	step "which are not enabled before somebody does so" enable_units "$1"
	step "no script enrols a key" enrols_none "$1"
	step "a module is built against those of each kernel" builds_module "$1"
}

# use ROOT: each kernel with its installed modules; systemd is the same with each.
use() {
	local release

	while read -r release <&3; do
		step "in a guest of $release the packages' own test has a timer expire" fires "$1" "$release"
	done 3< "$1/srv/releases"
	release=$(tail -n 1 "$1/srv/releases")
	step "in a guest of $release systemd loads rules, reloads and removes them" \
		serves "$1" "$release"
}

# archive ROOT: makes an archive for its apt, of the packages in /srv/packages.
archive() {
	(
		cd "$1/srv/packages" || exit
		for file in *.deb; do
			dpkg-deb -f "$file" && printf '%s\n' "Filename: ./$file" \
				"Size: $(stat -c %s "$file")" \
				"SHA256: $(sha256sum "$file" | cut -d ' ' -f 1)" '' || exit
		done > Packages
	) && echo 'deb [trusted=yes] file:/srv/packages ./' > "$1/etc/apt/sources.list.d/packages.list" &&
		apt_get "$1" update
}

# What autopkgtest-pkg-dkms stands for, in an unpacked source. It prints a result for each kernel
# that has headers; if it found no package, it would print nothing and succeed.
dkms_test() {
	local said=$tmp/dkms-test

	archive "$1" && mkdir -p "$1/srv/source" && cp -r "$TOP/debian" "$1/srv/source/" || return
	in_root "$1" sh -c 'cd /srv/source && AUTOPKGTEST_ARTIFACTS=/tmp /usr/lib/dkms/dkms-autopkgtest' \
		> "$said" 2>&1
	local status=$?
	cat "$said"
	[ $status = 0 ] && awk '/^I: PASS / { print $NF }' "$said" | sort |
		diff - <(sort "$1/srv/releases")
}

leave() {
	step "removed, with the modules" removed "$1"
	step "purged, nothing is left" purged "$1"
	step "a group that has members stays" members "$1" "$2/new"
	step "autopkgtest-pkg-dkms builds and installs it for each kernel" dkms_test "$1"
}
