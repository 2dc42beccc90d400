#!/usr/bin/env python3
"""One case of the GPU tests, by its name (`run` starts each in a process of its own); without a name: lists them."""
import sys

from gpu_lab import run_case  # first: it says where harness.py is
import cuda_cases
import torch_cases

kCases = {case.__name__: case for module in (cuda_cases, torch_cases) for case in module.kCases}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in kCases:
        sys.exit("\n".join("%-26s %s" % (name, case.__doc__.split("\n")[0]) for name, case in kCases.items()))
    run_case(kCases[sys.argv[1]], sys.argv[1])
