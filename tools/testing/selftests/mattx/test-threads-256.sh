#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 256 threads, in every kind of wait.
# timeout: 600

. "$(dirname "$0")/lib.sh"

start many threads 256 || finish_test
for i in 1 2 3; do
	check "round trip $i" round_trip many "$pid"
done
on 1 "ls /proc/$pid/task | wc -l"
expect "no thread was lost" "$out" 257
good_end many threads ""
check "nothing is out or in" nothing_out
finish_test
