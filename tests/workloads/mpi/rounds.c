// A job that goes on: rounds of messages (from any to any) and collectives, until the file UNTIL is there. LOG.<rank> says what was sent and received in
// them (said.h), SAY.<rank> is there once the first rounds are over.
//
//     rounds LOG SAY UNTIL [STOPPED]      STOPPED: of this rank; after the last round it says its pid by SAY.<pid> and waits for what nobody sends
#include <unistd.h>

#include "said.h"

static Comm world = {MPI_COMM_NULL, "world", 0}, half = {MPI_COMM_NULL, NULL, 0};

static void round_of(int number) {
    long boxes[3], arrived[3];
    MPI_Request requests[6];
    MPI_Status statuses[6];
    for (int i = 0; i < 3; ++i)
        MPI_Irecv(&arrived[i], 1, MPI_LONG, MPI_ANY_SOURCE, number % 3, world.comm, &requests[i]);
    for (int i = 0; i < 3; ++i)
        ISEND(MPI_Isend, &world, (rank + 1 + i) % size, number % 3, &boxes[i], &requests[3 + i]);
    MPI_Waitall(6, requests, statuses);
    for (int i = 0; i < 3; ++i) received("MPI_Irecv", &world, &statuses[i], arrived[i]);
    int mine;
    MPI_Comm_rank(half.comm, &mine);
    if (mine == 0) SEND(MPI_Send, &half, 1, 7);
    if (mine == 1) receive(&half, 0, 7);
    collective("MPI_Allreduce", &half, "range");
    MPI_Allreduce(&boxes[0], &boxes[1], 1, MPI_LONG, MPI_SUM, half.comm);
}

static void say(const char* path, int number) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", path, number);
    fclose(fopen(name, "w"));
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    begin_saying(argv[1], &argc, &argv);
    if (size != 4) return 2;
    world.comm = MPI_COMM_WORLD;
    half.label = rank % 2 == 0 ? "world/1.0" : "world/1.1";
    collective("MPI_Comm_split", &world, "range");
    MPI_Comm_split(world.comm, rank % 2, rank, &half.comm);
    for (int number = 0, over = 0; !over; ++number) {
        round_of(number);
        usleep(300);  // a job's pace: two cores are shared with the agent; nothing waits for it
        long asked = rank == 0 && access(argv[3], F_OK) == 0, told;
        collective("MPI_Allreduce", &world, "range");
        MPI_Allreduce(&asked, &told, 1, MPI_LONG, MPI_MAX, world.comm);
        over = told != 0;
        if (number != 20) continue;
        say(argv[2], rank);
    }
    long never;
    if (argc > 4 && atoi(argv[4]) == rank) {
        say(argv[2], getpid());
        MPI_Recv(&never, 1, MPI_LONG, MPI_ANY_SOURCE, 77, half.comm, MPI_STATUS_IGNORE);
    }
    fclose(said);
    MPI_Finalize();
    return 0;
}
