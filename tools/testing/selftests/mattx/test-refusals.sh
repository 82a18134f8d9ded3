#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What cannot move is refused by name, with exit status 1 and one line of cause,
# and does not notice.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

# refused TEXT PID NODE REGEX - the cause names the PID and says why
refused()
{
	local status

	on 1 mattxctl migrate "$2" "$3"
	status=$?
	if [ $status = 1 ] && [[ $out != *$'\n'* ]] &&
		[[ $out =~ ^mattxctl:\ PID\ $2:\ (.*$4.*)$ ]]; then
		ok "$1: ${BASH_REMATCH[1]}"
	else
		not_ok "$1" "status $status: $out" "want: $4"
	fi
}

# --- processes that are none, or nobody's ---

on 1 'pgrep -x kthreadd; pgrep -x mattxd'
daemon=${out##*$'\n'}
refused "kernel thread" "${out%%$'\n'*}" node2 "kernel thread"
refused "mattxd itself" "$daemon" node2 "mattxd itself"
refused "init" 1 node2 "init"
refused "no such process" 999999 node2 "no such process"
on 1 mattxctl migrate 0 node2
expect "a PID that is none is wrong usage" $? 2

# --- processes with something that cannot move ---

odd()
{
	local what=$1 regex=$2

	on 1 start "$what" odd "$what"
	pid=${out%%$'\n'*}
	on 1 grep "^cannot" "$T/$what/stdout"
	if [ -n "$out" ]; then
		ok "$what # SKIP $out"
		return
	fi
	refused "A30 clean-refusals: $what" "$pid" node2 "$regex"
	on 1 mattxctl check "$pid"
	expect_match "$what: mattxctl check says so too" "$? $out" "^1 .*$regex"
	on 1 advance "$what" || not_ok "$what: it goes on" "$out"
	if [ "$what" = traced ]; then
		# every other signal would be its tracer's business
		on 1 "kill -KILL $pid; status $what"
		expect "$what: is killed" "$out" "signal 9"
	else
		good_end "$what" odd ""
	fi
}

odd memory "shares memory with process"
odd files "shares descriptors with process"
odd handlers "shares (memory|signal handlers) with process"
odd shared "mapping .* is shared with process"
odd sysv "mapping .* is shared memory of System V"
odd device "mapping .* device"
odd key "protection key"
odd sealed "sealed"
odd guard "guard pages"
odd userfault "userfault"
odd seccomp "seccomp filter"
odd uring "io_uring"
odd signalfd "signalfd"
odd leader "first thread has ended"
odd deadline "deadline"
odd traced "traced by process"
on 1 'echo 4 >/proc/sys/vm/nr_hugepages'
odd hugetlb "huge"
on 1 'echo 0 >/proc/sys/vm/nr_hugepages'
on 1 "begin spaces unshare -p -f --kill-child odd -p $T/spaces/progress nothing; \
	wait_until 60 'is_ready spaces'; pgrep -x odd"
refused "another PID namespace" "${out##*$'\n'}" node2 "another pid"

# --- places it cannot go to ---

start odd odd nothing || finish_test
on 1 mattxctl check "$pid" node2
expect "this one can move" "$? $out" "0 PID $pid can move to node2"
refused "unknown node" "$pid" node9 "node9: is no node of this cluster"
refused "at home" "$pid" node1 "at home"
on 1 mattxctl home "$pid"
expect_match "is not away" "$? $out" "^1 mattxctl: PID $pid: .*at home"

# node 2's CPU can less
on 2 "sed 's/ avx2 / /' /proc/cpuinfo >/tmp/cpuinfo
	daemon stop; mount --bind /tmp/cpuinfo /proc/cpuinfo; daemon start"
check "the nodes see each other" nodes_up
refused "A27 cpu-must-fit" "$pid" node2 "lacks the CPU flag avx2"
on 2 "daemon stop; umount /proc/cpuinfo; rm /tmp/cpuinfo; daemon start"
check "the nodes see each other again" nodes_up

# a node that is not there
on 2 daemon stop
refused "unreachable node" "$pid" node2 "node2: "
on 2 daemon start
check "the nodes see each other once more" nodes_up

# on its way already: two at once
start big memory 64 || finish_test
on 1 "mattxctl migrate $pid node2 & a=\$!; mattxctl migrate $pid node2 & b=\$!
	wait \$a; a=\$?; wait \$b; echo status \$((a + \$?))"
expect "of two at once one is refused" "${out##*$'\n'}" "status 1"
expect_match "it says why" "$out" \
	"PID $pid: .*(already on its way|is there already)"
check "it is there" is_out "$pid" 2
refused "is there already" "$pid" node2 "there already"
check "it comes home" home "$pid"
good_end big memory ""
on 1 advance odd || not_ok "the other goes on" "$out"
good_end odd odd ""
check "nothing is out or in" nothing_out
finish_test
