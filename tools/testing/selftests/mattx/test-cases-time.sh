#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Cases that others lost: timers, clocks, and threads that wait.
# timeout: 900

. "$(dirname "$0")/cases.sh"

try_case A01 timerfd-pending-tick
try_case A02 oneshot-itimer
try_case A03 timerfd-absolute-nsec
try_case A04 two-clock-paths
try_case A05 fixed-rate-scheduler
try_case A08 sigev-thread-later
try_case A09 timer-to-leader
try_case A14 eintr-budget
try_case A31 ppoll-mask
check "nothing is out or in" nothing_out
finish_test
