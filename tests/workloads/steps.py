"""Says "ready", waits for "go", makes a number of ranges through the API, says "stepped", and waits for "leave"."""
import sys

import conditions

try:
    import ringside
except ImportError:
    ringside = None

folder, count = sys.argv[1], int(sys.argv[2])
conditions.announce(folder, "ready")
conditions.await_condition(folder, "go")
for number in range(count):
    with ringside.range("bullseye step", payload=number):
        pass
conditions.announce(folder, "stepped")
conditions.await_condition(folder, "leave")
