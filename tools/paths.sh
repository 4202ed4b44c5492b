# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by the scripts of this tree: sets paths and a clean environment, and defines die().
# Everything generated is under $BUILD. $CACHE holds what is expensive to get (unpacked kernels);
# set TWHEEL_CACHE to move it, so that several clones can share one.

# If the caller's shell options are exported, every script here would run with them.
if [[ ${SHELLOPTS@a}${BASHOPTS@a} == *x* ]]; then
	exec env -u SHELLOPTS -u BASHOPTS bash "$0" "$@"
fi

# These may be set for other programs, or by make, but must not affect the programs called here.
unset CDPATH POSIXLY_CORRECT BASH_ENV ENV GREP_OPTIONS SHELLCHECK_OPTS
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKEFILES O CFLAGS CPPFLAGS LDFLAGS LDLIBS
unset KSELFTEST_DIR TWHEEL_INJECT TWHEEL_TESTS LOOPS SEED

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." > /dev/null && pwd)
BUILD=$TOP/build
CACHE=${TWHEEL_CACHE:-$BUILD/cache}
case $CACHE in
/*) ;;
*) CACHE=$TOP/$CACHE ;;
esac
export TOP BUILD CACHE

# If a standard stream is closed, the next file opened would get its number, and be taken for it.
[ -e /proc/self/fd/0 ] || exec < /dev/null
[ -e /proc/self/fd/1 ] || exec > /dev/null
[ -e /proc/self/fd/2 ] || exec 2> /dev/null

# The start of a command that is to have mounts of its own. Users other than root need a user
# namespace for that, which not every machine lets them have.
OWN_MOUNTS=(unshare --mount)
if [ "$(id -u)" != 0 ]; then
	OWN_MOUNTS+=(--map-root-user)
fi

# depmod, insmod and their like are not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

# Scripts parse the output of other programs; files made here must be readable by every user.
export LC_ALL=C
umask 022

die() {
	echo "${0##*/}: $*" >&2
	exit "${DIE_STATUS:-1}"
}
