// Which programs a preloaded library reaches.
#include "tools/ringside/traceable.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <string>

#include "tests/unit/tools/temporary_directory.hpp"

namespace {

using ringside::tools::check_elf;
using ringside::tools::check_traceable;
using ringside::tools::find_program;
using ringside::tools::TemporaryDirectory;
using ringside::tools::Traceability;

/// An ELF file of one program header: PT_INTERP naming `loader`, or PT_LOAD where it is empty.
std::string elf(const std::string& loader, unsigned char elf_class = ELFCLASS64) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = loader.empty() ? PT_LOAD : PT_INTERP;
    segment.p_offset = sizeof(header) + sizeof(segment);
    segment.p_filesz = loader.size() + 1;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
    return bytes + loader + '\0';
}

TEST_CASE("elf: a program of glibc's loader is reached") {
    CHECK(check_elf("p", elf("/lib64/ld-linux-x86-64.so.2")).answer == Traceability::kYes);
}

TEST_CASE("elf: a static program is not reached") {
    const auto check = check_elf("p", elf(""));
    CHECK(check.answer == Traceability::kUnreached);
    CHECK(check.why == "static");
    CHECK(check.reason.find("static") != std::string::npos);
}

TEST_CASE("elf: a musl program is not reached, and may hand the preload on") {
    const auto check = check_elf("p", elf("/lib/ld-musl-x86_64.so.1"));
    CHECK(check.answer == Traceability::kUnreached);
    CHECK(check.why == "musl");
    CHECK(check.reason.find("musl") != std::string::npos);
}

TEST_CASE("elf: a 32-bit program is not reached") {
    CHECK(check_elf("p", elf("/lib/ld-linux.so.2", ELFCLASS32)).answer == Traceability::kUnreached);
}

TEST_CASE("elf: bytes that are no ELF, or cut short, get no verdict") {
    CHECK(check_elf("p", "").answer == Traceability::kYes);
    CHECK(check_elf("p", "hello").answer == Traceability::kYes);
    const std::string whole = elf("/lib/ld-musl-x86_64.so.1");
    for (std::size_t length = 0; length <= sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); ++length) {
        CHECK(check_elf("p", whole.substr(0, length)).answer == Traceability::kYes);
    }
}

TEST_CASE("script: its interpreter decides, to the last of a chain") {
    const TemporaryDirectory folder;
    const std::string musl = folder.write("musl", elf("/lib/ld-musl-x86_64.so.1"), true);
    const std::string script = folder.write("script", "#! " + musl + " -x\nbody\n", true);
    const std::string second = folder.write("second", "#!" + script + "\n", true);
    CHECK(check_traceable(script).answer == Traceability::kUnreached);
    CHECK(check_traceable(second).answer == Traceability::kUnreached);
}

TEST_CASE("script: one that names itself ends") {
    const TemporaryDirectory folder;
    const std::string path = (folder.path() / "loop").string();
    folder.write("loop", "#!" + path + "\n", true);
    CHECK(check_traceable(path).answer == Traceability::kYes);
}

TEST_CASE("program: found, missing and not executable, as a shell says it") {
    const TemporaryDirectory folder;
    folder.write("tool", "#!/bin/sh\n", true);
    folder.write("text", "no program", false);
    const std::string path = "/nonexistent:" + folder.path().string();
    CHECK(find_program("tool", path).path == (folder.path() / "tool").string());
    CHECK(find_program("none", path).exit_code == 127);
    CHECK(find_program("", path).exit_code == 127);
    CHECK(find_program("text", path).exit_code == 126);
    CHECK(find_program((folder.path() / "tool").string(), "").exit_code == 0);
    CHECK(find_program((folder.path() / "none").string(), "").exit_code == 127);
    CHECK(find_program(folder.path().string(), "").exit_code == 126);
}

}  // namespace
