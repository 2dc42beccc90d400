// What pieces of a GPU's work are called, in every view.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// The names of a job's work. Each kernel's is found out once.
class WorkNames {
public:
    /// @param names  Job::names; borrowed
    explicit WorkNames(const Names& names) : names_(names) {}

    /// As Kineto names it: a kernel's name as its programmer wrote it, `Memcpy HtoD (Pageable -> Device)`, `Stream Sync`.
    /// @return valid until the next call
    std::string_view of(const GpuWork& work);
    /// It is a kernel, and communication's.
    bool communicates(const GpuWork& work) {
        return work.kind == schema::RecordKind::kGpuKernel && kernel(work.name).communicates;
    }

private:
    struct Kernel {
        std::string name;
        bool communicates = false;
    };
    const Kernel& kernel(Index name);

    const Names& names_;
    std::unordered_map<Index, Kernel> kernels_;
    std::string other_;  ///< the last name that is no kernel's
};

}  // namespace ringside::viewer_export::model
