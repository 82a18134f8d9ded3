#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Nodes that are in no list find each other by multicast.
# timeout: 300

. "$(dirname "$0")/lib.sh"

for n in 1 2; do
	on $n "cp /etc/mattx.conf /tmp/mattx.conf
		printf '%s\n' 'name = node$n' 'key = /etc/mattx.key' 'discover = link$((3 - n))' >/etc/mattx.conf
		daemon stop; daemon start"
done
check "they see each other" nodes_up
start threads threads 6 || finish_test
check "a process goes out and comes home" round_trip threads "$pid"
check "goes out" migrate "$pid" node2
on 2 "daemon kill; daemon start"
check "they see each other again" nodes_up
check "it is known" is_out "$pid" 2
check "comes home" home "$pid"
good_end threads threads ""
# without the key nobody is found
on 2 "cp /etc/mattx.key /tmp/mattx.key; head -c 32 /dev/urandom | od -A n -t x1 | tr -d ' \n' >/etc/mattx.key
	daemon stop; daemon start; pause 3; mattxctl nodes --json"
expect "one with another key is not let in" \
	"$(jq -r '[.nodes[] | select(.state == "up")] | length' <<<"$out")" 0
on 2 "cat /tmp/mattx.key >/etc/mattx.key; rm /tmp/mattx.key"
for n in 1 2; do
	on $n "cp /tmp/mattx.conf /etc/mattx.conf; rm /tmp/mattx.conf; daemon stop; daemon start"
done
check "with the list again" nodes_up
check "nothing is out or in" nothing_out
finish_test
