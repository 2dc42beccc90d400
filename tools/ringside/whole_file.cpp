#include "tools/ringside/whole_file.hpp"

#include <cstdint>
#include <filesystem>

#include "schema/frame.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/load/job_reader.hpp"

namespace ringside::tools {

Result<void> check_whole(const std::string& path) {
    namespace load = viewer_export::load;
    if (std::filesystem::path(path).extension() == schema::kJobExtension) {
        const auto index = load::JobIndexFile::open(path);
        return index ? Result<void>() : Result<void>(index.error());
    }
    auto dump = load::DumpReader::open(path);
    if (!dump) {
        return dump.error();
    }
    constexpr std::uint64_t kStays = std::uint64_t{8} << 20;
    for (std::uint64_t next = kStays; dump->next() != nullptr;) {
        // A dump may be larger than the memory.
        if (dump->offset() >= next) {
            dump->release_before(dump->offset());
            next = dump->offset() + kStays;
        }
    }
    if (const auto damage = dump->damage()) {
        return schema::Error{schema::ErrorCode::kInput, damage->text};
    }
    return {};
}

}  // namespace ringside::tools
