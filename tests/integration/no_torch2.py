#!/usr/bin/python3
"""Stands in the suite torch2 where there is no PyTorch 2, so that its absence is said."""
from harness import skip

skip("PyTorch 2 is not here: tools/setup --torch2 makes it (2.5 GB to fetch), or -Dpython2 names a Python that has it")
