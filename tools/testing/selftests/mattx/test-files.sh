#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Descriptors and paths, shared with a process that stays at home.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

on 1 "mkdir -p $T/work"
start files files "$T/work" || finish_test
on 1 advance files 1
for i in 1 2 3; do
	check "round trip $i" round_trip files "$pid"
done
check "goes out once more" migrate "$pid" node2
check "works there" on 1 advance files 1
on 1 "exec 3<$T/work/records; ls -l /proc/$pid/fd 2>/dev/null | grep -c work/; exec 3<&-"
expect_match "its descriptors are seen at home" "$out" '^[4-9]'
good_end files files ""
check "nothing is out or in" nothing_out
finish_test
