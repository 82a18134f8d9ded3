#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# open: home while a handler runs that interrupted the vdso: SIGBUS when it returns
# A case that others lost: the vdso is left in a frame of a signal's handler.
# timeout: 300

. "$(dirname "$0")/cases.sh"

try_case -m 20 A25 "vdso-in-flight, under a handler"
check "nothing is out or in" nothing_out
finish_test
