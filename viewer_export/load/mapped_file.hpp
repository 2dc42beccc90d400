// A whole file, mapped for reading. Owns the mapping. Used by the readers of this folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "schema/result.hpp"

namespace ringside::viewer_export::load {

class MappedFile {
public:
    /// @errors Input: it can't be opened or mapped, or is no regular file
    static schema::Result<MappedFile> open(const std::filesystem::path& path);

    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
    /// Gives the pages before `offset` back; whoever looks at them has them read again.
    void release_before(std::uint64_t offset);

private:
    const std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t released_ = 0;
};

}  // namespace ringside::viewer_export::load
