#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A hundred threads that wait for each other in every way, moved fifty times at random
# moments: none is silent afterwards, and all they count is right.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

RANDOM=7
# moved COMMAND... - at a random moment; then every thread has to go on, twice
moved()
{
	printf -v moment '0.%03d' $((RANDOM % 400))
	sleep "$moment"
	"$@" || { comment "$*, move $n: $out"; return 1; }
	on 1 advance torture 2 || { comment "after $*, move $n: $out"; return 1; }
	n=$((n + 1))
}

start torture torture || finish_test
n=0
while [ $n -lt 50 ] && moved migrate "$pid" node2 && moved home "$pid"; do
	:
done
expect "fifty moves" "$n" 50
good_end torture torture ""
check "nothing is out or in" nothing_out
finish_test
