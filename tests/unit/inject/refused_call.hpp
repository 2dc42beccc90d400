// Older kernels, and containers whose filter refuses what it does not know: a call that is answered by an error from here on, in this process and what
// it starts. Used inside children (sandbox.hpp).
#pragma once

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>

namespace ringside::test {

struct RefusedCall {
    long number;
    int error;
    int argument = -1;        ///< -1: refused always; else only where this argument
    std::uint32_t value = 0;  ///< has this value, in its low half
};

/// @return false: there are no filters here
inline bool refuse_call(const RefusedCall& call) {
    const bool any = call.argument < 0;
    const auto argument = offsetof(seccomp_data, args) + 8 * (any ? 0u : call.argument);
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call.number), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(argument)),
        BPF_JUMP(BPF_JMP | (any ? BPF_JGE : BPF_JEQ) | BPF_K, call.value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(call.error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof *program, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace ringside::test
