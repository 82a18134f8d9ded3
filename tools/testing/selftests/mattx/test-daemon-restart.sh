#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mattxd is killed and started again, while guests are out and in and at any
# point of a move: no process is lost, and all can come home.
# timeout: 900

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

# --- with a guest of each node on the other ---

start one threads 6 || finish_test
one=$pid
on 2 start two threads 6
two=${out%%$'\n'*}
check "one goes out" migrate "$one" node2
on 2 mattxctl migrate "$two" node1
expect "the other goes out" "$? $out" "0 "
for what in kill stop; do
	for n in 1 2; do
		on $n daemon $what
	done
	check "$what: node 1's goes on" on 1 advance one
	check "$what: node 2's goes on" on 2 advance two
	for n in 1 2; do
		on $n daemon start
	done
	check "$what: the nodes see each other" nodes_up
	check "$what: both sides know the guest" is_out "$one" 2
	check "$what: it goes on" on 1 advance one
done
check "one comes home" home "$one"
on 2 mattxctl home "$two"
expect "the other comes home" "$? $out" "0 "
on 2 finish two
expect_match "the other ends well" "$out" "threads: all as it should be"

# --- killed at some point of a move ---

# dies NODE POINT COMMAND... - mattxd of that node dies there
dies()
{
	local node=$1 point=$2

	shift 2
	on "$node" mattxctl fault "$point" 1 --kill
	on 1 mattxctl "$@"
	expect "node $node dies at $point: $1 fails" $? 1
	on "$node" wait_until 30 "! pgrep -x mattxd >/dev/null" ||
		not_ok "node $node's mattxd has died" ""
	check "node $node dies at $point: it goes on" on 1 advance one 1
	on "$node" daemon start
	check "node $node dies at $point: the nodes see each other" nodes_up
}

for where in "1 124" "1 127" "1 132" "2 151" "2 158"; do
	# shellcheck disable=SC2086
	dies $where migrate "$one" node2
	check "nothing is out or in" nothing_out
done
check "it goes out" migrate "$one" node2
for where in "2 142" "2 144" "1 171" "1 174" "1 176"; do
	# shellcheck disable=SC2086
	dies $where home "$one"
	check "it is still out" is_out "$one" 2
done
check "it comes home" home "$one"
on 1 finish one
expect_match "it ends well" "$out" "threads: all as it should be"
check "nothing is out or in" nothing_out
finish_test
