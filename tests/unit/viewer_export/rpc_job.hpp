// A job of calls from worker0 on alpha to worker1 on beta, whose times are given in us.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sample_job.hpp"

namespace ringside::tests {

/// When a call was where, in us: called, arrived, taken by thread `lane`, answered, returned.
struct Times {
    std::uint64_t called, arrived, taken, answered, returned;
    std::uint32_t lane = 0;
};

inline constexpr std::uint64_t kUs = 1000;

/// worker0 on alpha calls worker1 on beta.
class TwoNodes {
public:
    TwoNodes() {
        alpha_.process(0, 4000, 0, "worker0", 0);
        beta_.process(0, 4001, 1, "worker1", 1);
        caller_ = &alpha_.lane(0, 0, 100);
    }
    LaneMaker& served(std::uint32_t lane) {
        if (!lanes_.contains(lane))
            lanes_[lane] = &beta_.lane(0, lane, 200 + static_cast<int>(lane));
        return *lanes_[lane];
    }
    HalfSpec client(const std::string& function, std::uint64_t key) const {
        return {
            false, key, 0x100 + key, 0, function, "m", "worker0", "worker1", schema::RpcMode::kSync,
            key,   0};
    }
    HalfSpec server(const std::string& function, std::uint64_t key) const {
        return {true,      key,       0x100 + key,
                0,         function,  "m",
                "worker1", "worker0", schema::RpcMode::kUnknown,
                key,       1};
    }
    int call(const Times& at, const std::string& function = "f",
             schema::RpcStatus status = schema::RpcStatus::kOk) {
        const std::uint64_t key = ++calls_;
        const auto begin = caller_->rpc_begin(at.called * kUs, client(function, key));
        caller_->rpc_end(at.returned * kUs, key, status);
        LaneMaker& lane = served(at.lane);
        const auto arrived = lane.rpc_begin(at.arrived * kUs, server(function, key));
        lane.serve(at.taken * kUs, key);
        lane.stop_serving(at.answered * kUs);
        lane.rpc_end(at.answered * kUs, key);
        const int index = index_.joined({0, 0, 0, 0, begin}, {1, 0, at.lane, 0, arrived});
        index_.index.rpcs.back()->span = 0x100 + key;
        return index;
    }
    /// A client half alone.
    void single(fbs::RpcState state, std::uint64_t at, bool ended, bool unfinished = false) {
        const std::uint64_t key = ++calls_;
        const auto begin = caller_->rpc_begin(at * kUs, client("f", key));
        if (ended) caller_->rpc_end((at + 7) * kUs, key, schema::RpcStatus::kPeerGone);
        index_.single({0, 0, 0, 0, begin}, false, state, unfinished);
    }
    viewer_export::model::Job load() {
        const std::uint64_t stop = 1'000'000 * kUs;
        alpha_.footer(stop);
        beta_.footer(stop);
        alpha_.write(directory_ / "alpha.rsd");
        beta_.write(directory_ / "beta.rsd");
        index_.write(directory_ / "job.rsj");
        return loaded(directory_.path());
    }
    DumpMaker alpha_{"alpha"};
    DumpMaker beta_{"beta"};
    LaneMaker* caller_;
    IndexMaker index_{{"alpha", "beta"}};

private:
    TemporaryDirectory directory_;
    std::map<std::uint32_t, LaneMaker*> lanes_;
    std::uint64_t calls_ = 0;
};

/// The sample job with span ids: 77 the outer call's, 78 the nested one's.
inline viewer_export::model::Job sample(TemporaryDirectory& directory) {
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    maker.joined({1, 0, 0, 0, 6}, {2, 0, 0, 0, 0}, 1);
    maker.joined({0, 0, 0, 0, 3}, {1, 0, 0, 0, 0});
    maker.index.rpcs[0]->span = 78;
    maker.index.rpcs[1]->span = 77;
    maker.write(directory / "job.rsj");
    return loaded(directory.path());
}

}  // namespace ringside::tests
