# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# lib.sh, and how MPI tests run their jobs. Ranks of one host share memory by
# default, and such a process does not move: so TCP alone, here and in PMIx. The
# directory is one where a file that is mapped is not of tmpfs (the nodes' /tmp is):
# PRRTE leaves what hwloc knows in one.

# shellcheck source=tools/testing/eessi/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# mpi_env - of every job
mpi_env()
{
	echo "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 \
OPENBLAS_NUM_THREADS=1 TMPDIR=/var/tmp"
}

# tcp N - mpirun of N ranks, on one host
tcp()
{
	echo "$(mpi_env) PMIX_MCA_gds=hash mpirun --bind-to none --map-by :OVERSUBSCRIBE \
--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include lo --mca osc ^ucx,sm \
--mca mpi_yield_when_idle 1 -n $1"
}

# tcp_apart N - each rank believes that it is on a host of its own: one-sided
# traffic shares memory on one host, whatever the transport
tcp_apart()
{
	local i hosts=r0:1

	for ((i = 1; i < $1; i++)); do
		hosts+=,r$i:1
	done
	echo "$(tcp "$1") --prtemca plm_ssh_agent $W/input/as-node --host $hosts"
}

declare -a rank

# find_ranks N NAME - rank[] are their PIDs
find_ranks()
{
	local i

	for ((i = 0; i < $1; i++)); do
		on 1 "wait_until 120 'rank_pid $i $2 >$W/rank'; cat $W/rank" || {
			not_ok "rank $i is found" "$out"
			finish_test
		}
		# shellcheck disable=SC2034
		rank[i]=$out
	done
	ok "$1 ranks run"
}

# two_away NAME FILE A B - both are away, on different nodes if there are three;
# whoever is away, a step is one of all ranks
two_away()
{
	local name=$1 file=$2 a=$3 b=$4

	check "$name: one goes out to node 2" go_out "$a" 2
	check "$name: another goes out to node $far" go_out "$b" "$far"
	check "$name: two away: steps go on" on 1 grows "$file" "$lines"
	check "$name: the first has stayed there" stayed "$a" 2
	check "$name: the other has stayed there" stayed "$b" "$far"
	check "$name: the first comes home" home "$a"
	check "$name: one away: steps go on" on 1 grows "$file" "$lines"
	check "$name: the other comes home" home "$b"
	check "$name: all home: steps go on" on 1 grows "$file" "$lines"
}
