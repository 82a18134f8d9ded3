#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who has no key gets nothing; what goes over the wire cannot be read; without
# encryption it works too.
# timeout: 600

. "$(dirname "$0")/lib.sh"

# restart NODE - with the configuration as it is
restart()
{
	on "$1" "daemon stop; daemon start"
}

# state NODE OTHER
state()
{
	on "$1" mattxctl nodes --json
	out=$(jq -r --arg n "node$2" '.nodes[] | select(.name == $n) | .state' <<<"$out")
}

# down TEXT - node 1 does not see node 2, and nothing can go there
down()
{
	on 1 wait_until 60 "! mattxctl nodes --json | grep -q '\"up\"'"
	state 1 2
	expect "$1: node 2 is down" "$out" down
	on 1 mattxctl migrate "$pid" node2
	expect_match "$1: nothing goes there" "$? $out" "^1 mattxctl: PID $pid: node2: "
	check "$1: it goes on" on 1 advance secret 1
}

# a program with something in its memory that must not be seen on the wire
start secret memory 8 || finish_test
on 1 "command -v tcpdump"
comment "tcpdump: $out"

# --- another key ---

on 2 "cp /etc/mattx.key /tmp/mattx.key
	echo 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff >/etc/mattx.key"
restart 2
down "another key"
on 1 mattxctl nodes --json
expect_match "the cause is told" "$(jq -r '.nodes[] | .cause // empty' <<<"$out")" '.+'
on 2 "cat /tmp/mattx.key >/etc/mattx.key; rm /tmp/mattx.key"
restart 2
check "the same key again" nodes_up

# --- a stranger, who talks to the port ---

for n in 1 2; do
	# shellcheck disable=SC2016
	on $n 'stranger() {
		exec 8<>/dev/tcp/$1/7077 || return
		printf "$2" >&8; timeout 15 cat <&8 2>/dev/null | head -c 1000 | od -A n -t x1 -v | tr -d " \n"
		exec 8<&- 8>&-; echo; }'
done
on 1 "stranger 10.77.0.2 'GET / HTTP/1.0\r\n\r\n'"
expect_match "a stranger gets an alert or nothing" "$out" '^(15030[0-4]0002[0-9a-f]{4})*$'
on 1 "stranger 10.77.0.2 ''"
expect_match "who says nothing gets nothing" "$out" '^(15030[0-4]0002[0-9a-f]{4})*$'
# shellcheck disable=SC2016
on 1 'for i in 1 2 3 4 5 6 7 8; do head -c 3000 /dev/urandom >/dev/tcp/10.77.0.2/7077; done 2>/dev/null'
check "noise does no harm" nodes_up
check "a move with TLS" round_trip secret "$pid"
# shellcheck disable=SC2317
encrypts()
{
	on 1 wait_until 30 \
		"awk '/TlsCurr(Tx|Rx)(Sw|Device)/ { s += \$2 } END { exit s < 2 }' /proc/net/tls_stat"
}
check "the kernel encrypts, the link too" encrypts

# --- one with, one without ---

on 2 "sed -i 's/^tls.*/tls = off/' /etc/mattx.conf"
restart 2
down "only one has TLS"

# --- both without ---

on 1 "sed -i 's/^tls.*/tls = off/' /etc/mattx.conf"
restart 1
check "without TLS the nodes see each other" nodes_up
check "a move without TLS" round_trip secret "$pid"
# the modules' link is older than the daemons: it is made anew, without
check "the kernel does not encrypt" on 1 wait_until 30 \
	"awk '/TlsCurr(Tx|Rx)(Sw|Device)/ { s += \$2 } END { exit s > 0 }' /proc/net/tls_stat"
for n in 1 2; do
	on $n "sed -i 's/^tls.*/tls = on/' /etc/mattx.conf"
	restart $n
done
check "with TLS again" nodes_up
check "the kernel encrypts again, the link too" encrypts
check "a move with TLS again" round_trip secret "$pid"
good_end secret memory ""
check "nothing is out or in" nothing_out
finish_test
