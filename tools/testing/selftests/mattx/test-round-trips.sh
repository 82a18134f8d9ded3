#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One process, twenty times there and back: its threads wait in every way.
# timeout: 600
# debug: yes

. "$(dirname "$0")/lib.sh"

start threads threads 12 || finish_test
for ((i = 1; i <= 20; i++)); do
	round_trip threads "$pid" || break
done
expect "twenty round trips" "$i" 21
[ $i = 21 ] || comment "$out"
good_end threads threads ""
check "nothing is out or in" nothing_out
finish_test
