#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# ESPResSo, an MPI job of one process: a fluid comes to the same energies.
# timeout: 900

. "$(dirname "$0")/lib.sh"

need ESPResSo python3
on 1 "python3 -c 'import espressomd'" ||
	skip_test "no ESPResSo on node 1: no EESSI, and Debian has none"
input espresso-lj.py
moves ESPResSo 1 "env OMP_NUM_THREADS=1 python3 espresso-lj.py SIZE"
finish_eessi
