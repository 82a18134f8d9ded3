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

# what this node cannot do after home has done it: the memory is as it was, here and at home
on 2 sysctl -n vm.max_map_count
limit=$out
start crowded mappings "$T/work" crowded || finish_test
on 2 sysctl -q vm.max_map_count=400
for i in 1 2; do
	check "crowded $i: goes out" migrate "$pid" node2
	on 1 kill -USR1 "$pid"
	check "crowded $i: goes on" on 1 advance crowded 2
	check "crowded $i: comes home" home "$pid"
	check "crowded $i: goes on at home" on 1 advance crowded 2
done
on 2 sysctl -q "vm.max_map_count=$limit"
good_end crowded mappings ""
check "nothing is out or in" nothing_out
finish_test
