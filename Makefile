# SPDX-License-Identifier: GPL-2.0
#
#   make            module for KERNEL, daemon, tools
#   make demo       the main job on a two-node cluster in QEMU
#   make check      the tests; KERNEL=6.12, 6.1 or 7.3 for one kernel only
#   make check-eessi  programs of EESSI or Debian only
#   make check-debug  the core tests on a kernel with KASAN, lockdep, kmemleak
#   make bench      measurements, as JSON
#   make lint       sparse, clang-format, strict warnings, shellcheck
#   make format     clang-format, in place
#   make install    into DESTDIR, PREFIX; the module for KDIR
#   make clean
#
# KERNEL is 6.12, 6.1, 7.3 or debug; KDIR names any other kernel's build directory.

ifeq ($(origin KERNEL),undefined)
KERNELS := 6.12 6.1
else
KERNELS := $(KERNEL)
endif
KERNEL ?= 6.12
PREFIX ?= /usr
SYSCONFDIR ?= /etc
O := $(abspath build)
MAKEFLAGS += --no-print-directory -j$(shell nproc)

# Variables of a build directory are worth a script only when they are used.
ifdef KDIR
release = $(shell $(MAKE) -s -C $(KDIR) kernelrelease)
kdir = $(KDIR)
else
release = $(shell scripts/kernel $(KERNEL) release)
kdir = $(shell scripts/kernel $(KERNEL) kdir)
endif

# what others of the tree bring, as soon as it is there
daemon := $(if $(wildcard daemon/Makefile),daemon)
testing := $(if $(wildcard tools/testing/Makefile),testing)
selftests := $(if $(wildcard tools/testing/selftests/mattx/Makefile),selftests)
module := $(if $(wildcard mattx/Kbuild),module)

.PHONY: all deps module daemon testing selftests demo check check-debug bench \
	check-eessi lint format install install-module clean

all: $(module) $(daemon) $(testing) $(selftests)

deps:
	@scripts/deps

# The module is built in a copy of its sources, one for each kernel.
module: deps
	+@scripts/build-module $(O) $(release) $(kdir)

daemon: deps
	@mkdir -p $(O)
	@$(MAKE) -C daemon O=$(O)

testing: deps
	@mkdir -p $(O)
	@$(MAKE) -C tools/testing O=$(O)

selftests: deps
	@mkdir -p $(O)
	@$(MAKE) -C tools/testing/selftests/mattx O=$(O)

demo: deps
	@tools/testing/demo --kernel $(KERNEL)

check: deps
	@tools/testing/run-tests $(KERNELS:%=--kernel %) $(TESTS)

check-eessi: deps
	@tools/testing/run-tests --kernel $(KERNEL) 'eessi-*'

check-debug: deps
	@tools/testing/run-tests --debug $(TESTS)

bench: deps
	@tools/testing/bench/run --kernel $(KERNEL)

lint: deps
	+@scripts/lint $(O) $(release) $(kdir)

format: deps
	@git ls-files -co --exclude-standard '*.c' '*.h' | \
		xargs -r clang-format -i

install: $(if $(KDIR),install-module)
	@$(if $(wildcard build/mattxd),,echo "make install: run make first" >&2; exit 1)
	install -D -m 755 build/mattxd $(DESTDIR)$(PREFIX)/sbin/mattxd
	install -D -m 755 build/mattxctl $(DESTDIR)$(PREFIX)/bin/mattxctl
	for f in $(wildcard Documentation/man/*.[58] Documentation/man/*.1); do \
		install -D -m 644 $$f \
			$(DESTDIR)$(PREFIX)/share/man/man$${f##*.}/$${f##*/}; \
	done
	for f in $(wildcard daemon/*.service); do \
		install -D -m 644 $$f $(DESTDIR)/lib/systemd/system/$${f##*/}; \
	done
	for f in $(wildcard daemon/mattx.conf.example); do \
		install -D -m 644 $$f \
			$(DESTDIR)$(PREFIX)/share/doc/mattx/mattx.conf.example; \
	done
	install -d $(DESTDIR)/usr/src/mattx-$(VERSION)
	cp -r Kbuild Kconfig dkms.conf mattx uapi $(DESTDIR)/usr/src/mattx-$(VERSION)/

install-module: module
	install -D -m 644 $(O)/$(release)/mattx.ko \
		$(DESTDIR)/lib/modules/$(release)/updates/mattx.ko
	[ -n "$(DESTDIR)" ] || depmod $(release)

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

clean:
	rm -rf build
