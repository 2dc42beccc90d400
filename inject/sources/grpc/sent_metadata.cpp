#include "inject/sources/grpc/sent_metadata.hpp"

#include <atomic>
#include <cstring>

#include "inject/core/pools.hpp"
#include "inject/sources/grpc/metadata.hpp"

namespace ringside::inject::grpc {
namespace {

constexpr std::size_t kMostMetadata = 15;  // of the program's own
constexpr std::uint32_t kCallsInFlight = 4096;

struct Copy {
    SliceCount count;  // first: gRPC hands us its address back
    char text[schema::kTraceparentBytes + 1];
    Metadata metadata[kMostMetadata + 1];
};

constinit EntryPool<Copy, kCallsInFlight> g_copies;

void give_back(SliceCount* count) {
    g_copies.release(reinterpret_cast<Copy*>(count));
}

}  // namespace

Metadata* add_traceparent(const Metadata* metadata, std::size_t count,
                          const schema::RequestId& id) {
    if (count > kMostMetadata) return nullptr;
    Copy* const copy = g_copies.acquire();
    if (copy == nullptr) return nullptr;
    copy->count = {1, give_back};
    schema::print_traceparent(id, true, copy->text);
    if (count != 0) std::memcpy(copy->metadata, metadata, count * sizeof(Metadata));
    Metadata& added = copy->metadata[count];
    std::memset(&added, 0, sizeof added);
    added.key.inlined.length = kTraceparent.size();
    std::memcpy(added.key.inlined.bytes, kTraceparent.data(), kTraceparent.size());
    added.value.count = &copy->count;
    added.value.counted = {schema::kTraceparentBytes, copy->text};
    return copy->metadata;
}

void let_go(Metadata* copy) {
    auto* const count =
        reinterpret_cast<SliceCount*>(reinterpret_cast<char*>(copy) - offsetof(Copy, metadata));
    // SYNC(slice): as gRPC's own unref: whoever is last sees what the others did.
    if (std::atomic_ref(count->references).fetch_sub(1, std::memory_order_acq_rel) == 1)
        give_back(count);
}

}  // namespace ringside::inject::grpc
