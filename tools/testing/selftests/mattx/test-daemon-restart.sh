#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mattxd is killed and started again with guests out and in: none is lost, and they
# come home as ever.
# timeout: 600

. "$(dirname "$0")/lib.sh"

start one threads 6 || finish_test
one=$pid
start two files "$T/work" || finish_test
two=$pid
check "goes out" migrate "$one" node2
check "goes out, with files" migrate "$two" node2
for n in 1 2; do
	on $n daemon kill
	check "node $n: the guests do not notice" on 1 advance two
	on $n daemon start
	check "node $n: the daemon comes back" nodes_up
	check "node $n: it knows what is out and in" is_out "$one" 2
	check "node $n: and the other one" is_out "$two" 2
done
for n in 1 2; do
	on $n daemon stop
done
for n in 1 2; do
	on $n daemon start
done
check "both daemons come back" nodes_up
check "comes home" home "$one"
check "comes home, with files" home "$two"
check "goes on" on 1 advance one
check "goes out again" migrate "$two" node2
good_end one threads ""
good_end two files ""

# killed in the middle of a move: undone
start big memory 256 || finish_test
for n in 1 2; do
	on $n "setsid sh -c 'sleep 1; pkill -KILL -x mattxd' </dev/null >/dev/null 2>&1 &"
	on 1 mattxctl migrate "$pid" node2
	comment "node $n killed: $out"
	on 1 "pgrep -x mattxd >/dev/null || daemon start"
	on 2 "pgrep -x mattxd >/dev/null || daemon start"
	on $n "wait_until 20 '! pgrep -x sleep >/dev/null'; pgrep -x mattxd >/dev/null || daemon start"
	check "node $n: the daemons come back" nodes_up
	gangs 1 out
	[ -z "$out" ] || check "node $n: it was there already and comes home" home "$pid"
	check "node $n: the process goes on at home" on 1 advance big
done
on 1 finish big
expect_match "big: ends well" "$out" "^exit 0"
check "nothing is out or in" nothing_out
finish_test
