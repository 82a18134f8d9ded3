#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Clocks never go back, waits are neither cut nor lengthened, CPU time is kept.
# timeout: 600

. "$(dirname "$0")/lib.sh"

start clocks clocks 3 || finish_test
clocks=$pid
for i in 1 2 3 4; do
	check "clocks: round trip $i" round_trip clocks "$clocks"
done
good_end clocks clocks ""

# the waits are long, so the moves fall into them
start waits waits 20 || finish_test
waits=$pid
start cputime cputime || finish_test
cputime=$pid
for i in 1 2; do
	check "A13 sleep-not-cut: round trip $i of waits" round_trip waits "$waits"
	check "cputime: round trip $i" round_trip cputime "$cputime"
done
check "A13 sleep-not-cut: goes out" migrate "$waits" node2
check "cputime: goes out" migrate "$cputime" node2
check "cputime: works there" on 1 advance cputime
on 1 finish cputime
expect_match "cputime: ends well" "$out" \
	"^exit 0.*cputime: all as it should be"
used=${out##*$'\n'}
on 1 "read -r u s <$T/cputime/usage; echo \$((u + s))"
if [ "$out" -ge $((used * 9 / 10)) ]; then
	ok "cputime: the parent sees the time it used"
else
	not_ok "cputime: the parent sees the time it used" "it: $used us, the parent: $out us"
fi
good_end waits waits ""
check "nothing is out or in" nothing_out
finish_test
