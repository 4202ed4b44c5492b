# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Completion of twctl's command line. twctl itself tells which commands and options it has.

_twctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words='' i

	COMPREPLY=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
		fi
	done
	case $COMP_CWORD:$before:$word in
	1:*)
		words=$(twctl --help | sed -nE 's/^  (--)?([a-z]+) .*/\1\2/p')
		;;
	*:--clock:* | *:-c:*)
		words='monotonic boottime realtime'
		;;
	*:-*)
		words=$(twctl "$command" --help 2> /dev/null |
			sed -nE 's/^  -., (--[a-z]+) .*/\1/p')
		;;
	*)
		if [ "$command" = list ]; then
			words=$(twctl list 2> /dev/null | awk 'NR > 1 { print $1 }')
		fi
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _twctl twctl
