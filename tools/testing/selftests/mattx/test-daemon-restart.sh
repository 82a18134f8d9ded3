#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# mattxd is killed and started again with guests out and in: none is lost, and they
# come home as ever.
# timeout: 900

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

start one threads 6 || finish_test
one=$pid
on 1 mkdir -p "$T/work"
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

# --- killed at some point of a move ---

# dies NODE POINT COMMAND... - mattxd of that node dies there
dies()
{
	local node=$1 point=$2

	shift 2
	on "$node" mattxctl fault "$point" 1 --kill
	on 1 mattxctl "$@"
	expect "node $node dies at $point: $1 fails" $? 1
	on "$node" wait_until 30 "! pgrep -r D,R,S -x mattxd >/dev/null" ||
		not_ok "node $node's mattxd has died" ""
	check "node $node dies at $point: it goes on" on 1 advance three 1
	on "$node" daemon start
	check "node $node dies at $point: the nodes see each other" nodes_up
}

start three threads 6 || finish_test
three=$pid
for where in "1 124" "1 127" "1 132" "2 151" "2 158"; do
	# shellcheck disable=SC2086
	dies $where migrate "$three" node2
	check "nothing is out or in" nothing_out
done
check "it goes out" migrate "$three" node2
for where in "2 142" "2 144" "1 171" "1 174" "1 176"; do
	# shellcheck disable=SC2086
	dies $where home "$three"
	check "it is still out" is_out "$three" 2
done
check "it comes home" home "$three"
good_end three threads ""
check "nothing is out or in" nothing_out
finish_test
