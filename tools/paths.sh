# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by the scripts of this tree: where things are, and how to give up.
# Everything generated is under $BUILD. $CACHE holds what is costly to get (unpacked
# kernels); TWHEEL_CACHE moves it, so that several clones can share one.

# Options of a shell that has exported them would be those of all scripts here.
if [[ ${SHELLOPTS@a}${BASHOPTS@a} == *x* ]]; then
	exec env -u SHELLOPTS -u BASHOPTS bash "$0" "$@"
fi

# What may be set for other programs, or by make, is not for those that are called here.
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

# If one of these is closed, the next file that is opened takes its place, and is taken for it.
[ -e /proc/self/fd/0 ] || exec < /dev/null
[ -e /proc/self/fd/1 ] || exec > /dev/null
[ -e /proc/self/fd/2 ] || exec 2> /dev/null

# depmod, insmod and their like are not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

# What other programs print is read here, and what is made here is for every user to read.
export LC_ALL=C
umask 022

die() {
	echo "${0##*/}: $*" >&2
	exit "${DIE_STATUS:-1}"
}
