#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The main job, as "make demo" does it.
# timeout: 600

. "$(dirname "$0")/lib.sh"

MATTX_DEMO_ROUNDS=200 "$top/tools/testing/demo" --here >"$work/demo" 2>&1
status=$?
sed 's/^/# /' "$work/demo"
expect "the demo ends well" "$status" 0
expect_match "its output did not change" "$(cat "$work/demo")" \
	"its output, and its exit status: identical"
expect_match "its file did not change" "$(cat "$work/demo")" \
	"the file it wrote: identical"
check "nothing is out or in" nothing_out
finish_test
