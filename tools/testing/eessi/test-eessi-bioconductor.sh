#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# R: OpenBLAS with two threads and Bioconductor's limma, then parallel's workers.
# timeout: 1200

. "$(dirname "$0")/lib.sh"

need R-bundle-Bioconductor Rscript
input blas.R parallel.R
on 1 "Rscript -e 'cat(requireNamespace(\"limma\", quietly = TRUE))'"
comment "limma: $out"

# R itself, for Rscript is only what starts it
moves R 2 "env OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2 R --no-echo --no-restore --file=blas.R --args SIZE"

# forked workers: one is away, then the other, then both and their parent
run_moved "env OPENBLAS_NUM_THREADS=1 R --no-echo --no-restore --file=parallel.R --args SIZE"
for k in 1 2; do
	check "worker $k begins" on 1 "wait_until 120 '[ -e $W/moved/worker.$k ]'"
	on 1 cat $W/moved/worker.$k
	worker[k]=$out
	cycle "worker $k" 2 "$out" $W/moved/steps.$k "$out"
done
check "the parent goes out" go_out "$pid" "$far"
check "a worker goes out" go_out "${worker[1]}" 2
progress "both away" 2 "${worker[1]}" $W/moved/steps.1 "${worker[1]}"
check "the parent has stayed there" stayed "$pid" "$far"
check "the parent comes home" home "$pid"
check "the worker comes home" home "${worker[1]}"
that_is_enough
steps steps.1
first=$out
steps steps.2
run_still "$first" "$out"
same_numbers stdout steps.1 steps.2
finish_eessi
