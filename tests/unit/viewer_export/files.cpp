#include "files.hpp"

#include <stdlib.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "schema/frame.hpp"

namespace ringside::tests {

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "ringside-viewer-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
}

std::size_t TemporaryDirectory::files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator()));
}

void write_file(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
}

std::string read_text(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

std::vector<std::uint8_t> frame(std::uint32_t magic, const std::uint8_t* data, std::size_t size) {
    const schema::FrameHeader header{magic, static_cast<std::uint32_t>(size),
                                     XXH3_64bits(data, size)};
    std::vector<std::uint8_t> bytes(sizeof header + size + schema::frame_padding(header.length));
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, data, size);
    return bytes;
}

}  // namespace ringside::tests
