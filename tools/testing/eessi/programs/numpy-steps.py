# SPDX-License-Identifier: GPL-2.0
"""Products, factorisations and eigenvalues of OpenBLAS: numpy-steps.py STEPS"""
import os
import sys
import numpy as np

N = 96
rng = np.random.default_rng(17)
a = rng.standard_normal((N, N)) / np.sqrt(N)
x = rng.standard_normal((N, N))
for step in range(int(sys.argv[1])):
    if os.path.exists("enough"):
        break
    x = a @ x
    x /= np.linalg.norm(x)
    y = np.linalg.solve(a + 2 * np.eye(N), x)
    line = [step, float(x[0, 0]), float(np.trace(x)), float(y.sum())]
    if step % 16 == 0:
        line.append(float(np.linalg.eigvalsh(x @ x.T)[-1]))
        line.append(float(np.linalg.svd(y, compute_uv=False)[0]))
    print(*map(repr, line), flush=True)
