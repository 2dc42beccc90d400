// The part of MappedSegment that is about the page of open calls.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "agent/attach/mapped_segment.hpp"
#include "schema/sources.hpp"

namespace ringside::agent {
namespace {

using schema::OpenCallsPage;

/// No job has more processes.
constexpr std::uint32_t kMostMembers = 1u << 24;

/// Between two looks at an entry that is being written.
constexpr std::uint32_t kLooks = 5;

struct Text {
    schema::SourceId source;
    std::string text;
};

/// @return nothing where this is no text of a known source's
template <std::uint32_t kWords>
std::optional<Text> text_of(const schema::SourcedText<kWords>& from) {
    char bytes[kWords * 8];
    std::memcpy(bytes, static_cast<const void*>(from.words), sizeof bytes);
    const auto source = static_cast<schema::SourceId>(bytes[from.kMaxBytes]);
    const std::string text(bytes, ::strnlen(bytes, from.kMaxBytes));
    const auto is_text = [](unsigned char byte) { return byte >= 0x20 && byte != 0x7f; };
    const bool padded = std::all_of(bytes + text.size(), bytes + from.kMaxBytes,
                                    [](char byte) { return byte == 0; });
    const bool known = std::find(schema::kSources.begin(), schema::kSources.end(), source) !=
                       schema::kSources.end();
    if (!known || !padded || text.empty() || !std::all_of(text.begin(), text.end(), is_text))
        return std::nullopt;
    return Text{source, text};
}

constexpr auto kRelaxed = std::memory_order_relaxed;

bool in_use(const schema::OpenCall& call) {
    return call.owner.load(kRelaxed) != 0 && call.begin.load(kRelaxed) != 0;
}
bool in_use(const schema::GroupState& state) {
    return state.group.load(kRelaxed) != 0;
}

std::optional<OpenCallFacts> facts_of(const schema::OpenCall& call, std::uint64_t since,
                                      std::uint64_t now) {
    OpenCallFacts facts;
    const auto function = text_of(call.function);
    facts.tid = call.owner.load(kRelaxed);
    facts.begin_ticks = call.begin.load(kRelaxed);
    facts.peer = call.peer.load(kRelaxed);
    if (!function || facts.tid < 0 || facts.begin_ticks < since || facts.begin_ticks > now ||
        facts.peer < schema::kNoPeer)
        return std::nullopt;
    facts.source = function->source;
    facts.function = function->text;
    facts.group = call.group.load(kRelaxed);
    facts.sequence = call.sequence.load(kRelaxed);
    facts.tag = call.tag.load(kRelaxed);
    return facts;
}

std::optional<GroupFacts> facts_of(const schema::GroupState& state) {
    GroupFacts facts;
    const auto label = text_of(state.label);
    facts.size = state.size.load(kRelaxed);
    facts.rank = state.rank.load(kRelaxed);
    facts.job_rank = state.job_rank.load(kRelaxed);
    if (!label || facts.rank < 0 || static_cast<std::uint32_t>(facts.rank) >= facts.size ||
        facts.size > kMostMembers || facts.job_rank < -1)
        return std::nullopt;
    facts.id = state.group.load(kRelaxed);
    facts.source = label->source;
    facts.label = label->text;
    facts.last = state.last.load(kRelaxed);
    return facts;
}

/// Looks at the page until an entry is the same, and whole, in two looks in a row.
/// By reads, not through the mapping: to look at a page that was never made real would make it real, or raise SIGBUS on a full file system.
class PageReader {
public:
    explicit PageReader(int file) : file_(file) {}

    bool look() {
        std::swap(before_, now_);
        return ::pread(file_, now_.bytes, sizeof now_.bytes,
                       static_cast<off_t>(schema::kOpenCallsOffset)) ==
               static_cast<ssize_t>(sizeof now_.bytes);
    }
    const OpenCallsPage& page() const {
        return *reinterpret_cast<const OpenCallsPage*>(now_.bytes);
    }

    template <class Entry>
    bool is_whole(const Entry& entry) const {
        return (entry.version.load(kRelaxed) & 1) == 0 && is_as_before(entry);
    }
    template <class Entry>
    bool is_as_before(const Entry& entry) const {
        const auto* at = reinterpret_cast<const std::byte*>(&entry);
        return std::memcmp(at, before_.bytes + (at - now_.bytes), sizeof entry) == 0;
    }

private:
    struct alignas(OpenCallsPage) Copy {
        std::byte bytes[sizeof(OpenCallsPage)];
    };
    int file_;
    Copy now_, before_;
};

template <class Entry, std::size_t kCount>
bool all_settled(const PageReader& reader, const Entry (&entries)[kCount]) {
    return std::all_of(std::begin(entries), std::end(entries), [&](const Entry& entry) {
        return !in_use(entry) || reader.is_whole(entry);
    });
}

/// @return how many were no sense
template <class Entry, std::size_t kCount, class Facts, class Make>
std::uint64_t take(const PageReader& reader, const Entry (&entries)[kCount],
                   std::vector<Facts>& out, Make&& make) {
    std::uint64_t violations = 0;
    for (const Entry& entry : entries) {
        // One that moves with each look is of a thread that is busy: it waits for nobody.
        if (!in_use(entry) || !reader.is_as_before(entry)) continue;
        std::optional<Facts> facts;
        if (reader.is_whole(entry)) facts = make(entry);
        if (facts) {
            out.push_back(std::move(*facts));
        } else {
            ++violations;
        }
    }
    return violations;
}

}  // namespace

OpenFacts MappedSegment::open_calls(schema::TicksSource clock) {
    OpenFacts facts;
    if (broken_) return facts;
    const auto reader = std::make_unique<PageReader>(lock_descriptor());
    if (!reader->look()) return facts;
    const OpenCallsPage& page = reader->page();
    for (std::uint32_t look = 1; look < kLooks; ++look) {
        if (!reader->look()) return facts;
        if (all_settled(*reader, page.calls) && all_settled(*reader, page.groups)) break;
    }
    const std::uint64_t now = schema::read_ticks(clock).value;
    violations_ += take(*reader, page.calls, facts.calls, [&](const schema::OpenCall& call) {
        return facts_of(call, id_.start_ticks, now);
    });
    violations_ += take(*reader, page.groups, facts.groups,
                        [](const schema::GroupState& state) { return facts_of(state); });
    return facts;
}

}  // namespace ringside::agent
