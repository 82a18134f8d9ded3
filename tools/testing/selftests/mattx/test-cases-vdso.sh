#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A case that others lost: moves that find threads inside the vdso.
# timeout: 900

. "$(dirname "$0")/cases.sh"

start clocks clocks 7 || finish_test
for ((n = 1; n <= 50; n++)); do
	elsewhere "$pid" || break
done
expect "A25 vdso-in-flight: 50 moves" "$n" 51
[ "$n" = 51 ] || comment "$out"
check "A25 vdso-in-flight: goes on" on 1 advance clocks
good_end clocks clocks ""
try_case -m 20 A25 "vdso-in-flight, under a handler"
check "nothing is out or in" nothing_out
finish_test
