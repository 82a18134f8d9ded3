#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# redis-server under redis-benchmark, and a client that reads back what it wrote, on one
# connection that lasts over all moves.
# timeout: 900

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

need redis-server redis-benchmark python3
input redis-check.py
run redis "redis-server --port 6379 --bind 127.0.0.1 --unixsocket $P/redis.sock --save '' --dir $P --loglevel warning"
check "answers" on 1 "wait_until 60 'redis-cli -s $P/redis.sock ping'"
client checker "python3 redis-check.py $P/redis.sock"
check "the checker works" more rounds 2

benchmark()
{
	more rounds 3 &&
		on 1 "redis-benchmark -h 127.0.0.1 -n 200 -c 10 -q -t set,get,incr,lpush,mset" &&
		[ "$(grep -ac 'requests per second' <<<"$out")" -ge 5 ]
}

for i in 1 2 3; do
	cycle "$i" "$pid" benchmark
done
on 1 touch $P/enough
client_ends checker $'exit 0\n0 wrong'
served_end redis "$pid" TERM "exit 0"
finish_test
