"""A small training loop: forward, backward, SGD. No profiler, unless --profile asks torch for its own count.

    training.py [--steps N] [--profile]     prints "steps N", with --profile "count NAME N" for each range that torch's profiler saw
"""
import argparse
import collections
import contextlib

import torch


def train(steps):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(steps, 4, 8)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(data[step]).pow(2).sum()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    profiler = torch.autograd.profiler.profile() if options.profile else contextlib.nullcontext()
    with profiler:
        train(options.steps)
    print("steps %d" % options.steps)
    if options.profile:
        # kineto_results, not function_events: those drop an only child of the same name
        names = collections.Counter(e.name() for e in profiler.kineto_results.events())
        for name, count in sorted(names.items()):
            print("count %s\t%d" % (name, count))


if __name__ == "__main__":
    main()
