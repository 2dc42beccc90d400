// Reads an ELF file's program headers and dynamic section by the offsets that they give; each is checked before it is followed.
#include "tools/ringside/needed_libraries.hpp"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace ringside::tools {

namespace {

constexpr unsigned kMostHeaders = 128;
constexpr std::uint64_t kMostEntries = 4096;
constexpr std::size_t kMostNameBytes = 256;

class ElfFile {
public:
    explicit ElfFile(const std::string& path) : file_(path, std::ios::binary) {}

    template <class T>
    bool read(std::uint64_t offset, T& out) {
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(offset));
        file_.read(reinterpret_cast<char*>(&out), sizeof out);
        return file_.gcount() == static_cast<std::streamsize>(sizeof out);
    }

    std::string text(std::uint64_t offset) {
        std::array<char, kMostNameBytes> bytes{};
        read(
            offset,
            bytes);  // a name at the file's end comes in part, and is ended by what was there before
        bytes.back() = 0;
        return bytes.data();
    }

private:
    std::ifstream file_;
};

struct Layout {
    std::vector<Elf64_Phdr> loads;
    Elf64_Phdr dynamic{};

    /// @return the file's offset of an address; 0: it is not in the file
    std::uint64_t offset_of(std::uint64_t address) const {
        for (const Elf64_Phdr& load : loads) {
            if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz)
                return load.p_offset + (address - load.p_vaddr);
        }
        return 0;
    }
};

bool read_layout(ElfFile& file, Layout& layout) {
    Elf64_Ehdr header{};
    if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMostHeaders) {
        return false;
    }
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        if (!file.read(header.e_phoff + std::uint64_t{i} * sizeof segment, segment)) return false;
        if (segment.p_type == PT_LOAD) layout.loads.push_back(segment);
        if (segment.p_type == PT_DYNAMIC) layout.dynamic = segment;
    }
    return layout.dynamic.p_type == PT_DYNAMIC;
}

}  // namespace

std::vector<std::string> needed_libraries(const std::string& path) {
    ElfFile file(path);
    Layout layout;
    if (!read_layout(file, layout)) return {};
    std::vector<std::uint64_t> names;
    std::uint64_t strings = 0;
    for (std::uint64_t i = 0;
         i < kMostEntries && (i + 1) * sizeof(Elf64_Dyn) <= layout.dynamic.p_filesz; ++i) {
        Elf64_Dyn entry{};
        if (!file.read(layout.dynamic.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_STRTAB) strings = layout.offset_of(entry.d_un.d_ptr);
    }
    std::vector<std::string> libraries;
    for (const std::uint64_t name : names) {
        if (strings != 0) libraries.push_back(file.text(strings + name));
    }
    return libraries;
}

}  // namespace ringside::tools
