#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Processes that a guest creates, and programs that it becomes: nothing of it goes home
# for them, and everybody sees what would be seen at home.
# timeout: 900
# debug: yes

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

# went_home CALL... - how often guests of node 2 went home for one of these
went_home()
{
	local call names=

	for call; do
		names+="|call.home.$call"
	done
	on 2 mattxctl stats
	out=$(awk -v names="^(${names:1})\$" '$1 ~ names { n += $2 } END { print n + 0 }' \
		<<<"$out")
}

# go_out - as soon as it has no child that has its memory, as one of vfork() has
go_out()
{
	local tries

	for ((tries = 0; tries < 200; tries++)); do
		migrate "$pid" node2 && return
		[[ $out == *"shares memory with process"* ||
			$out == *"cannot be frozen"* ]] || return
		sleep 0.1
	done
	return 1
}

# come_home - the same for the way back
come_home()
{
	local tries

	for ((tries = 0; tries < 200; tries++)); do
		home "$pid" && return
		[[ $out == *"cannot be frozen"* ]] || return
		sleep 0.1
	done
	return 1
}

calls=(fork vfork clone clone3 execve execveat setresuid setresgid)

start one children || finish_test
check "works at home" on 1 advance one 1
went_home "${calls[@]}"
before=$out
for i in 1 2 3; do
	check "goes out $i" go_out
	check "works there $i" on 1 advance one 1
	check "stays there $i" is_out "$pid" 2
	check "comes home $i" come_home
	check "works at home again $i" on 1 advance one 1
done
went_home "${calls[@]}"
expect "nobody went home for it" "$out" "$before"
check "goes out once more" go_out
good_end one children ""

# --- killed on the host at any moment, mostly while it creates one ---

for i in 1 2 3 4 5 6 7 8; do
	start "shot$i" children || finish_test
	go_out || not_ok "goes out to be killed, $i" "$out"
	guest_pid 2 "$pid" || not_ok "its PID there" "$out"
	on 2 "pause 0.$((RANDOM % 9))$((RANDOM % 9)); kill -KILL $out"
	on 1 status "shot$i"
	expect "killed, $i" "$out" "signal 9"
done
# what it had executed by then runs at home, as if it had been there
on 1 "pkill -x sleep; true"
check "no child is left of it" nothing_out

# --- another program takes the place of one that is away ---

on 1 "rm -f $T.go; mkfifo $T.go"
on 1 "begin sh sh -c 'read line <$T.go; exec sleep 1000'"
pid=$out
check "a shell goes out" migrate "$pid" node2
on 1 "echo go >$T.go"
check "what it executes runs at home" on 1 \
	wait_until 60 "[ \"\$(cat /proc/$pid/comm)\" = sleep ]"
check "nothing of it is out or in" nothing_out
on 1 mattxctl ps --json
expect "ps says why it is at home" \
	"$(jq -r --argjson p "$pid" '.home[] | select(.pid == $p) | .node + ": " + .reason' <<<"$out")" \
	"node2: system call execve"
check "it goes out again" migrate "$pid" node2
on 1 "kill -HUP $pid; status sh"
expect "and ends" "$out" "signal 1"

# --- a child that stays ---

# child_of PID - the one child at home that is away
child_of()
{
	on 1 "ps -o pid= --ppid $1" || return
	out=${out// /}
	[ -n "$out" ]
}

start fam children family || finish_test
check "goes out" migrate "$pid" node2
on 1 kill -USR1 "$pid"
check "has a child there" on 1 advance fam 20
child_of "$pid" || not_ok "the child" "$out"
child=$out
check "which is out as it is" is_out "$child" 2
check "the parent comes home" home "$pid"
check "the child stays" is_out "$child" 2
check "they go on" on 1 advance fam 20
check "the parent goes out again" migrate "$pid" node2
check "they go on, both there" on 1 advance fam 20
check "the child comes home" home "$child"
check "they go on, the parent there" on 1 advance fam 20
check "the child goes out" migrate "$child" node2
check "they go on, each by itself there" on 1 advance fam 20
check "the child comes home again" home "$child"
check "and the parent" home "$pid"
check "they go on at home" on 1 advance fam 20
check "the parent goes out to end" migrate "$pid" node2
good_end fam children ""

# --- both end with the node ---

start crash children family || finish_test
check "another one goes out" migrate "$pid" node2
on 1 kill -USR1 "$pid"
check "and has a child" on 1 advance crash 5
child_of "$pid" || not_ok "the child" "$out"
child=$out
on 1 "kill -KILL $child"
check "a child that is killed is gone on both sides" on 1 \
	wait_until 60 "! mattxctl ps | grep -q ' $child '"
on 1 "kill -KILL $pid"
check "nothing is out or in" nothing_out
on 2 "pgrep -x children || true"
expect "nothing is left on node 2" "$out" ""
finish_test
