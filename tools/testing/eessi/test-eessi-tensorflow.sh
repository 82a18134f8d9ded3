#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# TensorFlow with two threads in each of its pools trains a model to the same loss.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

need TensorFlow python3
on 1 "python3 -c 'import tensorflow'" ||
	skip_test "no TensorFlow on node 1: no EESSI, and Debian has none"
input tf-train.py
run_moved "env TF_CPP_MIN_LOG_LEVEL=2 python3 tf-train.py SIZE"
find_workers 2
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "TensorFlow, cycle $round" "$far" "$pid" $W/moved/stdout $workers
done
that_is_enough
steps stdout
run_still "$out"
same_numbers stdout
finish_eessi
