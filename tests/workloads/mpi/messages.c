// Messages of every kind among four ranks, each with a number of its own; LOG.<rank> says what was sent and received (said.h).
//
//     messages LOG
#include <string.h>

#include "said.h"

static Comm world = {MPI_COMM_NULL, "world", 0};
static const int kNumbers = 16;

static void say_all(const char* function, const Comm* on, int count, const MPI_Status* statuses,
                    const long* box) {
    for (int i = 0; i < count; ++i) received(function, on, &statuses[i], box[i]);
}

/// Every way to send, from 0 to 1.
static void senders(void) {
    long box[3];
    MPI_Request requests[3];
    if (rank == 0) {
        static char room[4096];
        SEND(MPI_Send, &world, 1, 1);
        SEND(MPI_Ssend, &world, 1, 1);
        MPI_Buffer_attach(room, sizeof room);
        SEND(MPI_Bsend, &world, 1, 1);
        ISEND(MPI_Ibsend, &world, 1, 1, &box[0], &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        int bytes;
        char* back;
        MPI_Buffer_detach(&back, &bytes);
        receive(&world, 1, 2);  // its receives are posted
        SEND(MPI_Rsend, &world, 1, 3);
        ISEND(MPI_Isend, &world, 1, 3, &box[0], &requests[0]);
        ISEND(MPI_Issend, &world, 1, 3, &box[1], &requests[1]);
        ISEND(MPI_Irsend, &world, 1, 4, &box[2], &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        long boxes[4];
        MPI_Request posted[4];
        MPI_Status statuses[4];
        for (int i = 0; i < 4; ++i) receive(&world, 0, 1);
        for (int i = 0; i < 4; ++i)
            MPI_Irecv(&boxes[i], 1, MPI_LONG, 0, i < 3 ? 3 : 4, world.comm, &posted[i]);
        SEND(MPI_Send, &world, 0, 2);
        MPI_Waitall(4, posted, statuses);
        say_all("MPI_Irecv", &world, 4, statuses, boxes);
    }
}

/// Persistent requests from 2 to 3, started one by one and together; what is not active is none of a wait's business.
static void persistent(void) {
    long box[2];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank == 2) {
        MPI_Send_init(&box[0], 1, MPI_LONG, 3, 10, world.comm, &requests[0]);
        MPI_Ssend_init(&box[1], 1, MPI_LONG, 3, 11, world.comm, &requests[1]);
    } else if (rank == 3) {
        MPI_Recv_init(&box[0], 1, MPI_LONG, 2, 10, world.comm, &requests[0]);
        MPI_Recv_init(&box[1], 1, MPI_LONG, MPI_ANY_SOURCE, 11, world.comm, &requests[1]);
    } else {
        return;
    }
    for (int round = 0; round < 4; ++round) {
        if (rank == 2) box[0] = next_payload(), box[1] = next_payload();
        if (round % 2 == 0) {
            MPI_Startall(2, requests);
        } else {
            MPI_Start(&requests[0]);
            MPI_Start(&requests[1]);
        }
        if (rank == 2) {
            sent("MPI_Send_init", &world, 10, box[0]);
            sent("MPI_Ssend_init", &world, 11, box[1]);
        }
        MPI_Waitall(2, requests, statuses);
        if (rank == 3) say_all("MPI_Recv_init", &world, 2, statuses, box);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);  // neither is active
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/// A ring of exchanges, to oneself too, and with nobody.
static void exchanges(void) {
    long out = next_payload(), in;
    MPI_Status status;
    MPI_Sendrecv(&out, 1, MPI_LONG, (rank + 1) % size, 20, &in, 1, MPI_LONG,
                 (rank + size - 1) % size, 20, world.comm, &status);
    sent("MPI_Sendrecv", &world, 20, out);
    received("MPI_Sendrecv", &world, &status, in);
    long both = out = next_payload();
    MPI_Sendrecv_replace(&both, 1, MPI_LONG, rank ^ 1, 21, MPI_ANY_SOURCE, MPI_ANY_TAG, world.comm,
                         &status);
    sent("MPI_Sendrecv_replace", &world, 21, out);
    received("MPI_Sendrecv_replace", &world, &status, both);
    out = next_payload();
    MPI_Sendrecv(&out, 1, MPI_LONG, rank, 22, &in, 1, MPI_LONG, rank, 22, world.comm, &status);
    sent("MPI_Sendrecv", &world, 22, out);
    received("MPI_Sendrecv", &world, &status, in);
    MPI_Request request;
    ISEND(MPI_Isend, &world, rank, 23, &out, &request);
    receive(&world, rank, 23);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    // Nobody: no message.
    MPI_Send(&out, 1, MPI_LONG, MPI_PROC_NULL, 24, world.comm);
    MPI_Recv(&in, 1, MPI_LONG, MPI_PROC_NULL, 24, world.comm, MPI_STATUS_IGNORE);
    MPI_Irecv(&in, 1, MPI_LONG, MPI_PROC_NULL, 24, world.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    // Half of an exchange.
    if (rank == 0) {
        MPI_Sendrecv(&out, 1, MPI_LONG, MPI_PROC_NULL, 25, &in, 1, MPI_LONG, 3, 25, world.comm,
                     &status);
        received("MPI_Sendrecv", &world, &status, in);
    } else if (rank == 3) {
        out = next_payload();
        MPI_Sendrecv(&out, 1, MPI_LONG, 0, 25, &in, 1, MPI_LONG, MPI_PROC_NULL, 25, world.comm,
                     MPI_STATUS_IGNORE);
        sent("MPI_Sendrecv", &world, 25, out);
    }
}

/// Three senders at once; who comes first is who comes first.
static void wildcards(void) {
    if (rank == 0) {
        long boxes[16];
        MPI_Request posted[16];
        MPI_Status statuses[16];
        for (int i = 0; i < 15; ++i) receive(&world, MPI_ANY_SOURCE, i % 3 == 0 ? MPI_ANY_TAG : 30);
        for (int i = 0; i < 15; ++i)
            MPI_Irecv(&boxes[i], 1, MPI_LONG, MPI_ANY_SOURCE, 31, world.comm, &posted[i]);
        for (int source = 1; source < 4; ++source)
            SEND(MPI_Send, &world, source, 32);  // from here on
        MPI_Waitall(15, posted, statuses);
        say_all("MPI_Irecv", &world, 15, statuses, boxes);
    } else {
        for (int i = 0; i < 5; ++i) SEND(MPI_Send, &world, 0, 30);
        receive(&world, 0, 32);
        for (int i = 0; i < 5; ++i) SEND(MPI_Send, &world, 0, 31);
    }
    // Out of order: the second tag first, the rest by whatever comes.
    if (rank == 2) {
        for (int i = 0; i < 3; ++i) SEND(MPI_Send, &world, 3, i == 1 ? 34 : 33);
    } else if (rank == 3) {
        long payload;
        receive(&world, 2, 34);
        MPI_Recv(&payload, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, world.comm, MPI_STATUS_IGNORE);
        fprintf(said, "R MPI_Recv world 33 %ld\n", payload);
        receive(&world, 2, 33);
    }
}

/// A probe shows a message, a matched probe takes it: the order of these counts, not that of the receives.
static void probes(void) {
    if (rank == 1) {
        for (int i = 0; i < kNumbers; ++i) SEND(MPI_Send, &world, 2, 40 + i % 2);
    } else if (rank == 2) {
        MPI_Status status;
        MPI_Message taken[2];
        long payload;
        int there = 0;
        for (int i = 0; i < kNumbers - 8; ++i) {
            MPI_Probe(MPI_ANY_SOURCE, i < 4 ? 41 : 40, world.comm, &status);
            receive(&world, status.MPI_SOURCE, status.MPI_TAG);
        }
        for (int pair = 0; pair < 4; ++pair) {
            MPI_Mprobe(1, 40 + pair % 2, world.comm, &taken[0], &status);
            while (
                MPI_Improbe(MPI_ANY_SOURCE, 40 + pair % 2, world.comm, &there, &taken[1], &status),
                !there) {
            }
            MPI_Mrecv(&payload, 1, MPI_LONG, &taken[1], &status);
            received("MPI_Mrecv", &world, &status, payload);
            MPI_Request request;
            MPI_Imrecv(&payload, 1, MPI_LONG, &taken[0], &request);
            MPI_Wait(&request, &status);
            received("MPI_Imrecv", &world, &status, payload);
        }
    }
}

typedef enum {
    kWait,
    kWaitany,
    kWaitsome,
    kWaitall,
    kTest,
    kTestany,
    kTestsome,
    kTestall,
    kWays
} Way;

/// Completes the requests of `way`, and says what has come in what order.
static void complete(Way way, MPI_Request* posted, const long* boxes, int count) {
    int left = count, indices[16], done;
    MPI_Status statuses[16];
    if (way == kWaitall || way == kTestall) {
        if (way == kWaitall) MPI_Waitall(count, posted, statuses);
        for (done = way == kWaitall; !done;) MPI_Testall(count, posted, &done, statuses);
        say_all("MPI_Irecv", &world, count, statuses, boxes);
        return;
    }
    for (int turn = 0; left > 0; ++turn) {
        int which = count - left, some = 0;  // the last posted comes first where each is waited for
        if (way == kWait || way == kTest) {
            which = left - 1;
            if (way == kWait) MPI_Wait(&posted[which], statuses), some = 1;
            if (way == kTest) MPI_Test(&posted[which], &some, statuses);
            indices[0] = which;
        } else if (way == kWaitany || way == kTestany) {
            if (way == kWaitany) MPI_Waitany(count, posted, &indices[0], statuses), some = 1;
            if (way == kTestany) MPI_Testany(count, posted, &indices[0], &some, statuses);
        } else if (way == kWaitsome) {
            MPI_Waitsome(count, posted, &some, indices, statuses);
        } else {
            MPI_Testsome(count, posted, &some, indices, statuses);
        }
        for (int i = 0; i < some; ++i)
            received("MPI_Irecv", &world, &statuses[i], boxes[indices[i]]);
        left -= some;
    }
}

/// Receives that were posted in one order and are waited for in another, in each way.
static void waits(void) {
    long boxes[16];
    MPI_Request requests[16];
    for (Way way = kWait; way < kWays; ++way) {
        if (rank == 3) {
            for (int i = 0; i < kNumbers; ++i)
                MPI_Irecv(&boxes[i], 1, MPI_LONG, i % 3, 50 + (int)way, world.comm, &requests[i]);
            for (int to = 0; to < 3; ++to) SEND(MPI_Send, &world, to, 49);
            complete(way, requests, boxes, kNumbers);
        } else {
            receive(&world, 3, 49);
            int mine = (kNumbers + 2 - rank) / 3;
            for (int i = 0; i < mine; ++i)
                ISEND(MPI_Isend, &world, 3, 50 + (int)way, &boxes[i], &requests[i]);
            MPI_Waitall(mine, requests, MPI_STATUSES_IGNORE);
        }
    }
}

/// What is given up takes no message's number: a cancelled receive, and one that nobody waits for.
static void given_up(void) {
    long payload = -1;
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    if (rank == 0) {
        MPI_Irecv(&payload, 1, MPI_LONG, 1, 60, world.comm, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (!cancelled) abort();
        SEND(MPI_Send, &world, 1, 61);
        receive(&world, 1, 60);
        receive(&world, MPI_ANY_SOURCE, 60);
    } else if (rank == 1) {
        long box;
        receive(&world, 0, 61);
        SEND(MPI_Send, &world, 0, 60);
        ISEND(MPI_Isend, &world, 0, 60, &box, &request);
        MPI_Request_free(&request);
        receive(&world, 2, 62);
    } else if (rank == 2) {
        SEND(MPI_Send, &world, 1, 62);
    }
}

/// A receive from anybody was posted before one from 1: the first message is the first's, though the second is waited for first.
static void overtaken(void) {
    if (rank == 2) {
        long boxes[2];
        MPI_Request posted[2];
        MPI_Status status;
        MPI_Irecv(&boxes[0], 1, MPI_LONG, MPI_ANY_SOURCE, 65, world.comm, &posted[0]);
        MPI_Irecv(&boxes[1], 1, MPI_LONG, 1, 65, world.comm, &posted[1]);
        SEND(MPI_Send, &world, 1, 66);
        for (int i = 1; i >= 0; --i) {
            MPI_Wait(&posted[i], &status);
            received("MPI_Irecv", &world, &status, boxes[i]);
        }
    } else if (rank == 1) {
        receive(&world, 2, 66);
        SEND(MPI_Send, &world, 2, 65);
        SEND(MPI_Send, &world, 2, 65);
    }
}

/// The same ranks and tags on other communicators are other channels.
static void communicators(void) {
    Comm half = {MPI_COMM_NULL, rank % 2 == 0 ? "world/1.0" : "world/1.1", 0},
         twin = {MPI_COMM_NULL, "world/2.0", 0};
    Comm line = {MPI_COMM_NULL, "world/3.0", 0}, between = {MPI_COMM_NULL, "?between", 0},
         all = {MPI_COMM_NULL, "?all", 0};
    const int four = 4, no = 0;
    int mine;
    MPI_Comm_split(world.comm, rank % 2, -rank, &half.comm);  // the last comes first
    MPI_Comm_dup(world.comm, &twin.comm);
    MPI_Cart_create(world.comm, 1, &four, &no, 1, &line.comm);
    MPI_Comm_rank(half.comm, &mine);
    for (int i = 0; i < 2; ++i) {
        if (mine == 0) SEND(MPI_Send, &half, 1, 70);
        if (mine == 1) receive(&half, i == 0 ? 0 : MPI_ANY_SOURCE, 70);
        if (rank == 0) SEND(MPI_Send, &twin, 2, 70);
        if (rank == 2) receive(&twin, 0, 70);
        int back, ahead;
        MPI_Cart_shift(line.comm, 0, 1, &back, &ahead);
        SEND(MPI_Send, &line, ahead, 71);  // the last rank's goes nowhere
        if (back != MPI_PROC_NULL) receive(&line, back, 71);
    }
    MPI_Intercomm_create(half.comm, 0, world.comm, rank % 2 == 0 ? 3 : 2, 72, &between.comm);
    SEND(MPI_Send, &between, mine, 73);
    receive(&between, mine, 73);
    MPI_Intercomm_merge(between.comm, rank % 2, &all.comm);
    int place;
    MPI_Comm_rank(all.comm, &place);
    SEND(MPI_Send, &all, (place + 1) % size, 74);
    receive(&all, MPI_ANY_SOURCE, MPI_ANY_TAG);
    MPI_Comm_free(&all.comm);
    MPI_Comm_free(&between.comm);
    MPI_Comm_free(&half.comm);
    // One made behind one that is gone: perhaps the same handle, never the same communicator.
    Comm again = {MPI_COMM_NULL, "world/4.0", 0};
    MPI_Comm_dup(world.comm, &again.comm);
    if (rank == 0) SEND(MPI_Send, &again, 1, 70);
    if (rank == 1) receive(&again, 0, 70);
    MPI_Comm_free(&again.comm);
    MPI_Comm_free(&twin.comm);
    MPI_Comm_free(&line.comm);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    begin_saying(argv[1], &argc, &argv);
    world.comm = MPI_COMM_WORLD;
    if (size != 4) return 2;
    void (*const parts[])(void) = {senders, persistent, exchanges, wildcards,    probes,
                                   waits,   given_up,   overtaken, communicators};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        if (argc > 2 && strchr(argv[2], '0' + (int)i) == NULL) continue;  // these parts alone
        parts[i]();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fclose(said);
    MPI_Finalize();
    return 0;
}
