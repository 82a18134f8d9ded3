#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PyTorch with its intra-op and inter-op pools trains a model to the same loss.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

need PyTorch python3
on 1 "python3 -c 'import torch; print(torch.__version__)'" ||
	skip_test "no PyTorch on node 1: neither EESSI nor python3-torch"
input torch-train.py
run_moved "env OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 python3 torch-train.py SIZE"
# one of each pool at least, the program's own thread among them
find_workers 3
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "PyTorch, cycle $round" "$far" "$pid" $W/moved/stdout $workers
done
that_is_enough
steps stdout
run_still "$out"
same_numbers stdout
finish_eessi
