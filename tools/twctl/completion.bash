# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Completion of twctl's command line. twctl itself tells which commands and options it has.

_twctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words='' parts i

	COMPREPLY=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
		fi
	done
	parts=$(twctl "$command" --help 2> /dev/null |
		awk -v command="$command" '/^  [a-z]/ && $1 == command { print $2 }')
	if ((COMP_CWORD > 2)) && grep -qxF -- "${COMP_WORDS[2]}" <<< "$parts"; then
		command+=" ${COMP_WORDS[2]}"
		parts=''
	fi
	case $COMP_CWORD:$before:$word in
	1:*)
		words=$(twctl --help | sed -nE 's/^  (--)?([a-z]+) .*/\1\2/p')
		;;
	*:--clock:* | *:-c:*)
		words='monotonic boottime realtime'
		;;
	*:--action:* | *:-A:*)
		words='abort shutdown'
		;;
	*:--activity:* | *:-a:*)
		words='received sent either'
		;;
	*:--uid:* | *:-u:*)
		mapfile -t COMPREPLY < <(compgen -u -- "$word")
		return
		;;
	*:--cgroup:* | *:-g:*)
		mapfile -t COMPREPLY < <(cd /sys/fs/cgroup && compgen -d -- "$word")
		return
		;;
	*:*:-*)
		# shellcheck disable=SC2086 # with its part
		words=$(twctl $command --help 2> /dev/null |
			sed -nE 's/^  -., (--[a-z-]+) .*/\1/p')
		;;
	*)
		((COMP_CWORD > 2)) || words=$parts
		case $command in
		'idle load')
			compopt -o filenames 2> /dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		list)
			words=$(twctl list 2> /dev/null | awk 'NR > 1 { print $1 }')
			;;
		'idle show' | 'idle remove')
			words=$(twctl idle list 2> /dev/null | awk 'NR > 1 { print $1 }')
			;;&
		'idle remove')
			words+=' all'
			;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _twctl twctl
