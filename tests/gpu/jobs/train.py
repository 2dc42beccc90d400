"""Deterministic training on the GPU: a small convolution, forward, backward, SGD. All of its kernels lie in the user range "measured".

    train.py --out FILE [--device cuda] [--steps N] [--profile FILE] [--conditions DIR]

--profile: torch.profiler around it, exported as Kineto's JSON. --conditions: says DIR/profiling, then a third of the steps, says DIR/stepped.0, goes on
with the next third at DIR/go.0, and so on; ends after DIR/end. FILE: versions, losses, what became of the device.
"""
import argparse
import contextlib
import json
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads"))
import conditions
import torch
from torch.profiler import ProfilerActivity, profile, record_function


def steps(device, count, model, optimizer, inputs, targets, losses):
    for _ in range(count):
        optimizer.zero_grad()
        with record_function("forward"):
            loss = torch.nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--profile")
    parser.add_argument("--conditions")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    inputs, targets = torch.randn(16, 3, 16, 16), torch.randn(16, 10)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    on_gpu = options.device != "cpu"
    if on_gpu:
        torch.cuda.init()
        torch.cuda.set_device(0)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    watched = profile(activities=activities) if options.profile else contextlib.nullcontext()

    def word(name, await_name=None):
        if not options.conditions:
            return
        conditions.announce(options.conditions, name)
        if await_name:
            conditions.await_condition(options.conditions, await_name)

    losses = []
    with watched as profiler:
        word("profiling", "go")
        with record_function("measured"):
            model.to(options.device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            for part in range(3):
                steps(options.device, options.steps // 3, model, optimizer, inputs, targets, losses)
                word("stepped.%d" % part, "go.%d" % part if part < 2 else None)
            if on_gpu:
                torch.cuda.synchronize()
    if options.profile:
        profiler.export_chrome_trace(options.profile)
    with open(options.out, "w") as out:
        json.dump({"torch": torch.__version__, "cuda": torch.version.cuda, "losses": losses}, out)
    word("profiled", "end")


if __name__ == "__main__":
    main()
