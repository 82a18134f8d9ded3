#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Cases that others lost: pipes, sockets, epoll sets and what /proc tells.
# timeout: 900

. "$(dirname "$0")/cases.sh"

try_case A10 epoll-listener
try_case A11 epoll-two-names
try_case A12 epoll-after-fork
try_case A18 empty-pipe-size
try_case A19 fd-in-flight
try_case A20 unaccepted-with-data
try_case -m 10 A24 exactly-once-output
try_case -u 1000 A26 proc-self-fd
try_case A29 inotify-quiet
try_case A34 shared-epoll-waiters
check "nothing is out or in" nothing_out
finish_test
