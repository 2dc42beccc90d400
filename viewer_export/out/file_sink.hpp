// A file that appears under its name when it is whole: written to a temporary name beside it, renamed by commit(), removed otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "schema/result.hpp"
#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export {

class FileSink final : public ByteSink {
public:
    explicit FileSink(std::filesystem::path target);
    ~FileSink() override;
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;

    /// @errors Input: the temporary file can't be made
    schema::Result<void> open();
    void write(const char* data, std::size_t size) override;
    /// @errors Input: a write had failed, or the file can't be renamed; the temporary file is gone then
    schema::Result<void> commit();

private:
    schema::Error failure(int cause) const;
    void make_room();

    std::filesystem::path target_;
    std::string temporary_;
    int descriptor_ = -1;
    std::uint64_t written_ = 0;
    std::uint64_t room_ = 0;  ///< blocks that the file has, so far
    int write_error_ = 0;
};

}  // namespace ringside::viewer_export
