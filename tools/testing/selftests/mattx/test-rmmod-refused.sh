#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module stays as long as anything is out or in, and goes afterwards.
# timeout: 200
# debug: yes

. "$(dirname "$0")/lib.sh"

start odd odd nothing || finish_test
check "goes out" migrate "$pid" node2
for n in 1 2; do
	on $n "daemon stop; rmmod mattx"
	expect_match "node $n: rmmod is refused" "$? $out" '^1 .*in use'
	on $n "grep -c '^mattx ' /proc/modules"
	expect "node $n: the module is there" "$out" 1
done
check "it goes on" on 1 advance odd
for n in 1 2; do
	on $n daemon start
done
check "the nodes see each other" nodes_up
check "it comes home" home "$pid"
good_end odd odd ""
check "nothing is out or in" nothing_out
for n in 1 2; do
	on $n "daemon stop; rmmod mattx"
	expect "node $n: rmmod works" "$? $out" "0 "
done
for n in 1 2; do
	on $n daemon start
done
check "the nodes see each other again" nodes_up
start again odd nothing || finish_test
check "a move with the module loaded anew" round_trip again "$pid"
good_end again odd ""
finish_test
