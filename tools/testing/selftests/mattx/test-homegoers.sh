#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Calls that are not served away from home work all the same: the process comes
# home for them by itself.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

# signalfd() brings it home, and it stays there
says_why()
{
	check "it is at home" on 1 wait_until 60 "! mattxctl ps | grep -q ^out"
	on 1 mattxctl ps --json
	expect_match "ps says why it came home" \
		"$(jq -r --argjson p "$home" '.home[] | select(.pid == $p) | .node + ": " + .reason' <<<"$out")" \
		'^node2: .'
}

calls=33
start homegoers homegoers "$T/file" || finish_test
home=$pid
for ((i = 1; i <= calls; i++)); do
	is_out "$home" 2 || migrate "$home" node2 || {
		not_ok "goes out for call $i" "$out"
		break
	}
	on 1 kill -USR1 "$home"
	on 1 reach homegoers $i 60 || {
		on 1 "tail -n 3 $T/homegoers/stdout"
		not_ok "call $i is made, after:" "$out"
		break
	}
	# fork, pipe, posix_spawn, system, popen: its children are created away
	[ $i != 5 ] || check "it is still away" is_out "$home" 2
	[ $i != 14 ] || says_why
done
on 1 "grep FAIL $T/homegoers/stdout || true"
expect "no call failed" "$out" ""
expect "all calls were made" "$i" $((calls + 1))
is_out "$home" 2 || migrate "$home" node2
on 1 kill -USR1 "$home"
on 1 status homegoers
expect "another program has taken its place" "$out" "exit 17"
on 1 "tail -n 2 $T/homegoers/stdout"
expect "what they said" "$out" "homegoers: all as it should be
exec"

# threads that come and go do not bring it home
start create threads 13 create || finish_test
for i in 1 2 3; do
	check "threads: goes out $i" migrate "$pid" node2
	check "threads: creates threads there $i" on 1 advance create 20
	check "threads: stays there $i" is_out "$pid" 2
	check "threads: comes home $i" home "$pid"
	check "threads: goes on at home $i" on 1 advance create
done
good_end create threads ""
check "nothing is out or in" nothing_out
finish_test
