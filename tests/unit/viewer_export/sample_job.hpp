// A small job whose numbers are easy to add up: worker0 on alpha calls worker1 on beta, which calls worker2 on gamma.
//
//   alpha  aten::rand 100us [ empty 10us, uniform_ 60us ]   rpc_sync#nested 2ms -------------------+
//   beta                                 serves it: aten::add 43.325us   rpc_sync#udf 1ms ---+      then aten::mul 1us, its own
//   gamma                                                 serves that: aten::rand 50us [ empty 10us ]
#pragma once

#include <filesystem>

#include "dump_maker.hpp"
#include "viewer_export/load/job_loader.hpp"

namespace ringside::tests {

/// Writes alpha.rsd, beta.rsd, gamma.rsd and, if asked, job.rsj.
void write_sample(const std::filesystem::path& directory, bool index = true);

/// Loads a directory; fails the test where that fails.
viewer_export::model::Job loaded(const std::filesystem::path& directory, bool corrected = true);

}  // namespace ringside::tests
