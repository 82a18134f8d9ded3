#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Signals: from itself, from others at home, pending ones, stopping ones.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

# --- its own, and those that others send all the time ---

start signals signals || finish_test
sent=0
send()
{
	on 1 "sendsig $pid 42 $sent 5 && sendsig $pid 12 pid" || comment "$out"
	sent=$((sent + 5))
}
send
for i in 1 2 3; do
	check "$i: goes out" migrate "$pid" node2
	send
	check "$i: works there" on 1 advance signals
	send
	check "$i: comes home" home "$pid"
	send
	check "$i: works at home" on 1 advance signals
done
on 1 finish signals
expect "signals: all came, none twice" "$out" "exit 0
ready
signal 42 came $sent times
signals: all as it should be"

# --- what is pending while it moves ---

start pending pending || finish_test
first=$pid
n=0
for where in node2 home node2 home; do
	check "A15 pending-rt-queue: to $where" migrate "$first" $where
	n=$((n + 1))
	on 1 kill -USR1 "$first"
	check "A15 pending-rt-queue: takes them" on 1 reach pending $n
done
good_end pending pending ""

# --- stop and go on ---

start stopped signals || finish_test
check "goes out" migrate "$pid" node2
on 1 kill -STOP "$pid"
check "the parent sees it stop" on 1 wait_until 60 \
	"grep -qx 'stopped 19' $T/stopped/events"
on 1 "progress stopped; pause 1; progress stopped"
before=${out%%$'\n'*}
expect "it stands still" "${out##*$'\n'}" "$before"
guest_pid 2 "$pid"
on 2 "cut -d ' ' -f 3 /proc/$out/stat"
expect "it is stopped on node 2" "$out" T
on 1 kill -CONT "$pid"
check "the parent sees it go on" on 1 wait_until 60 \
	"grep -qx continued $T/stopped/events"
check "it goes on" on 1 advance stopped

# --- a stopped process moves, and stays stopped, without a word to its parent ---

# stands_still NAME - it is stopped, and the parent has been told N times of stops
stands_still()
{
	local before
	on 1 "cut -d ' ' -f 3 /proc/$pid/stat"
	expect "$1: it is stopped at home" "$out" T
	on 1 "progress stopped; pause 1; progress stopped"
	before=${out%%$'\n'*}
	expect "$1: it stands still" "${out##*$'\n'}" "$before"
	on 1 "grep -c ^stopped $T/stopped/events"
	expect "$1: the parent was told of $2 stops" "$out" "$2"
}

on 1 kill -STOP "$pid"
check "the parent sees it stop again" on 1 wait_until 60 \
	"[ \$(grep -c ^stopped $T/stopped/events) = 2 ]"
check "comes home while it is stopped" home "$pid"
stands_still "home" 2
check "goes out while it is stopped" migrate "$pid" node2
stands_still "out" 2
guest_pid 2 "$pid"
on 2 "cut -d ' ' -f 3 /proc/$out/stat"
expect "it is stopped on node 2, too" "$out" T
on 1 kill -CONT "$pid"
check "the parent sees it go on again" on 1 wait_until 60 \
	"[ \$(grep -cx continued $T/stopped/events) = 2 ]"
check "it goes on there" on 1 advance stopped
on 1 kill -TSTP "$pid"
check "the parent sees SIGTSTP" on 1 wait_until 60 \
	"[ \$(grep -c ^stopped $T/stopped/events) = 3 ]"
check "is expelled while it is stopped" on 2 mattxctl expel --all
stands_still "expelled" 3
on 1 kill -CONT "$pid"
check "the parent sees it go on at home" on 1 wait_until 60 \
	"[ \$(grep -cx continued $T/stopped/events) = 3 ]"
check "it goes on at home" on 1 advance stopped
# stopped at home, ended while it is away
on 1 kill -STOP "$pid"
on 1 wait_until 60 "[ \$(grep -c ^stopped $T/stopped/events) = 4 ]"
check "goes out stopped once more" migrate "$pid" node2
on 1 kill -CONT "$pid"
check "it goes on there once more" on 1 advance stopped
on 1 finish stopped
expect_match "it ends well" "$out" "^exit 0.*signals: all as it should be"

# --- one that is stopped can be killed, at home and on the host ---

for where in 1 2; do
	start "killed-$where" threads 4 || finish_test
	check "goes out to be killed, $where" migrate "$pid" node2
	on 1 kill -STOP "$pid"
	check "it stops, $where" on 1 wait_until 60 \
		"grep -q ^stopped $T/killed-$where/events"
	guest_pid 2 "$pid"
	[ $where = 2 ] || out=$pid
	on $where kill -KILL "$out"
	on 1 status "killed-$where" 60
	expect "it was killed, $where" "$out" "signal 9"
done
check "nothing is out or in" nothing_out
finish_test
