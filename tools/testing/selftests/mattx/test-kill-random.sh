#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SIGKILL, at home and on the host, at any moment of a move: the parent sees it,
# and nothing is left.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

times=8

# shellcheck disable=SC2016
on 1 'now() { read -r up _ </proc/uptime; echo $((10#${up//./} * 10)); }
# some milliseconds up to $1
nap() { local ms=$((RANDOM % $1)); pause $((ms / 1000)).$(printf %03d $((ms % 1000))); }
# there and back, killed somewhere between; $span is how long that takes
kill_at_home() {
	local name=home-$1 p m
	p=$(start $name threads 6) || return
	(mattxctl migrate $p node2 && mattxctl home $p) >/dev/null 2>&1 & m=$!
	nap $((span * 5 / 4))
	kill -KILL $p; wait $m
	status $name 60
}'
# shellcheck disable=SC2016
on 2 'nap() { local ms=$((RANDOM % $1)); pause $((ms / 1000)).$(printf %03d $((ms % 1000))); }
# the body, or the guest that it has become, some time after the move began
kill_on_host() {
	local warden body
	wait_until 60 "warden=\$(pgrep -x -n mattx-warden) && body=\$(pgrep -P \$warden)" || return
	nap $1; kill -KILL $body && echo killed
}'

# how long it takes when nobody is killed
# shellcheck disable=SC2016
on 1 'p=$(start first threads 6); a=$(now); mattxctl migrate $p node2 && mattxctl home $p
	span=$(($(now) - a)); echo $span; kill -KILL $p; status first'
expect "one that is killed at home" "${out##*$'\n'}" "signal 9"
span=${out%%$'\n'*}
comment "there and back takes $span ms"
for ((i = 1; i <= times; i++)); do
	on 1 kill_at_home $i
	expect "killed at home, $i" "$out" "signal 9"
done

for ((i = 1; i <= times; i++)); do
	start "host-$i" threads 6 || break
	ask 2 kill_on_host $((span / (1 + i % 3) + 1))
	migrate "$pid" node2
	moved=$?
	comment "move: status $moved $out"
	answer 2
	# killed as a guest, or before it was one, and then it never left
	if on 1 wait_until 3 "[ -e $T/host-$i/status ]"; then
		on 1 status "host-$i"
		expect "killed on the host, $i" "$out" "signal 9"
	elif [ $moved != 0 ] && on 1 advance "host-$i" 1; then
		ok "killed on the host, $i: before it had moved"
		on 1 "kill -KILL $pid; status host-$i"
	elif on 1 status "host-$i" 60; then
		expect "killed on the host, $i" "$out" "signal 9"
	else
		not_ok "killed on the host, $i" "it neither ended nor goes on"
	fi
done

check "nothing is out or in" nothing_out
for n in 1 2; do
	on $n "wait_until 20 '! pgrep -x threads >/dev/null'; pgrep -x threads || true"
	expect "no process is left on node $n" "$out" ""
done
start after threads 6 || finish_test
check "a move after all this" round_trip after "$pid"
good_end after threads ""
finish_test
