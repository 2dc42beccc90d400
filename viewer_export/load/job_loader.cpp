#include "viewer_export/load/job_loader.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "schema/frame.hpp"
#include "viewer_export/load/builder.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/load/job_reader.hpp"

namespace ringside::viewer_export {

namespace fs = std::filesystem;
using schema::Error;
using schema::ErrorCode;
using schema::Result;

namespace {

struct Inputs {
    std::vector<fs::path> dumps;
    std::vector<fs::path> indices;
};

Result<void> add_directory(const fs::path& directory, Inputs& inputs) {
    std::error_code code;
    std::vector<fs::path> dumps;
    std::size_t partial = 0;
    for (fs::directory_iterator entry(directory, code), end; !code && entry != end;
         entry.increment(code)) {
        const fs::path& path = entry->path();
        if (path.extension() == schema::kDumpExtension) dumps.push_back(path);
        if (path.extension() == schema::kJobExtension) inputs.indices.push_back(path);
        if (path.extension() == ".partial") ++partial;
    }
    if (code) {
        return Error{ErrorCode::kInput,
                     "read directory " + directory.string() + ": " + code.message() +
                         "; name a directory with dumps (*.rsd) that you may read"};
    }
    if (dumps.empty()) {
        std::string text = "load " + directory.string() + ": no dump (*.rsd) in it";
        text +=
            partial == 0
                ? "; name the directory that `ringside trace -o` or `ringside run -o` wrote"
                : ", only " + std::to_string(partial) +
                      " that an agent was still writing (*.partial); wait for it, or name such a "
                      "file to read what it holds";
        return Error{ErrorCode::kInput, std::move(text)};
    }
    std::sort(dumps.begin(), dumps.end());
    inputs.dumps.insert(inputs.dumps.end(), dumps.begin(), dumps.end());
    return {};
}

Result<Inputs> collect(const std::vector<fs::path>& paths) {
    Inputs inputs;
    for (const fs::path& path : paths) {
        std::error_code code;
        const fs::file_status status = fs::status(path, code);
        if (!fs::exists(status)) {
            return Error{ErrorCode::kInput,
                         "load " + path.string() +
                             ": no such file or directory; name a dump (.rsd) or a directory of "
                             "dumps"};
        }
        if (fs::is_directory(status)) {
            if (auto added = add_directory(path, inputs); !added) return added.error();
        } else if (path.extension() == schema::kJobExtension) {
            inputs.indices.push_back(path);
        } else {
            inputs.dumps.push_back(path);
        }
    }
    if (inputs.dumps.empty()) {
        return Error{ErrorCode::kInput,
                     "load: no dump (.rsd) is named, an index alone holds no events; name the "
                     "dumps beside it"};
    }
    return inputs;
}

std::uint64_t bytes_of(const std::vector<fs::path>& dumps) {
    std::uint64_t bytes = 0;
    for (const fs::path& path : dumps) {
        std::error_code code;
        const std::uintmax_t size = fs::file_size(path, code);
        bytes += code ? 0 : size;
    }
    return bytes;
}

/// Reads the index, if there is one. A damaged one is noted and left out: the dumps are worth showing without.
Result<std::optional<load::JobIndexFile>> read_index(const LoadRequest& request,
                                                     const Inputs& inputs,
                                                     std::vector<model::Damage>& damage) {
    std::optional<load::JobIndexFile> none;
    if (!request.index.empty()) {
        auto index = load::JobIndexFile::from_memory(request.index);
        if (!index) return index.error();
        return std::optional(std::move(*index));
    }
    if (inputs.indices.empty()) return none;
    if (inputs.indices.size() > 1) {
        return Error{ErrorCode::kInput,
                     "load " + inputs.indices[0].string() + " beside " +
                         inputs.indices[1].string() +
                         ": two job indices, but a job has one; load one job at a time"};
    }
    auto index = load::JobIndexFile::open(inputs.indices[0]);
    if (index) return std::optional(std::move(*index));
    // From a newer version: nothing is wrong with the file, so nothing is shown without it.
    if (index.error().code == ErrorCode::kRefused)
        return Error{ErrorCode::kInput, index.error().message};
    damage.push_back({inputs.indices[0].string(), 0, index.error().message});
    return none;
}

}  // namespace

Result<std::vector<fs::path>> dumps_among(const std::vector<fs::path>& inputs) {
    auto found = collect(inputs);
    if (!found) return found.error();
    return std::move(found->dumps);
}

Result<model::Job> load_processes(const std::vector<fs::path>& paths) {
    auto inputs = collect(paths);
    if (!inputs) return inputs.error();
    const model::Tell nobody;
    load::JobBuilder builder(nobody, 0, load::Depth::kProcesses);
    for (const fs::path& path : inputs->dumps) {
        auto reader = load::DumpReader::open(path);
        if (!reader) return reader.error();
        if (auto added = builder.add_dump(*reader); !added) return added.error();
    }
    return builder.finish(nullptr, false);
}

Result<model::Job> load_job(const LoadRequest& request) {
    auto inputs = collect(request.inputs);
    if (!inputs) return inputs.error();
    std::vector<model::Damage> damage;
    auto index = read_index(request, *inputs, damage);
    if (!index) return index.error();
    load::JobBuilder builder(request.tell, bytes_of(inputs->dumps));
    for (const fs::path& path : inputs->dumps) {
        auto reader = load::DumpReader::open(path);
        if (!reader) return reader.error();
        if (auto added = builder.add_dump(*reader); !added) return added.error();
    }
    model::Job job = builder.finish(*index ? &**index : nullptr, request.corrected);
    job.damage.insert(job.damage.begin(), std::make_move_iterator(damage.begin()),
                      std::make_move_iterator(damage.end()));
    return job;
}

}  // namespace ringside::viewer_export
