#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A copy of the tree inside a kernel source is configured and built there, as a module
# and into the kernel.
# nodes: 0
# kernels: debug
# debug: yes
# timeout: 1500

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

# run COMMAND... - here, not on a node; $out is what it said last
run()
{
	local status

	env -u MAKEFLAGS -u MFLAGS "$@" >"$work/log" 2>&1
	status=$?
	out=$(tail -n 20 "$work/log")
	return $status
}

kmake()
{
	run make -C "$src" -j "$(nproc)" CC=gcc-12 HOSTCC=gcc-12 "$@"
}

origin=$("$top/scripts/kernel-source") || { not_ok "there is a kernel source"; finish_test; }
# not in /tmp, and without a copy of the contents: what is changed is made anew
copies=$(mktemp -d "${origin%/*}/in-tree-XXXXXX")
trap 'rm -rf "$copies"; clean_up' EXIT
src=$copies/linux
check "the source is copied" run cp -al "$origin" "$src"
misc=$src/drivers/misc
mkdir "$misc/mattx"
cp -r "$top"/{Kbuild,Kconfig,mattx,uapi} "$misc/mattx/"
# add FILE SED - in place of a link
add()
{
	sed "$2" "$misc/$1" >"$misc/$1.new" && mv "$misc/$1.new" "$misc/$1"
}
# shellcheck disable=SC2016
add Makefile '$a obj-$(CONFIG_MATTX) += mattx/'
add Kconfig '/^endmenu/i source "drivers/misc/mattx/Kconfig"'

check "the kernel is configured" kmake defconfig
for how in m y; do
	run "$src/scripts/config" --file "$src/.config" -e KPROBES -e FTRACE \
		-e FUNCTION_TRACER -e DYNAMIC_FTRACE -e CHECKPOINT_RESTORE \
		-e MEM_SOFT_DIRTY -e TIME_NS --set-val MATTX $how
	check "$how: what it needs is there" kmake olddefconfig
	expect "$how: CONFIG_MATTX" "$(grep CONFIG_MATTX= "$src/.config")" "CONFIG_MATTX=$how"
	check "$how: the build is prepared" kmake modules_prepare
	check "$how: it is built" kmake drivers/misc/mattx/
	expect "$how: without a warning" "$(grep -i warning: "$work/log")" ""
	if [ $how = m ]; then
		check "$how: it is a module" test -s "$misc/mattx/mattx/mattx.o"
	else
		check "$how: it is in the kernel" grep -q mattx/main.o "$misc/mattx/built-in.a"
	fi
done
finish_test
