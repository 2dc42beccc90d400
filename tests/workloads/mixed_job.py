"""A job that mixes RPC systems: worker0 calls worker1 by torch's RPC; what runs there calls a third process by gRPC, whose handler runs operators.

    mixed_job.py          starts the three
"""
import os
import socket
import subprocess
import sys
from concurrent import futures

import grpc
import torch
import torch.distributed.rpc as rpc

kCalls = 20


def ask(port, n):
    """Runs on worker1."""
    with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
        return channel.unary_unary("/mixed.Third/sine_%d" % n)(b"%d" % n)


class Third(grpc.GenericRpcHandler):
    def service(self, details):
        def sine(request, context):
            return b"%d" % int(torch.sin(torch.zeros(int(request) + 1)).numel())

        return grpc.unary_unary_rpc_method_handler(sine)


def third():
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Third(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None).wait()


def worker(rank, port):
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2)
    if rank == 0:
        import mixed_job  # by the name that worker1 knows it by

        waiting = [rpc.rpc_async("worker1", mixed_job.ask, args=(port, n)) for n in range(kCalls // 2)]
        answers = [one.wait() for one in waiting] + [rpc.rpc_sync("worker1", mixed_job.ask, args=(port, n)) for n in range(kCalls // 2, kCalls)]
        assert answers == [b"%d" % (n + 1) for n in range(kCalls)], answers
    rpc.shutdown()


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(probe.getsockname()[1]))
    command = [sys.executable, "-W", "ignore", __file__]
    server = subprocess.Popen(command + ["third"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().strip()
    workers = [subprocess.Popen(command + [str(rank), port]) for rank in range(2)]
    assert [one.wait() for one in workers] == [0, 0]
    server.communicate()
    assert server.returncode == 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "third":
        third()
    else:
        worker(int(sys.argv[1]), int(sys.argv[2]))
