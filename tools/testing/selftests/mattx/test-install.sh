#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# "make install", dkms, and the module built as kbuild's users do.
# nodes: 0
# timeout: 600

. "$(dirname "$0")/lib.sh"

# run COMMAND... - here, not on a node; $out is what it said
run()
{
	out=$(env -u MAKEFLAGS -u MFLAGS "$@" 2>&1)
}

root=$work/root
kdir=$("$top/scripts/kernel" "$MATTX_KERNEL" kdir)
there=("$top/scripts/in-kdir" "$kdir" "$work") # where modules for it are built
release=$("$top/scripts/kernel" "$MATTX_KERNEL" release)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf")

check "all is built" run make -C "$top" KERNEL="$MATTX_KERNEL"
check "it is installed" run make -C "$top" KERNEL="$MATTX_KERNEL" install \
	install-module DESTDIR="$root"
for f in usr/sbin/mattxd usr/bin/mattxctl usr/share/man/man8/mattxd.8 \
	usr/share/man/man1/mattxctl.1 usr/share/man/man5/mattx.conf.5 \
	lib/systemd/system/mattxd.service usr/src/mattx-"$version"/dkms.conf \
	"lib/modules/$release/updates/mattx.ko"; do
	check "there is $f" test -s "$root/$f"
done
run "$root/usr/sbin/mattxd" --version
expect_match "mattxd knows its version" "$? $out" "^0 .*$version"
run "$root/usr/bin/mattxctl" --version
expect_match "mattxctl too" "$? $out" "^0 .*$version"

# dkms, with directories of its own
mkdir "$work/dkms"
dkms=(dkms --sourcetree "$root/usr/src" --dkmstree "$work/dkms"
	-m mattx -v "$version" -k "$release" --kernelsourcedir "$kdir")
check "dkms takes it" run "${there[@]}" "${dkms[@]}" add
check "dkms builds it" run "${there[@]}" "${dkms[@]}" build
expect_match "with a module" \
	"$(find "$work/dkms/mattx/$version/$release" -name 'mattx.ko*')" 'mattx\.ko'

# as the kernel's documentation says: make -C $KDIR M=$PWD
cp -r "$root/usr/src/mattx-$version" "$work/plain"
check "make -C KDIR M=PWD" run "${there[@]}" make -C "$kdir" M="$work/plain" modules
check "it is the same module" test -s "$work/plain/mattx/mattx.ko"
finish_test
