#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An MPI job of one process, with Open MPI's default transports.
# timeout: 900

. "$(dirname "$0")/mpi.sh"

need OpenMPI mpirun
on 1 "software mpi4py python3; python3 -c 'import mpi4py.MPI'" ||
	skip_test "no mpi4py on node 1"
input mpi-steps.py

# there is nobody to share anything with
run_moved "$(mpi_env) python3 mpi-steps.py SIZE"
find_workers 1
for round in 1 2; do
	# shellcheck disable=SC2086
	cycle "alone, cycle $round" "$far" "$pid" "$W/moved/steps.0" $workers
done
that_is_enough
steps steps.0
run_still "$out"
same_numbers stdout
finish_eessi
