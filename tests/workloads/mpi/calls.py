"""mpi4py, four ranks: pickled and plain messages, wildcards, requests, collectives, communicators; LOG.<rank> says what was done (said.h).

    calls.py LOG
"""
import array
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
said = open("%s.%d" % (sys.argv[1], rank), "w")
serial = 0
numbers = {}


def payload():
    global serial
    serial += 1
    return rank * 1000000 + serial


def sent(function, label, tag, number):
    print("S", function, label, tag, number, file=said)


def received(function, label, status, number):
    print("R", function, label, status.Get_tag(), number, file=said)


def collective(function, label, kind="range"):
    numbers[label] = numbers.get(label, 0) + 1
    print("C", function, label, numbers[label], kind, file=said)


def messages(comm, label):
    """The last one hears all others: objects, which it must ask the size of before, and buffers."""
    status, last = MPI.Status(), comm.Get_size() - 1
    count = 3
    if comm.Get_rank() != last:
        for turn in range(count):
            number = payload()
            comm.send({"number": number}, dest=last, tag=1 + turn % 2)
            sent("MPI_Send", label, 1 + turn % 2, number)
            number = payload()
            comm.Isend(array.array("q", [number]), dest=last, tag=5).Wait()
            sent("MPI_Isend", label, 5, number)
        return
    for turn in range(count * last):
        tag = 1 if turn % count != 1 else 2
        number = comm.recv(source=MPI.ANY_SOURCE, tag=tag, status=status)["number"]
        received("MPI_Mrecv", label, status, number)
    boxes = [array.array("q", [-1]) for _ in range(count * last)]
    requests = [comm.Irecv(box, source=MPI.ANY_SOURCE, tag=5) for box in boxes]
    statuses = [MPI.Status() for _ in requests]
    MPI.Request.Waitall(requests, statuses)
    for box, status in zip(boxes, statuses):
        received("MPI_Irecv", label, status, box[0])


def collectives(comm, label):
    out, one, into = (array.array("q", [rank] * count) for count in (1, 1, comm.Get_size()))
    collective("MPI_Barrier", label)
    comm.Barrier()
    collective("MPI_Allreduce", label)
    comm.Allreduce(out, one, MPI.SUM)
    collective("MPI_Bcast", label)
    comm.Bcast(out, 0)
    collective("MPI_Allgather", label)
    comm.Allgather(out, into)
    collective("MPI_Ibarrier", label, "async")
    comm.Ibarrier().Wait()
    collective("MPI_Iallreduce", label, "async")
    comm.Iallreduce(out, one, MPI.SUM).Wait()


messages(world, "world")
collectives(world, "world")
collective("MPI_Comm_split", "world")
half = world.Split(rank % 2, rank)
mine = "world/1.%d" % (rank % 2)
messages(half, mine)
collectives(half, mine)
collective("MPI_Comm_dup", "world")
twin = world.Dup()
collectives(twin, "world/2.0")
twin.Free()
half.Free()
said.close()
