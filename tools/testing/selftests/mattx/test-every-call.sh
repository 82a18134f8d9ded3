#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every system call, with arguments that no program gives, says away what it says at
# home, and neither node is the worse for it.
# timeout: 900

. "$(dirname "$0")/lib.sh"

number=0

# sweep TEXT - one through all of them; the results are in $work/N
sweep()
{
	number=$((number + 1))
	on 1 "kill -USR1 $pid"
	check "$1" on 1 wait_until 600 "[ \"\$(progress every)\" = $number ]"
	on 1 cat "$T/every/results.$number"
	printf '%s\n' "$out" >"$work/$number"
}

# differ N - what the sweep says that the first did not. Of two things that are wrong the
# other one may be told: recvfrom(-1, -1, -1), whose address home does not see, and
# recvmsg() of no descriptor with a header that is none.
differ()
{
	out=$(diff "$work/1" "$work/$1" | grep '^[<>]' |
		grep -v '^[<>] 45: ENOTSOCK [A-Z]* EBADF EBADF$' |
		grep -v '^[<>] 47: ENOTSOCK EINVAL EBADF [A-Z]*$')
}

start -u 1000 every everycall "$T/every/results" || finish_test
sweep "at home"
expect "all of them were tried" "$(($(wc -l <"$work/1") > 400))" 1
sweep "at home, again"
differ 2
expect "home says the same each time" "$out" ""
check "goes out" migrate "$pid" node2
sweep "away"
differ 3
expect "away they say the same" "$out" ""
check "it is still out: its children went home by themselves" is_out "$pid" 2
on 2 "ls -A /proc/sys/kernel/hostname && uname -n"
expect_match "node 2 is what it was" "$out" 'node2$'
check "comes home" home "$pid"
good_end every everycall ""
check "nothing is out or in" nothing_out
finish_test
