#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# /etc/mattx.conf: every error is told with file and line.
# timeout: 120

. "$(dirname "$0")/lib.sh"

# wrong LINE REGEX TEXT... - a configuration of these lines is wrong there
wrong()
{
	local line=$1 regex=$2

	shift 2
	on 1 "printf '%s\n' $(printf '%q ' "$@") >/tmp/test.conf
		mattxd -t -c /tmp/test.conf"
	expect_match "${*: -1}: line $line" "$? $out" \
		"^1 .*/tmp/test.conf:$line: .*$regex"
}

good=("name = node1" "key = /etc/mattx.key" "node = node1 10.77.0.1"
	"node = node2 10.77.0.2")
on 1 "printf '%s\n' $(printf '%q ' "${good[@]}") >/tmp/test.conf; mattxd -t -c /tmp/test.conf"
expect "a good one is good" $? 0
wrong 5 "no such setting" "${good[@]}" "colour = red"
wrong 5 "expected" "${good[@]}" "what is this"
wrong 5 "on or off" "${good[@]}" "tls = perhaps"
wrong 5 "not a port" "${good[@]}" "port = 99999"
wrong 5 "named before" "${good[@]}" "node = node2 10.77.0.3"
wrong 5 "ADDRESS" "${good[@]}" "node = node3"
wrong 5 "" "${good[@]}" "node = node3 not.an.address.at.all.invalid"
wrong 5 "said before" "${good[@]}" "name = node1"
# seen at the first setting in it
wrong 6 "sections" "${good[@]}" "[nodes]" "name = node1"
wrong 1 "not a node name" "name = ?"
wrong 1 "no line" "name = node7" "node = node1 10.77.0.1"
wrong 2 "missing" "name = node1" "key ="

on 1 "printf '%s\n' $(printf '%q ' "${good[@]}") >/tmp/test.conf
	sed -i s,/etc/mattx.key,/tmp/test.key, /tmp/test.conf
	cp /etc/mattx.key /tmp/test.key; chmod 644 /tmp/test.key
	mattxd -t -c /tmp/test.conf"
expect_match "a key that others can read" "$? $out" '^1 .*/tmp/test.key: mode 0644'
on 1 "chmod 600 /tmp/test.key; chown 1234 /tmp/test.key; mattxd -t -c /tmp/test.conf"
expect_match "a key of another user" "$? $out" '^1 .*/tmp/test.key: .*root'
on 1 "chown 0 /tmp/test.key; echo short >/tmp/test.key; mattxd -t -c /tmp/test.conf"
expect_match "a key that is too short" "$? $out" '^1 .*/tmp/test.key: .*key'
on 1 "rm /tmp/test.key; mattxd -t -c /tmp/test.conf"
expect_match "no key" "$? $out" '^1 .*/tmp/test.key: No such file'
on 1 "mattxd -t -c /tmp/nothing.conf"
expect_match "no configuration" "$? $out" '^1 .*/tmp/nothing.conf: No such file'
on 1 rm -f /tmp/test.conf
finish_test
