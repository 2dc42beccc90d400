"""Ringside's Python part: what only Python knows of a job, told to the shim in the same process."""
