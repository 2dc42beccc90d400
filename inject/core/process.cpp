#include "inject/core/process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "inject/core/emit.hpp"
#include "inject/core/source.hpp"

namespace ringside::inject {

namespace {

// Zero pages, as the spare header: they cost nothing until something is counted in them.
constinit schema::ControlPage spare_control{};

}  // namespace

constinit schema::SegmentHeader g_spare_header{};
constinit ProcessState g_process{&g_spare_header, nullptr, &spare_control,
                                 schema::TicksSource::kTsc};
constinit const std::atomic<std::uint32_t> kOffWord{0};
constinit LivingPage g_living{};

void set_segment(schema::SegmentHeader* header, const schema::ControlPage* control) {
    if (header == nullptr || control == nullptr) {
        // SYNC(mapped): pairs with the acquire in capture_word_address().
        g_living.word_distance.store(0, std::memory_order_release);
        g_living.watched_word.store(0, std::memory_order_relaxed);
        g_living.open_calls.store(nullptr, std::memory_order_relaxed);
        g_process.header = &g_spare_header;
        g_process.control = &spare_control;
        return;
    }
    g_process.header = header;
    g_process.control = control;
    g_process.ticks_source = static_cast<schema::TicksSource>(g_process.header->ticks_source);
    // SYNC(mapped): pairs with the acquire in capture_word_address().
    g_living.word_distance.store(reinterpret_cast<std::intptr_t>(&control->capture_word) -
                                     reinterpret_cast<std::intptr_t>(&kOffWord),
                                 std::memory_order_release);
}

bool is_segments_process() {
    return g_process.header->pid == getpid();
}

void empty_living_page_in_children() {
    madvise(&g_living, sizeof g_living, MADV_WIPEONFORK);
}

std::uint64_t next_key() {
    return g_process.header->next_key.fetch_add(1, std::memory_order_relaxed) + 1;
}

void count_loss(schema::Loss loss, std::uint64_t count) {
    g_process.header->losses[static_cast<std::uint32_t>(loss)].fetch_add(count,
                                                                         std::memory_order_relaxed);
}

void set_level(SourceId source, schema::SourceLevel level, const char* reason) {
    schema::SourceStatus& status = g_process.header->sources[static_cast<std::uint32_t>(source)];
    char text[schema::kReasonBytes] = {};
    for (std::uint32_t i = 0; reason != nullptr && reason[i] != 0 && i + 1 < sizeof text; ++i) {
        text[i] = reason[i];
    }
    for (std::uint32_t i = 0; i < schema::kReasonBytes / 8; ++i) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, text + 8 * i, 8);
        status.reason[i].store(word, std::memory_order_relaxed);
    }
    // SYNC(level): the reason is there; pairs with the agent's acquire.
    status.level.store(static_cast<std::uint32_t>(level), std::memory_order_release);
}

void set_worker(NameId name, std::int32_t id) {
    g_process.header->worker_id.store(id, std::memory_order_relaxed);
    // SYNC(worker): the id stands before the name that makes it count; pairs with the agent's acquire.
    g_process.header->worker_name.store(name.value, std::memory_order_release);
}

}  // namespace ringside::inject
