"""One of two RPC workers. Worker 0 times blocks of light calls to worker 1 when it is told to: one line in, one line of JSON out.

    block KIND N                us a call, KIND builtin or udf
    rounds KIND R N             R rounds in one pair of workers, capture toggled between blocks: idle, idle, idle, capturing; us a call each
    structure, quit
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402

import agent_stand_in  # noqa: E402
import idle_structure  # noqa: E402


def light():
    return 1


def process_id():
    return os.getpid()


def block(kind, count, x):
    function, arguments = (torch.add, (x, x)) if kind == "builtin" else (light, ())
    call = rpc.rpc_sync
    start = time.perf_counter_ns()
    for _ in range(count):
        call("worker1", function, args=arguments)
    return (time.perf_counter_ns() - start) / count / 1e3


def rounds(kind, count, calls, x, agent):
    """Pairs of neighbouring blocks, so that a slow drift of the machine is in both: (control, idle) and (capturing, idle), in turning order."""
    pairs = {"control": [], "capturing": []}

    def idle():
        return block(kind, calls, x)

    def capturing():
        agent.capture(True)
        result = block(kind, calls, x)
        agent.capture(False)
        return result

    for i in range(count + 1):
        for name, run in (("control", idle), ("capturing", capturing)):
            if i % 2 == 0:
                base, value = idle(), run()
            else:
                value, base = run(), idle()
            if i > 0:
                pairs[name].append([value, base])
    return {"us": pairs, "losses": agent.losses()}


def serve_commands(directory, x):
    for line in sys.stdin:
        command, *words = line.split()
        if command == "quit":
            return
        if command == "block":
            answer = block(words[0], int(words[1]), x)
        elif command == "structure":
            import ctypes
            library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
            answer = idle_structure.describe(library)
        else:
            pids = [os.getpid(), rpc.rpc_sync("worker1", process_id)]
            answer = rounds(words[0], int(words[1]), int(words[2]), x, agent_stand_in.StandIn(directory, pids))
        print(json.dumps(answer), flush=True)


def main():
    rank, port, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2)
    if rank == 0:
        x = torch.ones(2)
        for kind in ("builtin", "udf"):
            block(kind, 300, x)
        print(json.dumps({"pid": os.getpid()}), flush=True)
        serve_commands(directory, x)
    rpc.shutdown()


if __name__ == "__main__":
    main()
