#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 2 GiB of address space with a page here and there, 64 GiB reserved: only what
# is there moves, and what is not there is not there afterwards either.
# timeout: 400
# debug: yes

. "$(dirname "$0")/lib.sh"

rss()
{
	on "$1" "awk '/^VmRSS/ { print \$2 }' /proc/$2/status"
}

start sparse sparse 2048 || finish_test
on 1 advance sparse 20
check "goes out" migrate "$pid" node2
check "works there" on 1 advance sparse 20
check "is known there" guest_pid 2 "$pid"
rss 2 "$out"
if [ "${out:-999999}" -lt 65536 ]; then
	ok "takes little memory there"
else
	not_ok "takes little memory there" "$out KiB"
fi
check "comes home" home "$pid"
check "works at home" on 1 advance sparse 20
rss 1 "$pid"
if [ "${out:-999999}" -lt 65536 ]; then
	ok "takes little memory at home"
else
	not_ok "takes little memory at home" "$out KiB"
fi
for i in 2 3; do
	check "round trip $i" round_trip sparse "$pid"
done
# it forks at its end: away, where its child has the advice, too
check "goes out once more" migrate "$pid" node2
good_end sparse sparse "sparse
"
check "nothing is out or in" nothing_out
finish_test
