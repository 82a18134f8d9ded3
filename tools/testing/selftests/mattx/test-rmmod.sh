#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module cannot be unloaded while anything is out or in; when nothing is, it can.
# timeout: 300
# kernels: 6.12 7.3
# debug: yes

. "$(dirname "$0")/lib.sh"

start threads threads 6 || finish_test
check "goes out" migrate "$pid" node2
for n in 1 2; do
	on $n rmmod mattx
	expect_match "node $n: refused" "$out" "mattx is in use|temporarily unavailable"
done
check "it did not notice" on 1 advance threads
check "comes home" home "$pid"
good_end threads threads ""
check "nothing is out or in" nothing_out
for n in 1 2; do
	on $n daemon stop
	# the last reference may be given back a moment later
	check "node $n: unloaded" on $n "wait_until 30 'rmmod mattx 2>/dev/null'"
done
for n in 1 2; do
	on $n daemon start
done
check "loaded again" nodes_up
start again threads 4 || finish_test
check "goes out" migrate "$pid" node2
check "comes home" home "$pid"
good_end again threads ""
finish_test
