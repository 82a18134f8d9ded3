#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# nodes: 2
# kernels: 6.12 7.3
# timeout: 180
#
# scripts/cluster itself: what all other tests rely on.

set -uo pipefail
cluster=$(dirname "$0")/../../../../scripts/cluster
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0

# result STATUS TEXT
result()
{
	count=$((count + 1))
	[ "$1" = 0 ] && echo "ok $count - $2" || echo "not ok $count - $2"
}

"$cluster" run 1 'exit 7'
[ $? = 7 ]
result $? "the exit status passes through"

head -c 3000000 /dev/urandom >"$tmp/in"
"$cluster" run 2 'cat; echo to stderr >&2' <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
cmp "$tmp/in" "$tmp/out" && [ "$(cat "$tmp/err")" = "to stderr" ]
result $? "stdin, stdout and stderr pass through unchanged"

"$cluster" put 1 "$tmp/in" '/tmp/a name' &&
	"$cluster" get 1 '/tmp/a name' "$tmp/back" && cmp "$tmp/in" "$tmp/back"
result $? "a file comes back from a node as it went"

mkdir "$tmp/dir" && echo x >"$tmp/dir/x" && chmod 600 "$tmp/dir/x" &&
	"$cluster" put 1 "$tmp/dir" /tmp && "$cluster" get 1 /tmp/dir "$tmp/dir2" &&
	[ "$(stat -c %a "$tmp/dir2/x")" = 600 ]
result $? "a directory too, with its modes"

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	"$cluster" run $((i % 2 + 1)) "sleep 1; echo $i" </dev/null &
done >"$tmp/many"
wait
[ "$(sort -n "$tmp/many" | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 11 12 " ]
result $? "twelve commands at once"

ping="ping -c 2 -i 0.2 -W 1 -q 10.77.0.2"
"$cluster" run 1 "$ping" >/dev/null
result $? "the nodes reach each other"

"$cluster" cut 1 2 && ! "$cluster" run 1 "$ping" >/dev/null
result $? "not with the link cut"

"$cluster" mend 2 1 && "$cluster" run 1 "$ping -c 5" >/dev/null
result $? "again with the link mended"

"$cluster" run 2 'echo "mark before the crash" >/dev/kmsg; echo x >/root/gone' &&
	"$cluster" crash 2 && ! "$cluster" run 2 true 2>"$tmp/err" &&
	grep -q 'node 2 .* not running' "$tmp/err"
result $? "a crashed node is gone at once, and said to be"

"$cluster" boot 2 && "$cluster" run 2 'test ! -e /root/gone' &&
	"$cluster" log 2 | grep -q 'mark before the crash'
result $? "it boots afresh; its log goes on"

n=0
until "$cluster" run 1 mattxctl nodes --json | grep -q '"up"' || [ $n -gt 40 ]; do
	n=$((n + 1))
	sleep 0.5
done
[ $n -le 40 ] && "$cluster" run 1 "$ping" >/dev/null
result $? "the cluster becomes whole again"

echo "1..$count"
