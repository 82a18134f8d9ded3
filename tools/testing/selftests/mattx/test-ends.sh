#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Ends of every kind, away from home: the parent at home sees each as it is.
# timeout: 600

. "$(dirname "$0")/lib.sh"

# name | how | what the parent must see
table='
exit-0|exit 0|exit 0
exit-1|exit 1|exit 1
exit-255|exit 255|exit 255
return-7|return 7|exit 7
_exit-8|_exit 8|exit 8
quick-9|quick 9|exit 9
group-10|group 10|exit 10
main|main|exit 0
threads-11|threads 11|exit 11
kill-term|kill 15|signal 15
kill-kill|kill 9|signal 9
kill-usr2|kill 12|signal 12
kill-rt|kill 40|signal 40
thread-kill|thread-kill 12|signal 12
pipe|pipe|signal 13
abort|abort|signal 6 core
segv|segv|signal 11 core
fpe|fpe|signal 8 core
ill|ill|signal 4 core
trap|trap|signal 5 core
core|core 5|signal 6 core'

names=() pids=() pid_of=()
while IFS='|' read -r name how want; do
	[ -n "$name" ] || continue
	names+=("$name")
	# shellcheck disable=SC2086
	start "$name" ends $how || continue
	pid_of[${#names[@]}]=$pid
	migrate "$pid" node2 || not_ok "$name: goes out" "$out"
done <<<"$table"
gangs 1 out
expect "all are out" "$(wc -l <<<"$out")" "${#names[@]}"
# those that stay until now are ended from outside, at home and on the host
for name in outside-home outside-host; do
	start $name ends wait || continue
	migrate "$pid" node2 || not_ok "$name: goes out" "$out"
	pids[${#pids[@]}]=$pid
done
# shellcheck disable=SC2016
on 1 'for d in '"$T"'/*/; do
	case $d in *outside*) ;; *) kill -USR1 $(cat $d/pid);; esac; done'
i=0
while IFS='|' read -r name how want; do
	[ -n "$name" ] || continue
	i=$((i + 1))
	on 1 status "$name" 60
	expect "$name" "$out" "$want"
	[ "$name" != core ] || core_pid=${pid_of[$i]}
done <<<"$table"

# the core has what was in memory on the other node
on 1 "strings -a -n 10 /tmp/core.$core_pid.* | grep -m1 '^core-mark'"
expect "the core shows the memory" "$out" "core-mark$((core_pid + 5))"
on 2 "ls /tmp | grep '^core' || true"
expect "no core is left on node 2" "$out" ""

on 1 kill -KILL "${pids[0]}"
on 1 status outside-home 60
expect "SIGKILL at home" "$out" "signal 9"
guest_pid 2 "${pids[1]}"
on 2 kill -KILL "$out"
on 1 status outside-host 60
expect "SIGKILL on the host" "$out" "signal 9"
on 1 "rm -f /tmp/core.*"
check "nothing is out or in" nothing_out
for n in 1 2; do
	processes $n ends
	expect "no process is left on node $n" "$out" ""
done
finish_test
