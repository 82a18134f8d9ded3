#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Node.js serves HTTP: every request is answered, and by the same, wherever it is.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need nodejs node
input http-server.js http-client.py
# libuv opens io_urings, which do not move, and does without if it may not; there is
# nothing else that tells it. Whose cluster it is else, that is his affair.
io_uring=/proc/sys/kernel/io_uring_disabled
[ -n "${NODE1:-}" ] || on 1 "echo 2 >$io_uring"
# the client is the server's child at home, which it knows nothing of
run_moved "sh -c 'python3 http-client.py SIZE 2>client & exec node http-server.js'"
check "answers come" on 1 grows $W/moved/answers 10
[ -n "${NODE1:-}" ] || on 1 "echo 0 >$io_uring"
find_workers 1
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "Node.js, cycle $round" "$far" "$pid" $W/moved/answers $workers
done
that_is_enough
# the last line is that of the end
steps answers
run_still $((out - 1))
same_numbers answers served
finish_eessi
