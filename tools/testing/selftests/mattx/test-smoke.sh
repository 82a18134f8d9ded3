#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The shortest of all: there and back, with threads, files, signals and an end.
# timeout: 300
# kernels: 6.12 6.1 7.3
# debug: yes

. "$(dirname "$0")/lib.sh"

on 1 mkdir -p "$T/work"
for program in threads files signals identity sparse; do
	words=
	[ $program != files ] || words=$T/work
	# shellcheck disable=SC2086
	start $program $program $words || continue
	check "$program: there and back" round_trip $program "$pid"
	on 1 finish $program
	expect_match "$program: ends well" "$out" "^exit 0"
done
start exits ends exit 42 || finish_test
check "goes out to end there" migrate "$pid" node2
on 1 kill -USR1 "$pid"
on 1 status exits
expect "its parent sees its status" "$out" "exit 42"
start gone ends wait || finish_test
check "goes out to be killed" migrate "$pid" node2
on 1 kill -KILL "$pid"
on 1 status gone
expect "it was killed" "$out" "signal 9"
check "nothing is out or in" nothing_out
finish_test
