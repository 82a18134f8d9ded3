#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The cable is cut while a guest is away, and during a move: nothing is lost.
# timeout: 600

. "$(dirname "$0")/lib.sh"

start away threads 6 || finish_test
away=$pid
on 1 mkdir -p "$T/work"
start files files "$T/work" || finish_test
files=$pid
check "goes out" migrate "$away" node2
check "goes out, with files" migrate "$files" node2

"$cluster" cut 1 2
sleep 5
on 1 "mattxctl ps | grep -c deputy"
expect "both are out still" "$out" 2
on 1 advance files 1 3
expect "what needs home waits" $? 1
"$cluster" mend 1 2
check "the nodes find each other again" nodes_up
check "goes on when the cable is whole" on 1 advance files 2 200
check "goes on, the other one" on 1 advance away 2 200
check "comes home" home "$away"
check "comes home, with files" home "$files"
check "goes on at home" on 1 advance away
check "goes on at home, with files" on 1 advance files

# so short that TCP does not notice
check "goes out once more" migrate "$away" node2
"$cluster" cut 1 2
sleep 1
"$cluster" mend 1 2
check "goes on after a short cut" on 1 advance away
check "comes home after it" home "$away"

# in the middle of a move: much memory, so that there is a middle
start big memory 256 || finish_test
ask 1 mattxctl migrate "$pid" node2
sleep 1
"$cluster" cut 1 2
answer 1 300
status=$?
said=$out
"$cluster" mend 1 2
check "the nodes find each other again" nodes_up
if [ $status = 0 ]; then
	comment "it was there before the cut"
	check "comes home" home "$pid"
else
	expect_match "the cause in words" "$said" "PID $pid: "
	gangs 1 out
	expect "it is at home" "$out" ""
fi
check "it goes on" on 1 advance big
check "the next move works" migrate "$pid" node2
check "and back" home "$pid"
good_end away threads ""
good_end files files ""
on 1 finish big
expect_match "big: ends well" "$out" "^exit 0"
check "nothing is out or in" nothing_out
finish_test
