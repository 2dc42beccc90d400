// A dump of one process that uses GPUs: its thread, and the lane of the one that heard of what they did.
#pragma once

#include <initializer_list>
#include <string>

#include "dump_maker.hpp"
#include "sample_job.hpp"
#include "schema/gpu_record.hpp"

namespace ringside::tests {

inline constexpr std::uint32_t kThread = 100;

inline void call(LaneMaker& told, const std::string& name, std::uint64_t begin, std::uint64_t end,
                 std::uint32_t correlation, std::uint32_t thread = kThread) {
    told.gpu(schema::RecordKind::kGpuApi, name, {begin, end, correlation, pair(thread, 211)});
}

inline void kernel(LaneMaker& told, const std::string& name, std::uint64_t begin, std::uint64_t end,
                   std::uint32_t correlation, std::uint32_t stream = 7, std::uint32_t device = 0) {
    told.gpu(schema::RecordKind::kGpuKernel, name,
             {begin, end, pair(correlation, device), pair(1, stream)});
}

struct GpuDump {
    explicit GpuDump(std::uint32_t options = 0) : dump("alpha", 1, options) {
        dump.process(0, 4000, 0);
        thread = &dump.lane(0, 0, kThread);
        told = &dump.lane(0, 1, 999);
    }
    void call(const std::string& name, std::uint64_t begin, std::uint64_t end,
              std::uint32_t correlation, std::uint32_t tid = kThread) const {
        tests::call(*told, name, begin, end, correlation, tid);
    }
    void kernel(const std::string& name, std::uint64_t begin, std::uint64_t end,
                std::uint32_t correlation = 0, std::uint32_t stream = 7,
                std::uint32_t device = 0) const {
        tests::kernel(*told, name, begin, end, correlation, stream, device);
    }
    /// A call at `at` and its kernel.
    void launch(std::uint64_t at, std::uint64_t begin, std::uint64_t end, std::uint32_t stream = 7,
                std::uint32_t device = 0, std::uint32_t tid = kThread) {
        call("cudaLaunchKernel", at, at + 1, ++correlation, tid);
        kernel("k", begin, end, correlation, stream, device);
    }
    void boundaries(std::initializer_list<std::uint64_t> times, const char* name = "step") const {
        std::uint64_t number = 0;
        for (const std::uint64_t ticks : times)
            thread->value(schema::RecordKind::kIteration, name, ticks, number++);
    }
    viewer_export::model::Job load(std::uint64_t end = 100'000) {
        dump.footer(end);
        dump.write(directory / "alpha.rsd");
        return loaded(directory.path());
    }
    TemporaryDirectory directory;
    DumpMaker dump;
    LaneMaker* thread;
    LaneMaker* told;
    std::uint32_t correlation = 0;
};

}  // namespace ringside::tests
