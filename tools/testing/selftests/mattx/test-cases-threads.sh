#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Cases that others lost: threads, locks, memory and children.
# timeout: 900

. "$(dirname "$0")/cases.sh"

try_case A06 rseq-follows-cpu
try_case A06s "rseq-follows-cpu, in a critical section"
try_case A07 lock-before-unlock-after
try_case A16 zombie-status
try_case A17 stopped-child
try_case A21 fork-advice
try_case A22 big-reservation
try_case A23 mapped-deleted-file
try_case A23m mapped-deleted-file
try_case A23s mapped-deleted-file
try_case A28 no-false-owner-death
try_case A28m no-false-owner-death
try_refused A28s no-false-owner-death "shared with process"
try_case A30 "clean-refusals, real-time class"
try_case A32 join-across
try_case A33 fork-with-pool
try_case -m 20 A35 restart-keeps-wake
check "nothing is out or in" nothing_out
finish_test
