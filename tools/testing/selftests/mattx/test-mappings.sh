#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Files are mapped, libraries loaded and modules imported without going home.
# timeout: 300
# debug: yes

. "$(dirname "$0")/lib.sh"

on 1 mkdir -p "$T/work"
start mappings mappings "$T/work" || finish_test
for i in 1 2 3; do
	check "$i: goes out" migrate "$pid" node2
	check "$i: maps there" on 1 advance mappings 3
	check "$i: stays there" is_out "$pid" 2
	check "$i: comes home" home "$pid"
	check "$i: maps at home" on 1 advance mappings
done
good_end mappings mappings ""

# errors are the kernel's, which is asked at home
start bad mappings "$T/work" bad || finish_test
check "goes out to fail" migrate "$pid" node2
check "goes on" on 1 advance bad 2
good_end bad mappings ""
check "nothing is out or in" nothing_out
finish_test
