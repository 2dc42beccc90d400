#include "tests/fuzz/segment_target.hpp"

#include <memory>
#include <vector>

#include "agent/drain/process_drainer.hpp"
#include "tests/fuzz/checking_sink.hpp"
#include "tests/fuzz/forged_segment.hpp"

namespace ringside::tests::fuzz {
namespace {

using agent::TickRange;

constexpr TickRange kAlways{0, ~0ull};
/// Far more guarded accesses than one order of the agent needs at worst: each name and attribute set fetched once.
constexpr std::uint64_t kMostLooks = 4 * (schema::kNameEntries + schema::kAttributeEntries);
constexpr std::size_t kMostPending = 16;

class Run {
public:
    Run(ForgedSegment& process, const Script& script) : process_(process), script_(script) {
        process_.reset(script);
        fresh_ = (script.head(2) & kFresh) != 0;
        if (script.head(3) != 0) range_ = {100u + script.head(3) % 16, 120u + script.head(3) / 4};
    }

    void all();
    /// The agent is about to look at the segment.
    void look();

private:
    struct Pending {
        std::uint64_t at = 0;
        Step step;
    };

    void order(const Step& step);
    void attach();
    void drain(const Step& step);
    void write(bool last, bool keeps);
    void capture(bool begins);
    void look_at_all();
    void finish();

    ForgedSegment& process_;
    const Script& script_;
    std::unique_ptr<agent::MappedSegment> segment_;
    std::unique_ptr<agent::ProcessDrainer> drainer_;
    CheckingSink sink_;
    TickRange range_ = kAlways;
    bool fresh_ = false;
    bool one_capture_ = false;  ///< from before the first record, by one agent, still on
    bool always_ = true;        ///< its instants have never been others
    std::uint64_t looks_ = 0;
    std::uint64_t order_began_ = 0;
    std::vector<Pending> pending_;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the wrapped function has no other way to the run
Run* current_run = nullptr;

agent::DrainBuffers& buffers() {
    static const auto kBuffers = std::make_unique<agent::DrainBuffers>();
    return *kBuffers;
}

void Run::look() {
    ++looks_;
    check(looks_ - order_began_ < kMostLooks, "the agent ends");
    for (std::size_t i = 0; i < pending_.size();) {
        if (pending_[i].at > looks_) {
            ++i;
            continue;
        }
        const Step step = pending_[i].step;
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        process_.act(step);
    }
}

void Run::attach() {
    sink_.restart();
    if (drainer_) drainer_->release_segment();
    drainer_.reset();
    segment_.reset();
    auto opened =
        agent::MappedSegment::open(process_.directory(), process_.directory_path(), kForgedId);
    if (!opened) {
        check(!opened.error().message.empty(), "a refusal says why");
        return;
    }
    segment_ = std::move(*opened);
    if (segment_) drainer_ = std::make_unique<agent::ProcessDrainer>(*segment_);
}

void Run::capture(bool begins) {
    if (!begins) return drainer_->stop(buffers());
    sink_.restart();
    drainer_->start(0);
}

void Run::drain(const Step& step) {
    const auto pass = step.where % 4 == 3
                          ? agent::ProcessDrainer::Pass{}
                          : drainer_->drain(buffers(), range_, process_.tick(), fresh_);
    if (step.where % 4 == 3) drainer_->drain_all(buffers(), range_, process_.tick(), fresh_);
    // A ring's worth, and what its last piece is more than that.
    check(pass.cells <= drainer_->lane_count() * 2 * kFileBytes / schema::kCellBytes,
          "a pass takes a ring's worth of each lane");
    check(drainer_->pending_bytes() <= 64u << 20, "what waits is bounded");
}

void Run::write(bool last, bool keeps) {
    drainer_->seal(buffers(), range_, process_.tick(), last);
    agent::NamesBatch batch;
    if (drainer_->names().take(batch)) sink_.names(batch);
    std::vector<const agent::Block*> blocks;
    for (const agent::Block& block : drainer_->sealed()) blocks.push_back(&block);
    sink_.keep(keeps);
    if (!blocks.empty()) drainer_->settle_all(buffers(), sink_.blocks(blocks), process_.tick());
    sink_.check_accounts(drainer_->accounts());
}

void Run::look_at_all() {
    agent::ProcessFacts facts;
    if (auto now = segment_->facts()) facts.segment = std::move(*now);
    drainer_->names().use(*segment_, facts.segment.worker_name.value);
    facts.worker_name = drainer_->names().text(facts.segment.worker_name);
    sink_.process(facts);
    static_cast<void>(segment_->pulse());
    static_cast<void>(segment_->set_selected(true));
    static_cast<void>(drainer_->has_unread(fresh_));
}

void Run::order(const Step& step) {
    order_began_ = looks_;
    if (step.order == Order::kTakeOver) {
        one_capture_ = false;
        return attach();
    }
    if (step.order < Order::kLater) return process_.act(step);
    if (!drainer_) return;
    switch (step.order) {
        case Order::kDrain:
            return drain(step);
        case Order::kSeal:
            return write(step.where % 2 != 0, step.where / 2 % 4 != 3);
        case Order::kCapture:
            one_capture_ = false;
            return capture(step.where % 4 != 0);
        case Order::kLook:
            return look_at_all();
        case Order::kInstants:
            always_ = false;
            range_ = {100 + step.index % 64u, 100 + step.value % 256};
            return;
        default:
            return;
    }
}

void Run::all() {
    attach();
    if (!drainer_) return;
    if ((script_.head(2) & kCapturing) != 0) {
        capture(true);
        one_capture_ = fresh_;
    }
    always_ = range_.start == kAlways.start && range_.stop == kAlways.stop;
    for (std::size_t i = 0; i < script_.orders(); ++i) {
        const Step step = script_.order(i);
        if (step.order != Order::kLater) {
            order(step);
            continue;
        }
        if (++i == script_.orders()) break;
        const Step later = script_.order(i);
        if (later.order < Order::kLater && pending_.size() < kMostPending)
            pending_.push_back({looks_ + 1 + step.index % 64, later});
    }
    pending_.clear();
    if (drainer_) finish();
}

/// The process writes no more: what is left is taken, and every honest lane's account is exact whatever its neighbours did.
void Run::finish() {
    order_began_ = looks_;
    drainer_->drain_all(buffers(), range_, process_.tick(), fresh_);
    write(true, true);
    if (!one_capture_ || !process_.whole()) return;
    for (std::uint32_t lane = 0; lane < process_.lanes(); ++lane) {
        if (!process_.honest(lane)) continue;
        std::uint64_t written = 0, lost = 0;
        for (const agent::LaneAccount& account : drainer_->accounts()) {
            if (account.lane.index != lane) continue;
            written += account.written();
            lost += account.lost;
        }
        check(written == process_.written(lane), "an honest lane's account is exact");
        if (always_ && !sink_.refused_any())
            check(lost == process_.dropped(lane), "an honest lane loses what it dropped");
    }
}

}  // namespace

void run_segment_script(const std::uint8_t* bytes, std::size_t size) {
    static ForgedSegment process;
    const Script script(bytes, size);
    Run run(process, script);
    current_run = &run;
    run.all();
    current_run = nullptr;
}

}  // namespace ringside::tests::fuzz

// The linker's names for run_guarded() (agent/attach/sigbus_guard.hpp) and for what it is replaced with.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" bool __real__ZN8ringside5agent11run_guardedEPKvmPFvPvES3_(const void* base,
                                                                     std::size_t bytes,
                                                                     void (*work)(void*),
                                                                     void* context);
extern "C" bool __wrap__ZN8ringside5agent11run_guardedEPKvmPFvPvES3_(const void* base,
                                                                     std::size_t bytes,
                                                                     void (*work)(void*),
                                                                     void* context) {
    if (ringside::tests::fuzz::current_run != nullptr) ringside::tests::fuzz::current_run->look();
    return __real__ZN8ringside5agent11run_guardedEPKvmPFvPvES3_(base, bytes, work, context);
}
// NOLINTEND(readability-identifier-naming)
