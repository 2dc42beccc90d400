// Takes a message from its standard input as an agent of the version before would: exit status 0, or 1 and why not. Built from the schemas in golden/.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <vector>

#include "control_generated.h"

namespace {

constexpr flatbuffers::uoffset_t kMostDepth = 16, kMostTables = 1'000'000;  // as there

int refuse(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    return 1;
}

}  // namespace

int main() {
    using namespace ringside;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(std::cin), {}};
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    flatbuffers::Verifier verifier(data, bytes.size(), kMostDepth, kMostTables);
    if (!fbs::VerifyMessageBuffer(verifier)) return refuse("its bytes fail the verifier");
    const fbs::Message* const message = fbs::GetMessage(data);
    if (message->version() == 0) return refuse("it bears no version");
    if (message->content_type() == fbs::Content::NONE ||
        message->content_type() > fbs::Content::MAX || message->content() == nullptr)
        return refuse("its kind is none that is known");
    return 0;
}
