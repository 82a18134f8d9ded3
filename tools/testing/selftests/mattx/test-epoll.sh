#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Epoll sets away: waiting is done there, wake-ups come from home; many moves, a cut cable.
# timeout: 900
# debug: yes

. "$(dirname "$0")/lib.sh"

# stat NODE NAME - one number of that node's statistics
stat()
{
	on "$1" mattxctl stats --json || return
	out=$(jq -r --arg name "$2" '.stats[$name] // 0' <<<"$out")
}

start epoll epoll 1000 || finish_test
check "goes on at home" on 1 advance epoll
check "goes out" migrate "$pid" node2
check "goes on away" on 1 advance epoll 2 200

stat 1 ready.told
[ "$out" -ge 100 ]
expect "home tells who wakes" $? 0
check "comes home" home "$pid"
check "goes on at home" on 1 advance epoll

for ((i = 1; i <= 10; i++)); do
	pause=$((RANDOM % 2)).$((RANDOM % 1000))
	on 1 "mattxctl migrate $pid node2 && pause $pause && mattxctl home $pid" ||
		{ not_ok "move $i" "$out"; break; }
done
check "goes on after 10 round trips at any moment" on 1 advance epoll 2 200

check "goes out" migrate "$pid" node2
check "goes on away" on 1 advance epoll 2 200
"$cluster" cut 1 2
on 1 advance epoll 2 5
expect "stands still without home" $? 1
"$cluster" mend 1 2
check "the nodes find each other again" nodes_up
check "goes on after a cut" on 1 advance epoll 3 300
check "comes home" home "$pid"
good_end epoll epoll ""

# waiting costs no round trip
start wakes wakes 50 || finish_test
check "a set of 50 goes out" migrate "$pid" node2
# 400 wake-ups one after the other, and a storm of them
measure="echo -1 >$T/wakes/progress; kill -USR1 $pid
	wait_until 300 '[ \$(progress wakes) -ge 0 ]'"
check "is woken there" on 1 "$measure"
stat 2 call.deputy.epoll_wait
remote=$out
stat 2 set.waits
waits=$out
check "is woken again" on 1 "$measure"
stat 2 set.waits
[ $((out - waits)) -ge 400 ]
expect "for each wake-up it has waited on the host" $? 0
stat 2 call.deputy.epoll_wait
expect "and never in the deputy" "$out" "$remote"
check "comes home" home "$pid"
good_end wakes wakes ""

# ends while it is away: nothing stays
start epoll epoll 100 || finish_test
check "another one goes out" migrate "$pid" node2
check "goes on" on 1 advance epoll 2 200
on 1 "kill -KILL $pid; status epoll"
expect "is killed" "$out" "signal 9"
check "nothing is out or in" nothing_out
finish_test
