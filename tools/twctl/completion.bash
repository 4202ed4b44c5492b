# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Completion for twctl. The commands and options come from twctl's own --help. Names chosen by
# others must never be run as commands: readline quotes file names, words that would need quoting
# are left out, and "compgen -W" is not used, because it expands its argument.

# Offers the lines of standard input that begin with the word being completed.
_twctl_words() {
	local line

	while IFS= read -r line; do
		if [[ $line == "$word"* && $line =~ ^[[:alnum:]_.:@%+/-]+$ ]]; then
			COMPREPLY+=("$line")
		fi
	done
}

# _twctl_names ACTION: offers the names that compgen ACTION generates.
_twctl_names() {
	compopt -o filenames 2> /dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$word")
}

_twctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words='' parts options i

	COMPREPLY=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			_twctl_names -c
			return
		fi
	done
	parts=$(twctl "$command" --help 2> /dev/null |
		awk -v command="$command" '/^  [a-z]/ && $1 == command { print $2 }')
	if ((COMP_CWORD > 2)) && grep -qxF -- "${COMP_WORDS[2]}" <<< "$parts"; then
		command+=" ${COMP_WORDS[2]}"
		parts=''
	fi
	# shellcheck disable=SC2086 # the command and its subcommand
	options=$(twctl $command --help 2> /dev/null | sed -nE 's/^  (-.), (--[a-z-]+) .*/\1 \2/p')
	# A letter is another option for each command.
	[[ $before != -? ]] || before=$(sed -n "s/^$before //p" <<< "$options")
	case $COMP_CWORD:$before:$word in
	1:*)
		words=$(twctl --help | sed -nE 's/^  (--)?([a-z]+) .*/\1\2/p')
		;;
	*:--clock:*)
		words='monotonic boottime realtime'
		;;
	*:--action:*)
		words='abort shutdown'
		;;
	*:--activity:*)
		words='received sent either'
		;;
	*:--family:* | *:--not-family:*)
		words='inet inet6'
		;;
	*:--before:*)
		words=$(twctl idle list 2> /dev/null |
			awk 'NR > 1 { print $1 } NR > 1 && $2 != "-" { print $2 }')
		;;
	*:--uid:*)
		_twctl_names -u
		return
		;;
	*:--cgroup:*)
		compopt -o filenames 2> /dev/null
		mapfile -t COMPREPLY < <(cd /sys/fs/cgroup && compgen -d -- "$word")
		return
		;;
	*:--file:*)
		_twctl_names -f
		return
		;;
	*:*:-*)
		words=$(cut -d ' ' -f 2 <<< "$options")
		;;
	*)
		((COMP_CWORD > 2)) || words=$parts
		case $command in
		'idle load')
			_twctl_names -f
			return
			;;
		list)
			words=$(twctl list 2> /dev/null | awk 'NR > 1 { print $1 }')
			;;
		'idle show' | 'idle remove' | 'idle set' | 'idle stats')
			words=$(twctl idle list 2> /dev/null |
				awk 'NR > 1 { print $1 } NR > 1 && $2 != "-" { print $2 }')
			;;&
		'idle remove')
			words+=' all'
			;;
		esac
		;;
	esac
	_twctl_words < <(tr -s '[:space:]' '\n' <<< "$words")
}

complete -F _twctl twctl
