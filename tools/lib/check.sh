#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Is what `make install` installs good for a program that is compiled elsewhere? Prints TAP.

set -u
. "$(dirname "$0")/../paths.sh"
. "$TOP/selftests/check/tap.sh"

prefix=/opt/twheel
root=$tmp/root$prefix
include=$root/include
export PKG_CONFIG_SYSROOT_DIR=$tmp/root
export PKG_CONFIG_PATH=$root/lib/pkgconfig
export LD_LIBRARY_PATH=$root/lib

# A test passes if the command succeeds; what it says is told if it does not.
check() {
	local name=$1

	shift
	("$@") > "$tmp/output" 2>&1
	ok "$name"
}

# install_to DIRECTORY
install_to() {
	make -s -C "$TOP" install DESTDIR="$1" PREFIX="$prefix"
}

# By somebody who keeps files to oneself: these are not.
make_install() {
	(umask 077; install_to "$tmp/root") || return
	! find "$root" ! -type l ! -perm -a+r -o ! -type l -perm /u+x ! -perm -a+x | grep .
}

# Taken from where make was called, although each directory has a make of its own.
relative() {
	local there=build/relative.${tmp##*.} strays

	install_to "$there" && diff -r --no-dereference "$tmp/root" "$TOP/$there"
	local status=$?
	mapfile -t strays < <(find "$TOP" -path "*/$there" -prune -print)
	rm -rf "${strays[@]}"
	[ $status = 0 ] && [ "${strays[*]}" = "$TOP/$there" ]
}

# compile FILE OPTION...: as a program would be that uses the library.
compile() {
	local file=$1

	shift
	# shellcheck disable=SC2046 # options
	gcc -O2 -Wall -Wextra -Werror $(pkg-config --cflags libtwheel) -o "$tmp/out" \
		"$file" "$@" $(pkg-config --libs libtwheel)
}

# The calls that a program links with, and those that are inline.
exported() {
	nm -D --defined-only "$root/lib/libtwheel.so" | sed -nE 's/.* T (twheel_\w+).*/\1/p' |
		sort
}

declared() {
	sed -nE 's/^[a-z].*\b(twheel_[a-z_]+)\(.*/\1/p' "$include"/libtwheel*.h | sort
}

inline() {
	sed -nE 's/^static __inline__ .*\b(twheel_[a-z_]+)\(.*/\1/p' "$include"/libtwheel*.h
}

# What each line of the first list is not in the second, or the other way round, is said.
same() {
	! diff <(echo "$1") <(echo "$2") | grep '^[<>]'
}

version() {
	same "$(pkg-config --modversion libtwheel)" "$(cat "$TOP/VERSION")" || return
	cat > "$tmp/version.c" <<-'EOT'
	#include <stdio.h>
	#include <libtwheel.h>

	int main(void)
	{
		unsigned int version = twheel_version();

		return printf("%u.%u.%u\n", version >> 16, version >> 8 & 255, version & 255) < 0;
	}
	EOT
	compile "$tmp/version.c" || return
	same "$("$tmp/out")" "$(cat "$TOP/VERSION")"
}

# Each exported call has a version, and the library's name that of the file.
symbols() {
	local soname

	same "$( (exported; inline) | sort -u)" "$(declared)" || return
	same "$(exported)" "$(nm -g --defined-only "$root/lib/libtwheel.a" |
		sed -nE 's/.* [A-Z] (.*)/\1/p' | sort)" || return
	! nm -D --defined-only "$root/lib/libtwheel.so" | grep -v -e '@@LIBTWHEEL_' -e ' A ' ||
		return
	soname=$(objdump -p "$root/lib/libtwheel.so" | awk '$1 == "SONAME" { print $2 }')
	[ -e "$root/lib/$soname" ]
}

# Linked with the first version, whose header had no inline calls but for batches and rings.
old_program() {
	cat > "$tmp/old.c" <<-'EOT'
	int twheel_info(), twheel_stats(), twheel_setup(), twheel_timer_add(), twheel_timer_rearm(),
		twheel_query(), twheel_query_key(), twheel_drain(), twheel_read(),
		twheel_batch_submit();

	int main(void)
	{
		unsigned long long memory[12] = { 0 };

		return !(twheel_info(-1, memory) == -9 && twheel_stats(-1, memory) == -9 &&
			 twheel_setup(-1, memory) == -9 && twheel_timer_add(-1, memory) == -9 &&
			 twheel_timer_rearm(-1, memory) == -9 &&
			 twheel_query(-1, 1ULL, memory) == -9 &&
			 twheel_query_key(-1, 1ULL, memory) == -9 &&
			 twheel_drain(-1, memory, 1, memory) == -9 &&
			 twheel_read(-1, memory, 1) == -9 &&
			 twheel_batch_submit(-1, memory, 0) == -9);
	}
	EOT
	compile "$tmp/old.c" -std=c11 && "$tmp/out" || return
	gcc -static -std=c11 -o "$tmp/out" "$tmp/old.c" "$root/lib/libtwheel.a" && "$tmp/out"
}

# headers COMPILER OPTION...
headers() {
	printf '#include <%s>\n' libtwheel-uring.h libtwheel.h libtwheel.h |
		"$@" -O2 -Wall -Wextra -Wconversion -Werror -I"$include" -c -o "$tmp/out" -
}

# hpp COMPILER OPTION...: with all of it used, as what is inline is not looked at else.
hpp() {
	"$@" -O2 -Wall -Wextra -Wconversion -Werror -I"$include" -c -o "$tmp/out" \
		"$TOP/selftests/device/cplusplus.cc"
}

# What the module for Python takes structures and flags for is what they are.
python_layout() {
	PYTHONPATH=$root/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
		python3 - > "$tmp/layout.c" <<-'EOT' || return
	import ctypes
	import twheel

	def expect(what, value):
	    print(f'_Static_assert({what} == {value}, "{what}");')

	print("#include <stddef.h>\n#include <libtwheel.h>")
	for name, structure in (("twheel_event", twheel.Event), ("twheel_timer_add", twheel._Add),
	                        ("twheel_info", twheel._Info)):
	    expect(f"sizeof(struct {name})", ctypes.sizeof(structure))
	    for field, _ in structure._fields_:
	        if field != "activity":
	            expect(f"offsetof(struct {name}, {field})", getattr(structure, field).offset)
	expect("offsetof(struct twheel_timer_add, sock_fd)", twheel._Add.sock_fd.offset)
	for name in ("RECEIVED", "SENT", "SHUTDOWN", "ABORT"):
	    expect("TWHEEL_WATCH_" + name, getattr(twheel, name))
	for name in ("DEADLINE", "IDLE", "LIFETIME"):
	    expect("TWHEEL_LIMIT_" + name, getattr(twheel, name))
	expect("TWHEEL_WATCHED", twheel._WATCHED)
	expect("CLOCK_MONOTONIC", twheel._MONOTONIC)
	expect("TWHEEL_TIME_NONE", f"{twheel._TIME_NONE}u")
	expect("TWHEEL_TIME_MAX", twheel._TIME_MAX)
	EOT
	[ "$(grep -c _Static_assert "$tmp/layout.c")" -gt 30 ] && compile "$tmp/layout.c" -c
}

# It finds each call that it makes.
python_calls() {
	PYTHONPATH=$root/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
		python3 -c 'import twheel; twheel._load()'
}

# Calls of the library that have no page, and pages that have none.
pages() {
	local page

	same "$(declared)" "$(cd "$root/share/man/man3" && printf '%s\n' *.3 |
		sed 's/\.3$//' | sort)" || return
	for page in twheel.7 twheel.4 twheel_cpp.7 twheel_python.7; do
		[ -e "$root/share/man/man${page#*.}/$page" ] || return
	done
}

# What the header knows a kernel to be able to, and what the page tells of.
features() {
	same "$(grep -ow 'TWHEEL_FEATURE_[A-Z_]*' "$include/linux/twheel.h" | sort -u)" \
		"$(grep -ow 'TWHEEL_FEATURE_[A-Z_]*' "$TOP/Documentation/man/twheel_info.3.scd" |
			sort -u)"
}

# section PAGE TITLE: the text of a page's section, or of it what is verbatim.
section() {
	awk -v title="# $2" '/^# / { inside = $0 == title; next } inside' "$1"
}

verbatim() {
	section "$1" "$2" | awk '/^```$/ { inside = !inside; next } inside'
}

# A page has all that a reader looks for, and declares what it is about.
form() {
	local name status=0 title

	for title in SYNOPSIS DESCRIPTION 'RETURN VALUE' ERRORS THREADS EXAMPLES 'SEE ALSO'; do
		[ "$(section "$1" "$title")" ] || { echo "$1: no $title"; status=1; }
	done
	for name in $(section "$1" NAME | sed 's/ - .*//; s/,//g'); do
		verbatim "$1" SYNOPSIS | grep -Eq "\b$name\(" ||
			{ echo "$1: $name is not in the SYNOPSIS"; status=1; }
	done
	return $status
}

# What is verbatim in a section compiles, and finds the functions it calls.
compiles() {
	verbatim "$2" "$1" > "$tmp/verbatim.c"
	if [ ! -s "$tmp/verbatim.c" ] ||
	   ! compile "$tmp/verbatim.c" -std=c11 -D_GNU_SOURCE -Wconversion -shared -fPIC \
		-Wl,-z,defs; then
		echo "$2: $1"
		return 1
	fi
}

# g++ 12 warns of initialisers that do not name all fields, which C programs may like.
compiles_elsewhere() {
	verbatim "$1" EXAMPLES > "$tmp/verbatim.c"
	if ! plain "$tmp/verbatim.c" c c11 clang ||
	   ! WARNINGS=-Wno-missing-field-initializers plain "$tmp/verbatim.c" c++ c++20 g++; then
		echo "$1"
		return 1
	fi
}

# The same for the pages that are about other languages.
other_languages() {
	local section

	for section in SYNOPSIS EXAMPLES; do
		verbatim twheel_cpp.7.scd $section > "$tmp/page.cc"
		[ -s "$tmp/page.cc" ] && hpp_compiles "$tmp/page.cc" || return
		verbatim twheel_python.7.scd $section > "$tmp/page.py"
		[ -s "$tmp/page.py" ] &&
			PYTHONPATH=$root/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
				python3 -c "import runpy; runpy.run_path('$tmp/page.py')" || return
	done
}

hpp_compiles() {
	local flags

	flags=$(pkg-config --cflags libtwheel)
	# shellcheck disable=SC2086 # options
	g++ -std=c++17 -Wall -Wextra -Wconversion -Werror $flags -c -o "$tmp/out" "$1"
}

# each COMMAND... FILE..., with the files after --
each() {
	local command=() status=0

	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	for file; do
		"${command[@]}" "$file" || status=1
	done
	return $status
}

first_program() {
	sed -n '\|^    /\* first\.c|,/^    }$/s/^    //p' "$TOP/Documentation/uapi.rst" > "$tmp/first.c"
	grep -q '^int main' "$tmp/first.c" && compile "$tmp/first.c"
}

# With the library as it is found at run time, and with all of it inside.
example() {
	compile "$1" && "$tmp/out" -x 2>&1 | grep -q '^usage: ' || return
	# shellcheck disable=SC2046 # options
	gcc -static -o "$tmp/out" "$1" $(pkg-config --cflags --libs --static libtwheel)
}

# plain FILE LANGUAGE STANDARD COMPILER...: without a word, as one's own project may want it, but for
# those in $WARNINGS. POSIX is more than C11.
plain() {
	local file=$1 language=$2 standard=$3 compiler status=0

	shift 3
	for compiler; do
		# shellcheck disable=SC2046,SC2086 # options
		"$compiler" -x "$language" -std="$standard" -U_GNU_SOURCE -D_GNU_SOURCE -O2 -Wall \
			-Wextra -Wconversion ${WARNINGS-} -Werror \
			$(pkg-config --cflags libtwheel) -c -o "$tmp/out" "$file" ||
			{ echo "$compiler: $file"; status=1; }
	done
	return $status
}

as_c11() {
	plain "$1" c c11 gcc clang
}

as_cpp20() {
	plain "$1" c++ c++20 g++ clang++
}

# Instructions of a touch beside the return, on this machine.
instructions() {
	local count

	cat > "$tmp/touch.c" <<-'EOT'
	#include <libtwheel.h>

	void touch(struct twheel_touch *touch_array, uint32_t word)
	{
		twheel_touch(touch_array, word);
	}
	EOT
	compile "$tmp/touch.c" -c || return
	objdump -d --no-show-raw-insn --disassemble=touch "$tmp/out" > "$tmp/touch.s"
	count=$(grep -E '^ +[0-9a-f]+:' "$tmp/touch.s" | sed '/\bret/,$d' | wc -l)
	if [ "$count" -lt 2 ] || [ "$count" -gt 5 ]; then
		cat "$tmp/touch.s"
		return 1
	fi
}

without_device() {
	compile "$TOP/tools/lib/check.c" && "$tmp/out"
}

# What is installed can be found at once: no need to be told about ldconfig. In an image of another
# root there is nothing to do.
refreshed() {
	local log=$tmp/refreshed dir=$tmp/prefix

	make -s -C "$TOP/tools/lib" install PREFIX="$dir" O="$tmp/lib" \
		LDCONFIG="echo install >> '$log'" || return
	make -s -C "$TOP/tools/lib" uninstall PREFIX="$dir" O="$tmp/lib" \
		LDCONFIG="echo uninstall >> '$log'" || return
	if [ "$(id -u)" = 0 ]; then
		same "$(cat "$log")" "$(printf '%s\n' install uninstall)" || return
	else
		[ ! -e "$log" ] || return
	fi
	(cd "$TOP/tools/lib" && make -n install DESTDIR="$dir" O="$tmp/lib") > "$tmp/commands" &&
		! grep ' ldconfig$' "$tmp/commands" || return
	(cd "$TOP/tools/lib" && make -n install O="$tmp/lib") | grep -q ' ldconfig$'
}

uninstalled() {
	make -s -C "$TOP" uninstall DESTDIR="$tmp/root" PREFIX="$prefix" || return
	! find "$tmp/root" ! -type d | grep .
}

check "make install" make_install
if [ $failed != 0 ]; then
	echo "Bail out! nothing is installed"
	exit 1
fi
check "make install to a relative DESTDIR" relative
check "pkg-config, header and library tell VERSION" version
check "the library exports what the header declares" symbols
check "a program of the first version finds its calls" old_program
check "headers: C90" headers gcc -x c -std=c90
check "headers: C99" headers gcc -x c -std=c99 -pedantic
check "headers: C11" headers gcc -x c -std=c11 -pedantic
check "headers: GNU C" headers gcc -x c
check "headers: C++98" headers g++ -x c++ -std=c++98
check "headers: C++17" headers g++ -x c++ -std=c++17
check "headers: clang" headers clang -x c -std=c99 -pedantic
check "headers: clang, C++20" headers clang++ -x c++ -std=c++20
check "header for C++: C++17" hpp g++ -std=c++17
check "header for C++: C++20" hpp g++ -std=c++20
check "header for C++: clang" hpp clang++ -std=c++17
check "errors, batches, the ring and a touch, without the device" without_device
check "the module for Python knows the structures" python_layout
check "the module for Python finds its calls" python_calls
check "a touch takes at most 5 instructions" instructions
check "each call has a page, and each page a call" pages
check "twheel_info(3) knows each feature" features
cd "$TOP/Documentation/man" || exit
check "form of the pages" each form -- twheel_*.3.scd
check "synopses compile" each compiles SYNOPSIS -- twheel*.[34].scd twheel.7.scd
check "examples of the pages compile" each compiles EXAMPLES -- twheel*.[34].scd twheel.7.scd
check "by clang and as C++20 too" each compiles_elsewhere -- twheel*.[34].scd twheel.7.scd
check "those of other languages as well" other_languages
cd "$TOP/tools/examples" || exit
check "examples compile, shared and static" each example -- *.c
check "examples are C11" each as_c11 -- *.c
check "examples are C++20" each as_cpp20 -- *.c
check "the first program of uapi.rst compiles" first_program
check "ldconfig, where it is needed" refreshed
check "make uninstall leaves nothing" uninstalled
finish
