# SPDX-License-Identifier: GPL-2.0
"""MPI with all its ranks in every step: mpi-steps.py STEPS

Collectives, a ring, and one-sided traffic, on whole numbers, so that any order
gives the same. Each rank writes down its steps in steps.RANK and its PID in
rank.RANK; rank 0 says what came out.
"""
import os
import sys
import zlib
import numpy as np
from mpi4py import MPI

PRIME = 1000003
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
mine = np.arange(1, 513, dtype=np.int64) * (rank + 1)
window = MPI.Win.Allocate(8 * (size + 1), 8, comm=comm)
table = np.frombuffer(window.tomemory(), dtype=np.int64)
table[:] = 0
comm.Barrier()
log = open("steps.%d" % rank, "w", encoding="ascii", buffering=1)
with open("rank.%d" % rank, "w", encoding="ascii") as file:
    file.write("%d\n" % os.getpid())


def one_sided(step):
    """Everybody puts into everybody's table and adds to rank 0's counter."""
    window.Fence()
    word = np.array([step * size + rank], dtype=np.int64)
    for other in range(size):
        window.Put(word, other, rank)
    window.Fence()
    want = [step * size + other for other in range(size)]
    assert list(table[:size]) == want, (step, list(table), want)
    window.Fence()
    window.Accumulate(word, 0, size, MPI.SUM)
    window.Fence()
    got = np.zeros(1, dtype=np.int64)
    window.Lock(0, MPI.LOCK_SHARED)
    window.Get(got, 0, size)
    window.Unlock(0)
    comm.Barrier()
    return int(got[0])


digest = 0
for step in range(int(sys.argv[1])):
    if comm.bcast(os.path.exists("enough")):
        break
    mine = (mine * 31 + step + rank) % PRIME
    total = np.empty_like(mine)
    comm.Allreduce(mine, total, MPI.SUM)
    root = step % size
    comm.Bcast(total, root)
    parts = np.empty_like(mine[:size * (512 // size)])
    comm.Alltoall(mine[:len(parts)].copy(), parts)
    left = np.empty_like(mine)
    comm.Sendrecv(mine, (rank + 1) % size, 0, left, (rank - 1) % size, 0)
    counter = one_sided(step)
    mine = (total + left) % PRIME
    mine[:len(parts)] ^= parts
    digest = zlib.crc32(mine.tobytes(), digest) ^ (counter & 0xffffffff)
    log.write("%d\n" % step)
digests = comm.gather(digest)
if rank == 0:
    print(*digests, flush=True)
window.Free()
