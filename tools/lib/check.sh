#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that programs elsewhere can use what `make install` installs. Prints TAP.

set -u
. "$(dirname "$0")/../paths.sh"
. "$TOP/selftests/check/tap.sh"

prefix=/opt/twheel
root=$tmp/root$prefix
include=$root/include
export PKG_CONFIG_SYSROOT_DIR=$tmp/root
export PKG_CONFIG_PATH=$root/lib/pkgconfig
export LD_LIBRARY_PATH=$root/lib

# A test passes if the command succeeds; if not, its output is shown.
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

# With a restrictive umask, everybody can still read the installed files.
make_install() {
	(umask 077; install_to "$tmp/root") || return
	! find "$root" ! -type l ! -perm -a+r -o ! -type l -perm /u+x ! -perm -a+x | grep .
}

# A relative DESTDIR is relative to where make was called, even for recursive makes.
install_relative() {
	local there=build/relative.${tmp##*.} strays

	install_to "$there" && diff -r --no-dereference "$tmp/root" "$TOP/$there"
	local status=$?
	mapfile -t strays < <(find "$TOP" -path "*/$there" -prune -print)
	rm -rf "${strays[@]}"
	[ $status = 0 ] && [ "${strays[*]}" = "$TOP/$there" ]
}

# compile FILE OPTION...: as a program that uses the library would be.
compile() {
	local file=$1

	shift
	# shellcheck disable=SC2046 # options
	gcc -O2 -Wall -Wextra -Werror $(pkg-config --cflags libtwheel) -o "$tmp/out" \
		"$file" "$@" $(pkg-config --libs libtwheel)
}

# The calls that a program links with.
list_exported() {
	nm -D --defined-only "$root/lib/libtwheel.so" | sed -nE 's/.* T (twheel_\w+).*/\1/p' |
		sort
}

list_declared() {
	sed -nE 's/^[a-z].*\b(twheel_[a-z_]+)\(.*/\1/p' "$include"/libtwheel*.h | sort
}

list_inline() {
	sed -nE 's/^static __inline__ .*\b(twheel_[a-z_]+)\(.*/\1/p' "$include"/libtwheel*.h
}

# Compares two lists, and prints the lines that are in only one of them.
expect_same() {
	! diff <(echo "$1") <(echo "$2") | grep '^[<>]'
}

check_version() {
	expect_same "$(pkg-config --modversion libtwheel)" "$(cat "$TOP/VERSION")" || return
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
	expect_same "$("$tmp/out")" "$(cat "$TOP/VERSION")"
}

# Each exported symbol has a version, and the soname is the name of a file.
check_symbols() {
	local soname

	expect_same "$( (list_exported; list_inline) | sort -u)" "$(list_declared)" || return
	expect_same "$(list_exported)" "$(nm -g --defined-only "$root/lib/libtwheel.a" |
		sed -nE 's/.* [A-Z] (.*)/\1/p' | sort)" || return
	! nm -D --defined-only "$root/lib/libtwheel.so" | grep -v -e '@@LIBTWHEEL_' -e ' A ' ||
		return
	soname=$(objdump -p "$root/lib/libtwheel.so" | awk '$1 == "SONAME" { print $2 }')
	[ -e "$root/lib/$soname" ]
}

# Links with the first version, whose header had no inline calls except for batches and rings.
run_old_program() {
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

# compile_headers COMPILER OPTION...
compile_headers() {
	printf '#include <%s>\n' libtwheel-uring.h libtwheel.h libtwheel.h |
		"$@" -O2 -Wall -Wextra -Wconversion -Werror -I"$include" -c -o "$tmp/out" -
}

# compile_hpp COMPILER OPTION...: uses all of it, as compilers do not check unused inline code.
compile_hpp() {
	"$@" -O2 -Wall -Wextra -Wconversion -Werror -I"$include" -c -o "$tmp/out" \
		"$TOP/selftests/device/cplusplus.cc"
}

# The Python module's structures and flags are those of the headers.
check_python_layout() {
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

# The Python module finds every call that it makes.
check_python_calls() {
	PYTHONPATH=$root/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
		python3 -c 'import twheel; twheel._load()'
}

# Every call of the library has a page, and every page a call.
check_pages() {
	local page

	expect_same "$(list_declared)" "$(cd "$root/share/man/man3" && printf '%s\n' *.3 |
		sed 's/\.3$//' | sort)" || return
	for page in twheel.7 twheel.4 twheel_cpp.7 twheel_python.7; do
		[ -e "$root/share/man/man${page#*.}/$page" ] || return
	done
}

# The page lists every feature in the header.
check_features() {
	expect_same "$(grep -ow 'TWHEEL_FEATURE_[A-Z_]*' "$include/linux/twheel.h" | sort -u)" \
		"$(grep -ow 'TWHEEL_FEATURE_[A-Z_]*' "$TOP/Documentation/man/twheel_info.3.scd" |
			sort -u)"
}

# print_section PAGE TITLE: the text of a section; print_verbatim: its verbatim part, as man shows it.
print_section() {
	awk -v title="# $2" '/^# / { inside = $0 == title; next } inside' "$1"
}

print_verbatim() {
	print_section "$1" "$2" | awk '/^```$/ { inside = !inside; next } inside' |
		sed 's/\\\(.\)/\1/g'
}

# A page has all sections, and its synopsis declares its calls.
check_form() {
	local name status=0 title

	for title in SYNOPSIS DESCRIPTION 'RETURN VALUE' ERRORS THREADS EXAMPLES 'SEE ALSO'; do
		[ "$(print_section "$1" "$title")" ] || { echo "$1: no $title"; status=1; }
	done
	for name in $(print_section "$1" NAME | sed 's/ - .*//; s/,//g'); do
		print_verbatim "$1" SYNOPSIS | grep -Eq "\b$name\(" ||
			{ echo "$1: $name is not in the SYNOPSIS"; status=1; }
	done
	return $status
}

# The verbatim part of a section compiles, and finds the functions that it calls.
compile_code() {
	print_verbatim "$2" "$1" > "$tmp/verbatim.c"
	if [ ! -s "$tmp/verbatim.c" ] ||
	   ! compile "$tmp/verbatim.c" -std=c11 -D_GNU_SOURCE -Wconversion -shared -fPIC \
		-Wl,-z,defs; then
		echo "$2: $1"
		return 1
	fi
}

# g++ 12 warns about initialisers that omit fields, which are common in C.
compile_elsewhere() {
	print_verbatim "$1" EXAMPLES > "$tmp/verbatim.c"
	if ! compile_plain "$tmp/verbatim.c" c c11 clang ||
	   ! WARNINGS=-Wno-missing-field-initializers \
		compile_plain "$tmp/verbatim.c" c++ c++20 g++; then
		echo "$1"
		return 1
	fi
}

# The same for the pages about other languages.
run_other_languages() {
	local section

	for section in SYNOPSIS EXAMPLES; do
		print_verbatim twheel_cpp.7.scd $section > "$tmp/page.cc"
		[ -s "$tmp/page.cc" ] && compile_page_hpp "$tmp/page.cc" || return
		print_verbatim twheel_python.7.scd $section > "$tmp/page.py"
		[ -s "$tmp/page.py" ] &&
			PYTHONPATH=$root/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 \
				python3 -c "import runpy; runpy.run_path('$tmp/page.py')" || return
	done
}

compile_page_hpp() {
	local flags

	flags=$(pkg-config --cflags libtwheel)
	# shellcheck disable=SC2086 # options
	g++ -std=c++17 -Wall -Wextra -Wconversion -Werror $flags -c -o "$tmp/out" "$1"
}

# for_each COMMAND... -- FILE...: runs the command for each file.
for_each() {
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

compile_first_program() {
	sed -n '\|^    /\* first\.c|,/^    }$/s/^    //p' "$TOP/Documentation/uapi.rst" > "$tmp/first.c"
	grep -q '^int main' "$tmp/first.c" && compile "$tmp/first.c"
}

# With the shared library, and with the static one.
compile_example() {
	compile "$1" && "$tmp/out" -x 2>&1 | grep -q '^usage: ' || return
	# shellcheck disable=SC2046 # options
	gcc -static -o "$tmp/out" "$1" $(pkg-config --cflags --libs --static libtwheel)
}

# compile_plain FILE LANGUAGE STANDARD COMPILER...: without warnings, which projects may treat as
# errors, except those that $WARNINGS disables. _GNU_SOURCE, because POSIX is more than C11.
compile_plain() {
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

compile_as_c11() {
	compile_plain "$1" c c11 gcc clang
}

compile_as_cpp20() {
	compile_plain "$1" c++ c++20 g++ clang++
}

# Counts the instructions of a touch, without the return, on this machine.
count_instructions() {
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

run_without_device() {
	compile "$TOP/tools/lib/check.c" && "$tmp/out"
}

# The library is found right after installing, without a manual ldconfig. In an image of another
# root, ldconfig is not run.
check_ldconfig() {
	local log=$tmp/refreshed dir=$tmp/prefix

	make -s -C "$TOP/tools/lib" install PREFIX="$dir" O="$tmp/lib" \
		LDCONFIG="echo install >> '$log'" || return
	make -s -C "$TOP/tools/lib" uninstall PREFIX="$dir" O="$tmp/lib" \
		LDCONFIG="echo uninstall >> '$log'" || return
	if [ "$(id -u)" = 0 ]; then
		expect_same "$(cat "$log")" "$(printf '%s\n' install uninstall)" || return
	else
		[ ! -e "$log" ] || return
	fi
	(cd "$TOP/tools/lib" && make -n install DESTDIR="$dir" O="$tmp/lib") > "$tmp/commands" &&
		! grep ' ldconfig$' "$tmp/commands" || return
	(cd "$TOP/tools/lib" && make -n install O="$tmp/lib") | grep -q ' ldconfig$'
}

check_uninstall() {
	make -s -C "$TOP" uninstall DESTDIR="$tmp/root" PREFIX="$prefix" || return
	! find "$tmp/root" ! -type d | grep .
}

check "make install" make_install
if [ $failed != 0 ]; then
	echo "Bail out! nothing is installed"
	exit 1
fi
check "make install to a relative DESTDIR" install_relative
check "pkg-config, header and library tell VERSION" check_version
check "the library exports what the header declares" check_symbols
check "a program of the first version finds its calls" run_old_program
check "headers: C90" compile_headers gcc -x c -std=c90
check "headers: C99" compile_headers gcc -x c -std=c99 -pedantic
check "headers: C11" compile_headers gcc -x c -std=c11 -pedantic
check "headers: GNU C" compile_headers gcc -x c
check "headers: C++98" compile_headers g++ -x c++ -std=c++98
check "headers: C++17" compile_headers g++ -x c++ -std=c++17
check "headers: clang" compile_headers clang -x c -std=c99 -pedantic
check "headers: clang, C++20" compile_headers clang++ -x c++ -std=c++20
check "header for C++: C++17" compile_hpp g++ -std=c++17
check "header for C++: C++20" compile_hpp g++ -std=c++20
check "header for C++: clang" compile_hpp clang++ -std=c++17
check "errors, batches, the ring and a touch, without the device" run_without_device
check "the module for Python knows the structures" check_python_layout
check "the module for Python finds its calls" check_python_calls
check "a touch takes at most 5 instructions" count_instructions
check "each call has a page, and each page a call" check_pages
check "twheel_info(3) knows each feature" check_features
cd "$TOP/Documentation/man" || exit
check "form of the pages" for_each check_form -- twheel_*.3.scd
check "synopses compile" for_each compile_code SYNOPSIS -- twheel*.[34].scd twheel.7.scd
check "examples of the pages compile" for_each compile_code EXAMPLES -- twheel*.[34].scd twheel.7.scd
check "by clang and as C++20 too" for_each compile_elsewhere -- twheel*.[34].scd twheel.7.scd
check "those of other languages as well" run_other_languages
cd "$TOP/tools/examples" || exit
check "examples compile, shared and static" for_each compile_example -- *.c
check "examples are C11" for_each compile_as_c11 -- *.c
check "examples are C++20" for_each compile_as_cpp20 -- *.c
check "the first program of uapi.rst compiles" compile_first_program
check "ldconfig, where it is needed" check_ldconfig
check "make uninstall leaves nothing" check_uninstall
finish
