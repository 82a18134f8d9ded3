#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A node goes dark. The deputy of what ran there is killed, a guest whose home it was
# is killed, a process on its way there stays; and nothing is left of them.
# timeout: 600

. "$(dirname "$0")/lib.sh"

# a shell on a node that went dark is a broken pipe
trap "" PIPE

boot_again()
{
	close_shell "$1"
	"$cluster" boot "$1" >/dev/null 2>&1
	open_shell "$1"
}

start away threads 6 || finish_test
away=$pid
start stays threads 6 || finish_test
stays=$pid
check "goes out" migrate "$away" node2
"$cluster" crash 2
check_not "a move to a dead node is refused" migrate "$stays" node2
comment "$out"
check "what stayed goes on" on 1 advance stays
boot_again 2
check "the nodes find each other again" nodes_up
on 1 status away 60
expect "the deputy's end" "$out" "signal 9"
on 1 "dmesg | grep -c 'PID $away .* is killed: node node2, where it ran, is gone'"
expect "the log says why" "$out" 1
check "the next move works" migrate "$stays" node2
check "goes on there" on 1 advance stays

# its home goes dark
guest_pid 2 "$stays"
guest=$out
"$cluster" crash 1
close_shell 1
boot_again 1
check "the nodes find each other again" nodes_up
check "the guest is gone" on 2 "wait_until 60 '! alive $guest'"
processes 2 threads
expect "no process is left on node 2" "$out" ""
on 2 "dmesg | grep -c 'PID $guest .* is killed: node node1, its home, is gone'"
expect "the log says why" "$out" 1
check "nothing is out or in" nothing_out

# the host goes dark in the middle of a move
start middle memory 128 || finish_test
ask 1 mattxctl migrate "$pid" node2
sleep 0.7
"$cluster" crash 2
answer 1 200
status=$?
comment "the move: $status $out"
boot_again 2
check "the nodes find each other once more" nodes_up
if [ $status = 1 ]; then
	check "it goes on at home" on 1 advance middle 1
	check "a round trip after all this" round_trip middle "$pid"
	good_end middle memory ""
else
	on 1 status middle 100
	expect "it had moved already" "$out" "signal 9"
fi
check "nothing is out or in, at last" nothing_out
finish_test
