! Four ranks in Fortran, by `use mpi`: LOG.<rank> says what was sent, received and done together (said.h).
program calls
    use mpi
    implicit none
    integer :: half, twin
    integer :: status(MPI_STATUS_SIZE)
    integer :: requests(2)
    character(len=4096) :: path
    character(len=16) :: label
    integer :: rank, size, error, turn, serial = 0
    integer(8) :: out, in, boxes(2)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, size, error)
    call get_command_argument(1, path)
    write (path, '(a,".",i0)') trim(path), rank
    open (unit=10, file=trim(path), status='replace')
    do turn = 1, 3
        ! A ring, and whoever comes.
        call next(out)
        call MPI_Sendrecv(out, 1, MPI_INTEGER8, mod(rank + 1, size), 1, &
                          in, 1, MPI_INTEGER8, mod(rank + 3, size), 1, MPI_COMM_WORLD, status, error)
        call sent('MPI_Sendrecv', 'world', 1, out)
        call received('MPI_Sendrecv', 'world', status(MPI_TAG), in)
        call next(boxes(1))
        call MPI_Isend(boxes(1), 1, MPI_INTEGER8, mod(rank + 2, size), 2, MPI_COMM_WORLD, requests(1), error)
        call sent('MPI_Isend', 'world', 2, boxes(1))
        call MPI_Irecv(boxes(2), 1, MPI_INTEGER8, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests(2), error)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
        call received('MPI_Irecv', 'world', 2, boxes(2))
        if (rank == 0) then
            call MPI_Recv(in, 1, MPI_INTEGER8, 1, MPI_ANY_TAG, MPI_COMM_WORLD, status, error)
            call received('MPI_Recv', 'world', status(MPI_TAG), in)
        else if (rank == 1) then
            call next(out)
            call MPI_Send(out, 1, MPI_INTEGER8, 0, 10 + turn, MPI_COMM_WORLD, error)
            call sent('MPI_Send', 'world', 10 + turn, out)
        end if
    end do
    write (10, '(a)') 'C MPI_Comm_split world 1 range'
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
    write (label, '("world/1.",i0)') mod(rank, 2)
    write (10, '(a)') 'C MPI_Allreduce ' // trim(label) // ' 1 range'
    call MPI_Allreduce(out, in, 1, MPI_INTEGER8, MPI_SUM, half, error)
    write (10, '(a)') 'C MPI_Ibarrier world 2 async'
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    ! Its handle stands on a stack of the bindings' own while it is made.
    write (10, '(a)') 'C MPI_Comm_idup world 3 async'
    call MPI_Comm_idup(MPI_COMM_WORLD, twin, requests(1), error)
    call next(out)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    write (10, '(a)') 'C MPI_Allreduce world/2.0 1 range'
    call MPI_Allreduce(out, in, 1, MPI_INTEGER8, MPI_SUM, twin, error)
    write (10, '(a)') 'C MPI_Bcast world 4 range'
    call MPI_Bcast(out, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, error)
    call MPI_Comm_free(half, error)
    call MPI_Comm_free(twin, error)
    close (10)
    call MPI_Finalize(error)

contains

    subroutine next(number)
        integer(8), intent(out) :: number
        serial = serial + 1
        number = rank * 1000000_8 + serial
    end subroutine

    subroutine sent(function, label, tag, number)
        character(len=*), intent(in) :: function, label
        integer, intent(in) :: tag
        integer(8), intent(in) :: number
        write (10, '(a,1x,i0,1x,i0)') 'S ' // function // ' ' // label, tag, number
    end subroutine

    subroutine received(function, label, tag, number)
        character(len=*), intent(in) :: function, label
        integer, intent(in) :: tag
        integer(8), intent(in) :: number
        write (10, '(a,1x,i0,1x,i0)') 'R ' // function // ' ' // label, tag, number
    end subroutine
end program
