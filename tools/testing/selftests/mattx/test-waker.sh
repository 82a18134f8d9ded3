#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads that sleep in a futex keep their order over moves.
# timeout: 300
# debug: yes

. "$(dirname "$0")/lib.sh"

n=0
# shellcheck disable=SC2317
ask_it()
{
	n=$((n + 1))
	on 1 kill -USR1 "$pid" && on 1 reach "$1" "$n" 120
}

# Many: the waker is still at its work when they are called home.
start queue queue 256 || finish_test
for i in 1 2 3; do
	check "$i: they line up" ask_it queue
	check "$i: go out" migrate "$pid" node2
	[ $i != 2 ] || check "$i: come home in line" home "$pid"
	[ $i != 2 ] || check "$i: go out in line" migrate "$pid" node2
	[ $i = 3 ] || check "$i: are woken there" ask_it queue
	check "$i: come home" home "$pid"
	[ $i != 3 ] || check "$i: are woken at home" ask_it queue
done
good_end queue queue ""
check "nothing is out or in" nothing_out
finish_test
