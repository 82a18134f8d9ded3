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

# of a large file, only what is looked at is fetched
start large mappings "$T/work" large || finish_test
pages()
{
	on 2 "mattxctl stats --json"
	jq '.stats["file.pages"] // 0' <<<"$out"
}
before=$(pages)
check "goes out with a large file" migrate "$pid" node2
check "maps it there" on 1 advance large 3
check "stays there with it" is_out "$pid" 2
fetched=$(($(pages) - before))
on 1 progress large
check "some of it was fetched" [ $fetched -gt 0 ]
check "not all of it was" [ $((fetched / (out + 1))) -lt 16384 ]
check "comes home with it" home "$pid"
good_end large mappings ""

# errors are the kernel's, which is asked at home
start bad mappings "$T/work" bad || finish_test
check "goes out to fail" migrate "$pid" node2
check "goes on" on 1 advance bad 2
good_end bad mappings ""

# what this node has no room to follow is done at home, and nothing is lost
on 2 sysctl -n vm.max_map_count
limit=$out
start crowded mappings "$T/work" crowded || finish_test
on 2 sysctl -q vm.max_map_count=400
for i in 1 2 3; do
	check "crowded $i: goes out" migrate "$pid" node2
	on 1 kill -USR1 "$pid"
	check "crowded $i: comes home for it" on 1 \
		wait_until 60 "! mattxctl ps | grep -q ^out"
	check "crowded $i: goes on at home" on 1 advance crowded 2
done
on 2 sysctl -q "vm.max_map_count=$limit"
good_end crowded mappings ""
check "nothing is out or in" nothing_out
finish_test
