#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A node loses its power while a guest is there, or while its process is out.
# timeout: 900

. "$(dirname "$0")/lib.sh"

# reboot NODE
reboot()
{
	"$cluster" boot "$1" 2>/dev/null || not_ok "node $1 boots" ""
	open_shell "$1"
	on "$1" daemon start
	nodes_up || not_ok "the nodes see each other" "$out"
}

# --- the host goes ---

start guest threads 6 || finish_test
check "goes out" migrate "$pid" node2
close_shell 2
"$cluster" crash 2
on 1 status guest 200
expect "the process ends when its host is gone" "$out" "signal 9"
"$cluster" log 1 | tail -n 20 | grep "PID $pid" >"$work/line"
if [ -s "$work/line" ]; then
	ok "the log says so: $(tail -n 1 "$work/line")"
else
	not_ok "the log says so" "$("$cluster" log 1 | tail -n 5)"
fi
reboot 2
check "nothing is out or in" nothing_out
start next threads 6 || finish_test
check "the node can be used again" round_trip next "$pid"
good_end next threads ""

# --- the home goes ---

on 2 start away threads 6
away=${out%%$'\n'*}
on 2 mattxctl migrate "$away" node1
expect "goes out to node 1" "$? $out" "0 "
on 1 "wait_until 30 'pgrep -x threads >/dev/null'; pgrep -x threads"
expect_match "it is there" "$out" '^[0-9]+$'
close_shell 2
"$cluster" crash 2
check "the guest ends when its home is gone" on 1 wait_until 200 \
	"! pgrep -x threads >/dev/null"
gangs 1 in
expect "it is not known any more" "$out" ""
reboot 2
check "nothing is out or in, again" nothing_out

# --- the host goes in the middle of a move ---

start middle memory 128 || finish_test
ask 1 mattxctl migrate "$pid" node2
sleep 0.5
close_shell 2
"$cluster" crash 2
answer 1 200
status=$?
comment "the move: $status $out"
if [ $status = 1 ]; then
	check "it goes on at home" on 1 advance middle 1
	reboot 2
	check "it can go out" migrate "$pid" node2
	check "it comes home" home "$pid"
	good_end middle memory ""
else
	on 1 status middle 200
	expect "it had moved already" "$out" "signal 9"
	reboot 2
fi
check "nothing is out or in, at last" nothing_out
finish_test
