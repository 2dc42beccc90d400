// Reads a program's header, its interpreter's name, what it is linked to and its permissions.
#include "tools/ringside/traceable.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tools/ringside/command.hpp"
#include "tools/ringside/needed_libraries.hpp"

namespace ringside::tools {

namespace {

constexpr std::size_t kHeadBytes = 64 * 1024;
constexpr int kMostInterpreters = 4;  // the kernel's own limit for scripts of scripts

std::string read_head(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(kHeadBytes, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    return bytes;
}

/// What follows `#!`: the interpreter, or for `/usr/bin/env X` the program that env looks up.
std::string script_interpreter(const std::string& bytes) {
    if (bytes.rfind("#!", 0) != 0) {
        return {};
    }
    std::istringstream words(bytes.substr(2, bytes.find('\n') - 2));
    std::string interpreter;
    std::string argument;
    words >> interpreter >> argument;
    if (argument == "-S") {
        words >> argument;
    }
    const bool is_env =
        interpreter.size() >= 4 && interpreter.substr(interpreter.size() - 4) == "/env";
    if (!is_env || argument.empty() || argument[0] == '-') {
        return interpreter;
    }
    const char* const search_path = ::getenv("PATH");
    return find_program(argument, search_path == nullptr ? "" : search_path).path;
}

/// Setuid, setgid and file capabilities make the loader strip the preload, unless the caller is that user already.
bool gains_privileges(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        return false;
    }
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) {
        return true;
    }
    if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
        status.st_gid != ::getegid()) {
        return true;
    }
    return ::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// @return the header's `index`th entry, if it lies within the bytes
bool program_header(const std::string& bytes, const Elf64_Ehdr& header, unsigned index,
                    Elf64_Phdr& out) {
    const std::uint64_t at = header.e_phoff + std::uint64_t{index} * header.e_phentsize;
    if (header.e_phentsize < sizeof(out) || at > bytes.size() || bytes.size() - at < sizeof(out)) {
        return false;
    }
    std::memcpy(&out, bytes.data() + at, sizeof(out));
    return true;
}

/// As a shared library AddressSanitizer ends a program in which another one was loaded before it, unless it is told not to look.
bool insists_on_being_first(const std::string& path) {
    const char* const options = ::getenv("ASAN_OPTIONS");
    if (options != nullptr && std::strstr(options, "verify_asan_link_order=0") != nullptr) {
        return false;
    }
    const std::vector<std::string> libraries = needed_libraries(path);
    return std::any_of(libraries.begin(), libraries.end(), [](const std::string& name) {
        return name.rfind("libasan.so", 0) == 0 || name.rfind("libclang_rt.asan", 0) == 0;
    });
}

bool is_executable_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

TraceCheck check_elf(const std::string& name, const std::string& bytes) {
    Elf64_Ehdr header{};
    if (bytes.size() < sizeof(header) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
        return {};  // not ELF: the kernel says what it is
    }
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
        return {Traceability::kUnreached,
                name + " is no x86-64 program; nothing of it will be recorded",
                "no x86-64 program"};
    }
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        if (!program_header(bytes, header, i, segment)) {
            return {};  // headers beyond what was read: no verdict rather than a wrong one
        }
        if (segment.p_type != PT_INTERP) {
            continue;
        }
        if (segment.p_offset >= bytes.size()) {
            return {};
        }
        const std::string loader = bytes.substr(segment.p_offset, segment.p_filesz).c_str();
        if (loader.find("ld-musl") != std::string::npos) {
            // Its loader does load the shim, which does nothing beside another C library than glibc; children inherit the preload.
            return {Traceability::kUnreached,
                    name +
                        " is linked to musl, where nothing can be recorded; nothing of it will be,"
                        " its children of glibc may be",
                    "musl"};
        }
        return {};
    }
    return {Traceability::kUnreached,
            name +
                " is statically linked: no library can be preloaded into it; nothing of it"
                " will be recorded, its children may be",
            "static"};
}

TraceCheck check_traceable(const std::string& path) {
    std::string program = path;
    for (int depth = 0; depth <= kMostInterpreters; ++depth) {
        const std::string bytes = read_head(program);
        const std::string interpreter = script_interpreter(bytes);
        if (interpreter.empty()) {
            if (gains_privileges(program)) {
                return {Traceability::kUnreached,
                        program +
                            " is setuid, setgid or has file capabilities: the loader"
                            " drops preloaded libraries there; nothing of it will be recorded",
                        "setuid"};
            }
            if (insists_on_being_first(program)) {
                return {Traceability::kMustNotLoad,
                        program +
                            " is linked to AddressSanitizer as a shared library, which ends it "
                            "where another one is loaded first; it runs without being recorded "
                            "(with ASAN_OPTIONS=verify_asan_link_order=0 it is recorded)",
                        "AddressSanitizer"};
            }
            return check_elf(program, bytes);
        }
        program = interpreter;
    }
    return {};
}

FoundProgram find_program(const std::string& command, const std::string& search_path) {
    FoundProgram not_found{command, kExitNotFound, command + ": command not found"};
    if (command.empty()) {
        return not_found;
    }
    if (command.find('/') != std::string::npos) {
        if (is_executable_file(command)) {
            return {command, 0, {}};
        }
        if (::access(command.c_str(), F_OK) != 0) {
            return {command, kExitNotFound, command + ": " + errno_text(errno)};
        }
        return {command, kExitCannotRun, command + ": is a directory or not executable"};
    }
    std::istringstream folders(search_path);
    std::string denied;
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = (folder.empty() ? "." : folder) + "/" + command;
        if (is_executable_file(candidate)) {
            return {candidate, 0, {}};
        }
        struct stat status {};
        if (::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
            denied = candidate;
        }
    }
    if (!denied.empty()) {
        return {denied, kExitCannotRun, denied + ": not executable"};
    }
    return not_found;
}

}  // namespace ringside::tools
