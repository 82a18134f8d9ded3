#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A little of everything, for each kernel.
# kernels: 6.12 6.1
# timeout: 400

. "$(dirname "$0")/lib.sh"

names=(threads sparse signals identity files cputime clocks)
on 1 mkdir -p "$T/work"
for name in "${names[@]}"; do
	case $name in
	files) words=$T/work ;;
	sparse) words=256 ;;
	threads) words=13 ;;
	*) words= ;;
	esac
	# shellcheck disable=SC2086
	start "$name" "$name" $words || continue
	check "$name: round trip" round_trip "$name" "$pid"
	check "$name: goes out again" migrate "$pid" node2
	on 1 advance "$name" 1
	on 1 finish "$name"
	expect_match "$name: ends well" "$out" "^exit 0.*$name: all as it should be"
done
start segv ends segv || finish_test
check "goes out to crash" migrate "$pid" node2
on 1 kill -USR1 "$pid"
on 1 status segv
expect "it crashed" "$out" "signal 11 core"
start gone odd nothing || finish_test
check "goes out to be killed" migrate "$pid" node2
on 1 kill -KILL "$pid"
on 1 status gone
expect "it was killed" "$out" "signal 9"
on 1 "rm -f /tmp/core.*"
check "nothing is out or in" nothing_out
finish_test
