#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# numpy over OpenBLAS with two threads: the same numbers, to the last bit.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need SciPy-bundle python3
on 1 "python3 -c 'import numpy
import re
maps = open(\"/proc/self/maps\").read()
assert re.search(\"openblas|flexiblas\", maps)'" ||
	skip_test "no numpy over OpenBLAS on node 1"
input numpy-steps.py
moves numpy 2 "env OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2 python3 numpy-steps.py SIZE"
finish_eessi
