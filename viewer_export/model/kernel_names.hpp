// What a kernel's name says: how its programmer wrote it, and whether it is communication's. Pure. Asked by work_name alone, which remembers.
#pragma once

#include <string>
#include <string_view>

namespace ringside::viewer_export::model {

/// What no compiler has mangled stays as it is; so does what would be very long, or take very long: a few bytes can be short for any length.
/// @return the name as it was written, 64 KiB or less
std::string demangled(const std::string& name);

/// HolisticTraceAnalysis' rule, `^nccl.*Kernel`: ncclDevKernel_AllReduce_..., ncclKernel_..., and RCCL's, which bear NCCL's names.
/// @param name  as it was written
bool is_communication(std::string_view name);

}  // namespace ringside::viewer_export::model
