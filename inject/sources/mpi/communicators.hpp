// The communicators that this process is in: ids that all members derive alike without a message, labels, who their members are. Kept from MPI_Init on,
// captured or not, so that ids are right in a capture that begins late.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/core/fixed_text.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/sources/mpi/abi.hpp"
#include "inject/sources/mpi/labels.hpp"
#include "inject/sources/mpi/receives.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject::mpi {

struct Communicator {
    std::uint64_t id = 0;
    std::uint64_t group =
        0;  ///< id of its GroupState: the launcher's name of this world is in it, too
    Label label;
    FixedText<64> name;              ///< the program's own
    std::uint32_t size = 0;          ///< members; of both groups
    std::int32_t rank = 0;           ///< this process's in it
    std::int32_t lowest = 0;         ///< rank of the world, of both groups
    std::uint64_t members_hash = 0;  ///< of the own group
    /// Ranks of the world of those that calls name: the other group's in an intercommunicator.
    std::uint32_t peers = 0;
    std::int32_t* peer_ranks = nullptr;  ///< null: as in the world
    std::uint32_t peer_room = 0;         ///< what peer_ranks has place for

    bool forever = false;  ///< the world's and this process's own: nobody counts holds
    std::atomic<std::uint32_t> holds{0};  ///< its handle, and requests on it
    std::atomic<std::uint64_t> made{0}, collectives{0};
    std::atomic<schema::GroupState*> state{nullptr};
    ReceiveOrder receives;
    // Ids of names, as find_kept_name() takes them: of the label, and of the collectives that were used last.
    std::atomic<std::uint64_t> label_name{0};
    static constexpr std::uint32_t kKeptNames = 8;
    std::atomic<std::uint64_t> names[kKeptNames]{};

    /// @return a rank of the world, or -1
    std::int32_t world_rank(std::int32_t rank) const {
        if (rank < 0 || static_cast<std::uint32_t>(rank) >= peers) return -1;
        return peer_ranks == nullptr ? rank : peer_ranks[rank];
    }
};

/// The communicator of a handle.
/// @return null: not known (made before us, with members outside of this world, beyond the table)
/// @thread thread-safe
Communicator* find_communicator(Word handle);

/// This process in its world. Set by learn_world().
struct World {
    std::int32_t rank = -1;
    std::uint64_t seed = 0;  ///< of the launcher's own name of it; 0: it has none
};
extern World g_world;

/// MPI has been initialised: its world is learned, once.
/// @return false: not yet, or ended
/// @thread any thread that may call MPI
bool learn_world();
inline bool world_known() {
    return g_world.rank >= 0;
}

/// A communicator was made on `parent`, as its n-th.
/// @param parent  null: not known, nor is its child
/// @param duplicate  it has its parent's members: the library need not be asked, which takes Open MPI the square of their number
void learn_child(Word handle, const Communicator* parent, std::uint64_t nth, bool duplicate);
/// By MPI_Comm_create_group: only its members know of it.
void learn_group_child(Word handle, const Communicator* parent, std::int32_t tag);
/// By MPI_Intercomm_create, out of two groups.
void learn_intercommunicator(Word handle, std::int32_t tag);
/// Its handle is no more.
void forget_communicator(Word handle);

/// Its GroupState, claimed.
/// @return null: none to be had
schema::GroupState* claim_state(Communicator& comm);

void hold(Communicator* comm);
void let_go(Communicator* comm);

}  // namespace ringside::inject::mpi
