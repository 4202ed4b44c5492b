# SPDX-License-Identifier: GPL-2.0-only
# The targets for users; `make help` lists them. The modules themselves are built by Kbuild.

# The kernel's makefiles, and others here, cannot handle such paths.
ifneq ($(shell pwd | LC_ALL=C grep '[^A-Za-z0-9_./+@~-]'),)
$(error a path with a space or a special character, "$(CURDIR)": move the tree to where there is none)
endif

MAKEFLAGS += --no-print-directory
# These would change the behaviour of all scripts here.
unexport BASH_ENV SHELLOPTS BASHOPTS
PREFIX ?= /usr/local
V ?= 0
export TWHEEL_CACHE ?= $(CURDIR)/build/cache

# The build directory of the running kernel, or else the newest installed one, or else a cached one.
BUILDS := $(shell ls -d /usr/src/linux-headers-*-$(shell dpkg --print-architecture \
	2> /dev/null) 2> /dev/null | sort -V)
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(lastword $(BUILDS)) $(wildcard $(TWHEEL_CACHE)/kernels/6.12/build))

# Where to install; DESTDIR is made absolute, because make changes directories.
DEST = PREFIX=$(PREFIX) DESTDIR=$(if $(DESTDIR),$(abspath $(DESTDIR)))

# One call for each directory; each writes to its own place below build/.
LIB = $(MAKE) -C tools/lib $(DEST) O=$(CURDIR)/build/lib
TWBENCH = $(MAKE) -C tools/twbench O=$(CURDIR)/build
TWCTL = $(MAKE) -C tools/twctl $(DEST) O=$(CURDIR)/build
EXAMPLES = $(MAKE) -C tools/examples O=$(CURDIR)/build
MAN = $(MAKE) -C Documentation/man $(DEST) O=$(CURDIR)/build/man

all: modules tools tests ## build everything (the default); KDIR= for another kernel

modules: ## build twheel.ko and twheel_bench.ko for KDIR
	@tools/deps build
	@tools/build-modules "$(KDIR)" V=$(V)

tools: ## build the library and the command-line tools
	@tools/deps build
	@+$(LIB)
	@+$(TWBENCH)
	@+$(TWCTL)
	@+$(EXAMPLES)

man: ## build the pages of the manual
	@tools/deps man
	@+$(MAN)

tests: ## build the test programs
	@tools/deps build tests
	@tools/fetch-source
	@+$(MAKE) -C selftests

run: ## compare the timer schemes, in a guest that counts instructions
	@tools/deps --install build kernel vm
	@+$(MAKE) -s tools
	@tools/run-comparison comparison --timers 10k,1M --rounds 2

bench: ## the same in full: up to 8M timers, memory and lateness (minutes)
	@tools/deps --install build kernel vm
	@+$(MAKE) -s tools
	@tools/run-comparison exact --timers 10k,100k,1M,8M --memory 1M --lateness 10k \
		--scheme wheel,timer_list,limit,hrtimer:1M,heap:1M

arena: ## compare all schemes that programs use, with bursts, mixtures and traces (minutes)
	@tools/deps --install build kernel vm
	@+$(MAKE) -s tools
	@tools/run-comparison arena --timers 10k,100k,1M --rounds 2 --memory 1M --scheme all

bench-api: ## compare what timers cost a program: this device, timerfd and others
	@tools/deps --install build kernel vm
	@+$(MAKE) -s tools
	@tools/run-comparison api

bench-connections: ## compare what idle timeouts cost a server, with N= connections (10k)
	@tools/deps --install build kernel vm bench-user
	@+$(MAKE) -s tools
	@+$(EXAMPLES) -s LIBEV=1
	@tools/run-comparison connections --timers "$(or $(N),10k)"

bench-native: ## compare them at this processor's speed, in User-mode Linux (builds it, once)
	@tools/deps --install build kernel vm build-kernel
	@+$(MAKE) -s tools
	@tools/run-comparison native --timers 10k,100k,1M --rounds 9 \
		--scheme wheel,timer_list,limit,heap,hrtimer:100k

check: ## run the tests, here and on one kernel, in simulated time
	@tools/deps --install build kernel vm check
	@selftests/check/run

test: ## run only T=device/ring or T="rules kmod/load.sh", on K= (6.12), with SEED= (1)
	@$(if $(T),,$(error which tests? for example: make test T=device/ring K=6.1))
	@tools/deps --install build kernel vm check $(if $(filter debug,$(K)),build-kernel)
	@$(if $(SEED),TWHEEL_SEED="$(SEED)") selftests/check/run one "$(or $(K),6.12)" $(T)

check-rest: ## run them on all other kernels, likewise
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/run rest

check-all: ## run them here and on all kernels, likewise
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/run all

check-parallel: ## run what only real time and parallel processors show, KCSAN too (an hour)
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/run parallel

explore: ## search: SEEDS= schedules (100) of what races, simulated, for T= seconds at most
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/run explore "$(or $(SEEDS),100)" "$(or $(T),86400)"

torture: ## torture the timers on these kernels, for T= seconds each (3600)
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/torture "$(or $(T),3600)"

fuzz: ## fuzz the wheel for T= seconds (3600); what is found is left in build/fuzz
	@tools/deps --install build check
	@selftests/unit/fuzz.sh "$(or $(T),3600)"

fuzz-device: ## fuzz the device on four kernels, for T= seconds each (3600)
	@tools/deps --install build kernel vm check build-kernel
	@selftests/check/run fuzz "$(or $(T),3600)"

bench-user: ## measure wheel.c natively, beside libev and a limit line
	@tools/deps --install build bench-user
	@+$(MAKE) -s -C tools/bench-user LIBEV=1 O=$(CURDIR)/build
	@mkdir -p build/bench
	@build/tools/bench-user-libev --json build/bench/user.json

bench-programs: ## compare the wheel with timers of libraries and languages, N= of them (10k,100k,1M)
	@tools/deps --install build
	@tools/deps --install bench-programs || echo "What is missing is skipped." >&2
	@mkdir -p build/bench
	@tools/bench-programs/run --timers "$(if $(N),$(N),10k,100k,1M)" --json build/bench/programs.json

report: ## write build/report/index.html from the figures in build/bench, which others measure
	@tools/deps --install report
	@tools/report/run

shell: ## an interactive guest, with twheel.ko loaded
	@tools/deps --install build tests kernel vm
	@+$(MAKE) -s tools tests
	@selftests/vm/run --shell -- insmod twheel.ko

deb: ## build Debian's packages, in build/deb/
	@tools/deps --install deb
	@tools/build-deb

check-packages: ## build, install, upgrade and purge them in Debian 12 and 13 (as root)
	@tools/deps --install build kernel vm root
	@selftests/check/packages/run

check-fresh: ## do what a newcomer does in minimal Debian 12 and 13 (as root)
	@tools/deps --install root
	@selftests/check/fresh

lint: ## run the checkers of style and of types
	@tools/deps --install build kernel check
	@selftests/check/lint

modules_install: modules ## install them for KDIR, and what other modules are built with (as root)
	@tools/build-modules --install "$(KDIR)"

install: tools man ## install the library, the tools and their manual below PREFIX
	@+$(LIB) install
	@+$(TWCTL) install
	@+$(MAN) install
	install -D -m 755 build/tools/twbench $(DESTDIR)$(PREFIX)/bin/twbench

uninstall: ## remove what install has installed
	@+$(LIB) uninstall
	@+$(TWCTL) uninstall
	@+$(MAN) uninstall
	$(RM) $(DESTDIR)$(PREFIX)/bin/twbench

clean: ## remove what was built; kernels stay in build/cache
	@if [ -d build ]; then \
		find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +; \
	fi

distclean: ## remove all of build/
	$(RM) -r build

help: ## list the targets
	@sed -nE 's/^([a-z_-]+):.*## (.*)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	while IFS='|' read -r target what; do \
		printf '  %-18s %s\n' "$$target" "$$what"; \
	done

.PHONY: all modules tools man tests run bench arena bench-api bench-connections bench-native \
	bench-user bench-programs report check test check-rest check-all check-parallel explore \
	torture fuzz fuzz-device shell deb check-packages check-fresh lint \
	modules_install install uninstall clean distclean help
