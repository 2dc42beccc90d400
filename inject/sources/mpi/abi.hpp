// What the MPI libraries' interfaces look like at run time, without a header of any: Open MPI 4 and 5 on one side, MPICH 4 and 5 and what is built to its
// ABI on the other. Compared with the real headers by tests/mpi/layout.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringside::inject::mpi {

/// An argument of a call as it is passed: in a register or a place of the stack. Of an int, and of MPICH's handles, the upper half is undefined.
using Word = std::uint64_t;

inline std::int32_t int_of(Word word) {
    return static_cast<std::int32_t>(word);
}
template <class T>
T* pointer_of(Word word) {
    return reinterpret_cast<T*>(word);
}

inline constexpr std::uint32_t kMostStatusBytes = 24;

struct Abi {
    std::uint32_t handle_bytes;
    std::int32_t any_source, proc_null, any_tag;
    Word ignore;  ///< MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
    std::uint32_t status_bytes, source_at, tag_at, cancelled_at;
    std::uint32_t cancelled_mask;
    Word comm_world, comm_self, comm_null, request_null;  ///< Open MPI: addresses, looked up

    Word handle(Word word) const {
        return handle_bytes == 4 ? static_cast<std::uint32_t>(word) : word;
    }
    /// The handle that lies at `address`, the `nth` of an array.
    Word handle_at(Word address, std::size_t nth = 0) const {
        Word handle = 0;
        std::memcpy(&handle, pointer_of<std::byte>(address) + nth * handle_bytes, handle_bytes);
        return handle;
    }
    std::int32_t source(const std::byte* status) const { return field(status, source_at); }
    std::int32_t tag(const std::byte* status) const { return field(status, tag_at); }
    bool cancelled(const std::byte* status) const {
        return (static_cast<std::uint32_t>(field(status, cancelled_at)) & cancelled_mask) != 0;
    }
    std::uint64_t bytes(const std::byte* status) const {
        std::uint64_t bytes = 0;
        if (handle_bytes == 8) {
            std::memcpy(&bytes, status + 16, sizeof bytes);
            return bytes;
        }
        // MPICH: the low word, and above the bit "cancelled" the high one.
        std::memcpy(&bytes, status, sizeof bytes);
        return (bytes & 0xffffffff) | bytes >> 33 << 32;
    }

private:
    static std::int32_t field(const std::byte* status, std::uint32_t at) {
        std::int32_t value = 0;
        std::memcpy(&value, status + at, sizeof value);
        return value;
    }
};

inline constexpr Abi kOpenMpi = {8, -1, -2, -1, 0, 24, 0, 4, 12, ~0u, 0, 0, 0, 0};
inline constexpr Abi kMpich = {4,  -2, -1, -1,         1,          20,         8,
                               12, 4,  1,  0x44000000, 0x44000001, 0x04000000, 0x2c000000};

}  // namespace ringside::inject::mpi
