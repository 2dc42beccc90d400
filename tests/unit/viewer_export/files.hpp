// Files that a test makes and reads, and the frames in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ringside::tests {

/// A directory that is gone with the test.
class TemporaryDirectory {
public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }
    std::size_t files() const;

private:
    std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes);
std::string read_text(const std::filesystem::path& path);
/// @return the frame around a FlatBuffer
std::vector<std::uint8_t> frame(std::uint32_t magic, const std::uint8_t* data, std::size_t size);

}  // namespace ringside::tests
