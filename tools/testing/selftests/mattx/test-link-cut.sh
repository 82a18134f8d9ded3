#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The cable is pulled, during a move and with a guest out, and put in again.
# timeout: 900

. "$(dirname "$0")/lib.sh"

# --- during a move: big, so that it takes a while ---

start big memory 256 || finish_test
ask 1 mattxctl migrate "$pid" node2
sleep 0.7
"$cluster" cut 1 2
answer 1 200
status=$?
comment "the move that was cut: $status $out"
if [ $status = 1 ]; then
	expect_match "the cause is told" "$out" "^mattxctl: PID $pid: node2: .+"
	check "it goes on at home" on 1 advance big
fi
"$cluster" mend 1 2
check "the nodes see each other again" nodes_up
is_out "$pid" 2 || check "now it goes out" migrate "$pid" node2
check "it works there" on 1 advance big
check "it comes home" home "$pid"
good_end big memory ""

# --- with a guest out, which wants something of home all the time ---

on 1 mkdir -p "$T/work"
start files files "$T/work" || finish_test
check "goes out" migrate "$pid" node2
check "works there" on 1 advance files 1
"$cluster" cut 1 2
# nothing may be asked of a node meanwhile that needs the other
sleep 5
on 1 kill -0 "$pid"
expect "it still is, at home" $? 0
guest_pid 2 "$pid"
expect_match "and on node 2" "$out" '^[0-9]+$'
"$cluster" mend 1 2
check "the nodes see each other again" nodes_up
check "it goes on where it was" on 1 advance files 1
check "both sides know it" is_out "$pid" 2
check "it comes home" home "$pid"
good_end files files ""

# --- a short cut that TCP does not notice ---

start threads threads 13 || finish_test
check "goes out once more" migrate "$pid" node2
"$cluster" cut 1 2
sleep 1
"$cluster" mend 1 2
check "goes on after a short cut" on 1 advance threads
check "comes home after it" home "$pid"
good_end threads threads ""
check "the nodes see each other" nodes_up
check "nothing is out or in" nothing_out
finish_test
