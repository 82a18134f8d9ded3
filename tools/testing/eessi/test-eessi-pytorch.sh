#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# PyTorch with its intra-op and inter-op pools trains a model to the same loss.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

need PyTorch python3
on 1 "python3 -c 'import torch; print(torch.__version__)'" ||
	skip_test "no PyTorch on node 1: neither EESSI nor python3-torch"
input torch-train.py
# one of each pool at least, the program's own thread among them
moves PyTorch 3 "env OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 python3 torch-train.py SIZE"
finish_eessi
