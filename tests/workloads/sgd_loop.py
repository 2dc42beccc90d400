"""An SGD loop without end, fed by a worker process of torch's DataLoader; each forward pass is a range with its number. No profiler.

    sgd_loop.py --conditions DIR      says DIR/turning when it has turned some times, leaves after DIR/leave
"""
import argparse

import torch
from torch.autograd.profiler import record_function

import conditions

kInput = 8
kTurnsBefore = 20


class Batches(torch.utils.data.IterableDataset):
    """Made by operators, in the worker."""

    def __iter__(self):
        while True:
            yield torch.neg(torch.randn(4, kInput))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conditions", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(kInput, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for turn, batch in enumerate(torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=1)):
        optimizer.zero_grad()
        with record_function("forward %d" % turn):
            loss = model(batch).pow(2).sum()
        loss.backward()
        optimizer.step()
        if turn == kTurnsBefore:
            conditions.announce(options.conditions, "turning")
        if conditions.holds(options.conditions, "leave"):
            break


main()
