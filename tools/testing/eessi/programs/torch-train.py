# SPDX-License-Identifier: GPL-2.0
"""PyTorch's pools, of two threads each, train a small model: torch-train.py STEPS"""
import os
import sys
import torch

torch.set_num_threads(2)
torch.set_num_interop_threads(2)
torch.manual_seed(17)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(),
                            torch.nn.Linear(256, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
inputs = torch.randn(256, 256)
targets = torch.randn(256, 16)


@torch.jit.script
def both(a, b):
    """Two products, each in a thread of the inter-op pool."""
    first = torch.jit.fork(torch.mm, a, b)
    second = torch.jit.fork(torch.mm, b, a)
    return torch.jit.wait(first).sum() + torch.jit.wait(second).sum()


for step in range(int(sys.argv[1])):
    if os.path.exists("enough"):
        break
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    weight = model[0].weight.detach()
    print(step, repr(loss.item()), repr(both(weight, weight.t()).item()), flush=True)
