# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # run has tmp, suite, version and kernels
#
# Sourced by run: the contents of a root, to be compared with its contents later.

# What changes whatever is installed: lists and logs of apt and dpkg, backup copies that passwd
# keeps, the loader's cache, the key that dkms makes for all modules, which is removed with dkms,
# and the hosts that netbase, which comes with Python, writes and leaves.
unlisted=(./proc ./sys ./dev ./tmp ./run ./srv ./root ./var/cache ./var/log ./var/lib/apt
	  ./var/lib/dpkg/status-old ./var/lib/dpkg/diversions-old ./var/lib/dpkg/statoverride-old
	  ./var/lib/dpkg/triggers ./etc/.pwd.lock './etc/*-' ./etc/hosts ./etc/ld.so.cache
	  './var/lib/dkms/mok.*' ./var/lib/systemd)

# list ROOT: its files, the contents of those that packages may write to, and its packages.
list() {
	local path prune=(-path ".$TOP")

	for path in "${unlisted[@]}"; do
		prune+=(-o -path "$path")
	done
	# Before the others: calling something in a root creates the mount points.
	in_root "$1" dpkg-query -W -f "\${Package} \${Version} \${db:Status-Abbrev}\n"
	(cd "$1" && find . \( "${prune[@]}" \) -prune -o -printf '%p %y %m %u %g %l\n' | sort
	 find ./etc ./usr/lib/modules ./var/lib/dkms \( "${prune[@]}" \) -prune -o -type f \
		-exec sha256sum {} + | sort)
}
