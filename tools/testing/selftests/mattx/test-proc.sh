#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# /proc/mattx: what scripts read there, processes that move because they write there,
# refusals as errnos, and writers that are never left asleep.
# timeout: 600
# kernels: 6.12 6.1 7.3
# debug: yes

. "$(dirname "$0")/lib.sh"

admin=/proc/mattx/admin

# order COMMAND - written by root on node 1
order()
{
	on 1 "echo '$1' >$admin"
}

# refused TEXT COMMAND WORDS - the writer gets the errno of these words
refused()
{
	local status

	order "$2"
	status=$?
	expect_match "$1: $3" "$status $out" "^1 .*write error: $3$"
}

# refused_raw TEXT COMMAND WORDS - of a shell command that writes as it likes
refused_raw()
{
	local status

	on 1 "$2"
	status=$?
	expect_match "$1: $3" "$status $out" "^[1-9][0-9]* .*$3"
}

lines()
{
	on "$1" cat "/proc/mattx/$2"
}

# --- who is there ---

declare -a number
for n in 1 2; do
	on $n "awk '/\\(Local\\)/ { print \$1 }' /proc/mattx/nodes"
	number[n]=$out
	expect_match "node $n has a number" "$out" '^[1-9][0-9]*$'
done
on 1 "sed '1,4d; /^\$/,\$d' /proc/mattx/nodes"
expect_match "node 1 lists itself and the other" "$out" \
	"^${number[1]} \(Local\) .*"$'\n'"${number[2]} .*\$"
on 1 "wait_until 20 'grep -qE \"^${number[2]} +10\\.77\\.0\\.2 +[0-9]+ +[1-9][0-9]*000 +[1-9][0-9]* +node2\\$\" \
	/proc/mattx/nodes'"
expect "node 2's address, load, capacity and memory" $? 0
on 1 "wait_until 20 'grep -qE \"Local\\) +10\\.77\\.0\\.1 +[0-9]+ +[1-9][0-9]*000 +[1-9]\" /proc/mattx/nodes'"
expect "node 1's own" $? 0
lines 1 nodes
expect_match "four head lines, as tools skip them" "$out" \
	$'^MattX[^\n]*\n-+\nNode ID[^\n]*\n-+\n'"${number[1]} "
expect_match "no balancer" "$out" $'\nBalancer Enabled: NO\n'
lines 1 version
expect_match "version" "$out" '^MattX Version: [0-9]+\.[0-9]+'
on 1 "cd /proc/mattx && stat -c '%n %a %u' admin guests nodes remote version"
expect "modes" "$out" "admin 200 0
guests 444 0
nodes 444 0
remote 444 0
version 444 0"
on 1 "setpriv --reuid 1234 --clear-groups cat /proc/mattx/{nodes,remote,guests,version}"
expect "anybody may look" $? 0

# --- there and back ---

start move threads 4 || finish_test
move=$pid
check "goes out, by number" order "migrate $move ${number[2]}"
check "is out when the write returns" is_out "$move" 2
lines 1 remote
expect "remote names it and its host" "$out" "$move:${number[2]}"
lines 1 guests
expect "no guests at home" "$out" ""
guest_pid 2 "$move"
guest=$out
lines 2 guests
expect "guests names it there and its home" "$out" "$guest:${number[1]}"
lines 2 remote
expect "nothing of the host is away" "$out" ""
on 1 "unshare -pf --mount-proc cat /proc/mattx/remote"
expect "another PID namespace does not see it" "$? $out" "0 "
check "goes on" on 1 advance move
refused "there already" "migrate $move ${number[2]}" "File exists"
check "comes home" order "migrate $move home"
check "nothing is out or in" nothing_out
lines 1 remote
expect "remote is empty" "$out" ""
check "goes on at home" on 1 advance move
refused "at home already" "migrate $move home" "File exists"
refused "at home already, by number" "migrate $move ${number[1]}" "File exists"
check "goes out, by name, with blanks and without an end" \
	on 1 "printf '  migrate\t$move  node2 ' >$admin"
check "comes home, by number of its home" order "migrate $move ${number[1]}"
check "goes out" order "migrate $move node2"
guest_pid 2 "$move"
check "the host sends it home" on 2 "echo 'expel $out' >$admin"
check "goes out" order "migrate $move node2"
# a process there that has the number comes first
if on 2 "kill -0 $move 2>/dev/null"; then
	ok "the host sends it home by its number there # SKIP it is taken"
	order "migrate $move home"
else
	check "the host sends it home by its number there" \
		on 2 "echo 'migrate $move ${number[1]}' >$admin"
fi
check "nothing is out or in" nothing_out
check "goes on" on 1 advance move

# --- refusals ---

refused "no command" "" "Invalid argument"
refused "unknown command" "fly $move node2" "Invalid argument"
refused "a word too few" "migrate $move" "Invalid argument"
refused "a word too many" "migrate $move node2 now" "Invalid argument"
refused "no number" "migrate 12ab node2" "Invalid argument"
refused "a sign" "migrate +$move node2" "Invalid argument"
refused "zero" "migrate 0 node2" "Invalid argument"
refused "below zero" "migrate -1 node2" "Invalid argument"
refused "a number too big" "migrate 99999999999999999999 node2" "Invalid argument"
refused "no such process" "migrate 4194303 node2" "No such process"
refused "no guest" "expel $move" "No such process"
refused "unknown node" "migrate $move node9" "No such file or directory"
refused "unknown number" "migrate $move 12" "No such file or directory"
refused "a number too big for a node" "migrate $move 18446744073709551617" \
	"No such file or directory"
refused "what does not move" "migrate 1 node2" "Operation not permitted"
refused "a balancer" "balancer 1" "Operation not supported"
refused "a balancer's list" "exclude top,bash" "Operation not supported"
refused "half on" "debug 2" "Invalid argument"
refused_raw "two commands at once" "env printf 'debug 0\ndebug 0\n' >$admin" \
	"Invalid argument"
refused_raw "a NUL" "printf 'debug 0\0\n' >$admin" "Invalid argument"
refused_raw "bytes that are no text" "printf 'debug\xff0\n' >$admin" \
	"Invalid argument"
refused_raw "too long" "printf '%0128d' 0 >$admin" "Invalid argument"
refused_raw "much too long" "head -c 1000000 /dev/zero >$admin" "Invalid argument"
refused_raw "half a command" "printf 'migrate ' >$admin" "Invalid argument"
refused_raw "oneself" "echo \"migrate \$BASHPID node2\" >$admin" \
	"Resource deadlock avoided"
refused_raw "from a PID namespace where it is not" \
	"unshare -pf bash -c 'echo \"migrate $move node2\" >$admin'" \
	"No such process"
refused_raw "another user" \
	"setpriv --reuid 1234 --clear-groups bash -c 'echo debug 1 >$admin'" \
	"Permission denied"
on 1 chmod 666 $admin
refused_raw "another user, whatever the mode" \
	"setpriv --reuid 1234 --clear-groups bash -c 'echo debug 1 >$admin'" \
	"Operation not permitted"
on 1 chmod 200 $admin
refused_raw "root without rights" \
	"setpriv --bounding-set -sys_admin bash -c 'echo debug 1 >$admin'" \
	"Operation not permitted"

# --- switches ---

for n in 1 2; do
	for line in "balancer 0" "mpi 1" "mpi 0" "debug 1"; do
		check "node $n: $line" on $n "echo '$line' >$admin"
	done
done
lines 1 nodes
expect_match "it says so" "$out" 'Debug Mode: ON$'
check "goes out" order "migrate $move node2"
on 1 "dmesg | grep -c 'mattx: PID $move (.*): home, deputy'"
expect "the log tells more" "$out" 1
check "comes home" order "migrate $move home"
for n in 1 2; do
	on $n "echo 'debug 0' >$admin"
done
check "goes out" order "migrate $move node2"
on 1 "dmesg | grep -c 'mattx: PID $move (.*): home, deputy'"
expect "and then not" "$out" 1
check "comes home" order "migrate $move home"

# --- nobody to do it ---

on 2 daemon stop
refused "a node that is down" "migrate $move node2" "No route to host"
on 1 daemon stop
refused "no mattxd" "migrate $move node2" "Transport endpoint is not connected"
check "what needs no mattxd works" order "balancer 0"
on 1 daemon start
on 2 daemon start
check "the nodes see each other" nodes_up
check "goes out" order "migrate $move node2"
check "comes home" order "migrate $move home"

# a mattxd that dies at a point of the migration
for point in 120 124 132; do
	on 1 mattxctl fault $point 1 --kill
	refused "mattxd dies at $point" "migrate $move node2" "Input/output error"
	check "it goes on" on 1 advance move 1
	on 1 daemon start
	check "the nodes see each other" nodes_up
done
check "nothing is out or in" nothing_out

# one that stands still: a writer can be killed, and holds the module
# shellcheck disable=SC2016
writer='bash -c '\''echo "migrate $0 node2" >/proc/mattx/admin'\'' '$move
on 1 "pkill -STOP -x mattxd; $writer >$T/writer 2>&1 & echo \$!"
writing=$out
on 1 "wait_until 30 'grep -q mattx_admin /proc/$writing/stack'"
expect "the writer waits" $? 0
on 1 rmmod mattx
expect_match "the module cannot go" "$? $out" \
	"^1 .*(mattx is in use|temporarily unavailable)"
on 1 "kill -KILL $writing; wait_until 30 '! [ -d /proc/$writing ]'"
expect "the writer can be killed" $? 0
on 1 "for i in 1 2 3; do $writer 2>$T/writer\$i & done
	wait_until 30 '[ \$(grep -ls mattx_admin /proc/[0-9]*/stack | wc -l) = 3 ]'"
expect "three wait" $? 0
on 1 "daemon kill; wait; cat $T/writer[123] | grep -c 'Input/output error'"
expect "all of them hear of mattxd's death" "$out" 3
on 1 daemon start
check "the nodes see each other" nodes_up

# more orders than one at a time, and for one process
start other threads 2 || finish_test
other=$pid
on 1 "for i in $move $other; do echo \"migrate \$i node2\" >$admin & done; wait"
check "two at once: the first" is_out "$move" 2
check "two at once: the second" is_out "$other" 2
on 1 "for i in $move $other; do echo \"migrate \$i home\" >$admin & done; wait"
check "nothing is out or in" nothing_out
good_end other threads ""
good_end move threads ""

# --- the files go with the module ---

on 1 "exec 7>$admin 8</proc/mattx/nodes; daemon stop
	wait_until 30 'rmmod mattx 2>/dev/null'"
expect "unloaded, with files open" "$? $out" "0 "
refused_raw "an open file is of no use" "echo debug 1 >&7" "write error"
on 1 "exec 7>&- 8<&-; [ ! -e /proc/mattx ]"
expect "they are gone" $? 0
on 1 daemon start
check "loaded again" nodes_up
start again threads 2 || finish_test
check "goes out" order "migrate $pid node2"
check "comes home" order "migrate $pid home"
good_end again threads ""
finish_test
