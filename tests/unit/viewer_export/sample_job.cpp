#include "sample_job.hpp"

#include <doctest/doctest.h>

namespace ringside::tests {

using schema::RpcMode;

namespace {

void write_alpha(const std::filesystem::path& path, std::uint64_t& client) {
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.range("aten::empty", 2'000, 12'000);
    lane.range("aten::uniform_", 20'000, 80'000);
    lane.range("aten::rand", 1'000, 101'000);
    client = lane.rpc_begin(200'000, {false, 1, 77, 0, "nested", "__mp_main__", "worker0",
                                      "worker1", RpcMode::kSync, 5, 0});
    lane.rpc_end(2'200'000, 1);
    dump.footer(3'000'000);
    dump.write(path);
}

void write_beta(const std::filesystem::path& path, std::uint64_t& server, std::uint64_t& client) {
    DumpMaker dump("beta");
    dump.process(0, 4000, 1, "worker1", 1);
    LaneMaker& lane = dump.lane(0, 0, 100);
    server = lane.rpc_begin(300'000, {true, 1, 77, 0, "nested", "__mp_main__", "worker1", "worker0",
                                      RpcMode::kUnknown, 5, 1});
    lane.serve(310'000, 1);
    lane.range("aten::add", 400'000, 443'325);
    client = lane.rpc_begin(500'000, {false, 2, 78, 1, "udf", "__mp_main__", "worker1", "worker2",
                                      RpcMode::kSync, 6, 1});
    lane.rpc_end(1'500'000, 2);
    lane.stop_serving(2'000'000);
    lane.rpc_end(2'050'000, 1);
    lane.range("aten::mul", 2'100'000, 2'101'000);
    dump.footer(3'000'000);
    dump.write(path);
}

void write_gamma(const std::filesystem::path& path, std::uint64_t& server) {
    DumpMaker dump("gamma");
    dump.process(0, 4001, 2, "worker2", 2);
    LaneMaker& lane = dump.lane(0, 0, 101);
    server = lane.rpc_begin(600'000, {true, 1, 78, 0, "udf", "__mp_main__", "worker2", "worker1",
                                      RpcMode::kUnknown, 6, 2});
    lane.serve(610'000, 1);
    lane.range("aten::empty", 710'000, 720'000);
    lane.range("aten::rand", 700'000, 750'000);
    lane.stop_serving(1'300'000);
    lane.rpc_end(1'400'000, 1);
    dump.footer(3'000'000);
    dump.write(path);
}

}  // namespace

void write_sample(const std::filesystem::path& directory, bool index) {
    std::uint64_t alpha_client = 0;
    std::uint64_t beta_server = 0;
    std::uint64_t beta_client = 0;
    std::uint64_t gamma_server = 0;
    write_alpha(directory / "alpha.rsd", alpha_client);
    write_beta(directory / "beta.rsd", beta_server, beta_client);
    write_gamma(directory / "gamma.rsd", gamma_server);
    if (!index) return;
    IndexMaker maker({"alpha", "beta", "gamma"});
    // The child first: an index may tell calls in any order.
    maker.joined({1, 0, 0, 0, beta_client}, {2, 0, 0, 0, gamma_server}, 1);
    maker.joined({0, 0, 0, 0, alpha_client}, {1, 0, 0, 0, beta_server});
    maker.write(directory / "job.rsj");
}

viewer_export::model::Job loaded(const std::filesystem::path& directory, bool corrected) {
    auto job = viewer_export::load_job({{directory}, corrected, {}});
    if (!job) FAIL(job.error().message);
    return std::move(*job);
}

}  // namespace ringside::tests
