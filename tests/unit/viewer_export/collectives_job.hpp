// A job of MPI's collectives, made without a dump: ranks, their clocks and arrivals in us.
#pragma once

#include <cstdint>
#include <string>

#include "viewer_export/model/collectives.hpp"

namespace ringside::tests {

struct CollectivesJob {
    viewer_export::model::Job job;
    bool with_groups = true;

    CollectivesJob() { job.corrected = true; }

    std::uint32_t node(std::int64_t bound_us) {
        viewer_export::model::Node node;
        node.name = "node" + std::to_string(job.nodes.size());
        node.has_clock = true;
        node.clock.bound_ns = bound_us * 1000;
        job.nodes.push_back(node);
        return static_cast<std::uint32_t>(job.nodes.size() - 1);
    }
    /// `count` more ranks on a node; `size` in their group.
    void ranks(std::uint32_t node, int count, std::uint32_t size) {
        for (int i = 0; i < count; ++i) {
            viewer_export::model::Process process;
            process.node = node;
            process.rank = static_cast<std::int32_t>(job.processes.size());
            process.pid = 4000 + process.rank;
            process.fate = viewer_export::model::Fate::kRunning;
            if (with_groups)
                process.groups.push_back({77, schema::SourceId::kMpi, "world", size, process.rank});
            viewer_export::model::Lane lane;
            lane.process = static_cast<std::uint32_t>(job.processes.size());
            job.processes.push_back(process);
            job.lanes.push_back(lane);
        }
    }
    viewer_export::model::Range& add(std::uint32_t rank, std::uint64_t sequence,
                                     std::int64_t begin_us, std::int64_t end_us,
                                     const std::string& name = "MPI_Allreduce",
                                     const std::string& label = "world") {
        using viewer_export::model::Range;
        Range range{};
        range.begin_ns = begin_us * 1000;
        range.end_ns = end_us * 1000;
        range.argument = static_cast<std::int64_t>(sequence);
        range.name = job.names.add(name);
        range.request = viewer_export::model::kNone;
        range.source = schema::SourceId::kMpi;
        range.detail = schema::kMpiCollective;
        range.attributes = set(label.empty() ? viewer_export::model::kNone : job.names.add(label));
        auto& ranges = job.lanes[rank].ranges;
        ranges.push_back(range);
        return ranges.back();
    }
    std::uint32_t set(std::uint32_t category) {
        for (std::uint32_t i = 0; i < job.attributes.size(); ++i) {
            if (job.attributes[i].category == category) return i;
        }
        viewer_export::model::Attributes set;
        set.category = category;
        set.payload = schema::PayloadType::kUnsigned;
        job.attributes.push_back(set);
        return static_cast<std::uint32_t>(job.attributes.size() - 1);
    }
    viewer_export::model::Collectives join() const {
        return viewer_export::model::join_collectives(job);
    }
};

}  // namespace ringside::tests
