"""Three ranks of MPI that talk in three ways: rank 0 calls rank 1 by torch's RPC; what runs there calls rank 2 by gRPC, whose handler runs operators, and
exchanges a message with it by MPI.

    mpirun -n 3 python mixed_mpi_job.py
"""
import os
import socket
from concurrent import futures

import grpc
import torch
import torch.distributed.rpc as rpc
from mpi4py import MPI

kCalls = 10
world = MPI.COMM_WORLD


def ask(port, n):
    """Runs on rank 1."""
    with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
        answer = channel.unary_unary("/mixed.Third/sine_%d" % n)(b"%d" % n)
    return int(answer), world.sendrecv(n, dest=2, sendtag=n, source=2, recvtag=n)


class Third(grpc.GenericRpcHandler):
    def service(self, details):
        def sine(request, context):
            return b"%d" % int(torch.sin(torch.zeros(int(request) + 1)).numel())

        return grpc.unary_unary_rpc_method_handler(sine)


def third():
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(Third(),))
    world.bcast(server.add_insecure_port("127.0.0.1:0"), root=2)
    server.start()
    for n in range(kCalls):
        world.send(world.recv(source=1, tag=n) * 2, dest=1, tag=n)
    server.stop(None).wait()


def worker(rank):
    port = world.bcast(None, root=2)
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2)
    if rank == 0:
        import mixed_mpi_job  # by the name that rank 1 knows it by

        answers = [rpc.rpc_sync("worker1", mixed_mpi_job.ask, args=(port, n)) for n in range(kCalls)]
        assert answers == [(n + 1, 2 * n) for n in range(kCalls)], answers
    rpc.shutdown()


def main():
    port = None
    if world.rank == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(world.bcast(port, root=0)))
    if world.rank == 2:
        third()
    else:
        worker(world.rank)
    world.Barrier()


if __name__ == "__main__":
    main()
