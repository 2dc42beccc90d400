#include "agent/control/key.hpp"

#include <fcntl.h>
#include <sodium/crypto_generichash.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/attach/file_handle.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::string_view kFirstLine = "ringside-key 1";
constexpr std::size_t kZ85Bytes = 40, kBinaryBytes = 32;
constexpr std::size_t kMostFileBytes = 512;

std::string failed(const char* action, const std::string& path, int cause) {
    return std::string(action) + " key " + path + ": " + std::strerror(cause);
}

Error unwritable(const std::string& path) {
    return {ErrorCode::kUsage,
            failed("write", path, errno) + "; name a file in a directory of yours with -o"};
}

Error damaged(const std::string& path) {
    return {ErrorCode::kInput,
            "read key " + path + ": there is no key in it; make one with `ringside keygen`"};
}

/// The next line of `text`, taken off it.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

}  // namespace

std::string default_key_path() {
    if (const char* path = ::secure_getenv("RINGSIDE_KEY"); path != nullptr && *path != 0)
        return path;
    const char* home = ::secure_getenv("HOME");
    return home == nullptr || *home == 0 ? "" : std::string(home) + "/.ringside/key";
}

schema::Result<Key> make_key() {
    char public_half[kZ85Bytes + 1] = {}, secret_half[kZ85Bytes + 1] = {};
    if (::zmq_curve_keypair(public_half, secret_half) != 0)
        return Error{ErrorCode::kInternal, std::string("make a key: ") + ::zmq_strerror(errno) +
                                               "; install a libzmq with CURVE"};
    return Key{public_half, secret_half};
}

schema::Result<bool> make_key_folder(const std::string& path) {
    constexpr std::string_view kHomeFolder = "/.ringside";
    constexpr mode_t kOthers = 077, kOthersWrite = 022;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) return false;
    const std::string folder = path.substr(0, slash);
    struct stat status {};
    if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) ||
        ::stat(folder.c_str(), &status) != 0)
        return unwritable(path);
    bool changed = false;
    if (folder.ends_with(kHomeFolder) && status.st_uid == ::geteuid() &&
        (status.st_mode & kOthers) != 0) {
        changed = true;
        if (::chmod(folder.c_str(), status.st_mode & 07700) != 0) return unwritable(path);
        status.st_mode &= ~kOthers;
    }
    // In a sticky directory others may not put theirs in the place of what is ours.
    const bool others = (status.st_mode & kOthersWrite) != 0 && (status.st_mode & S_ISVTX) == 0;
    if (others || (status.st_uid != ::geteuid() && status.st_uid != 0))
        return Error{
            ErrorCode::kRefused,
            "write key " + path + ": " + folder +
                (others ? " may be written to by others; chmod go-w it" : " is another user's") +
                ", or name a file in a directory of yours with -o"};
    return changed;
}

schema::Result<void> write_key(const std::string& path, const Key& key) {
    if (auto folder = make_key_folder(path); !folder) return folder.error();
    const FileHandle file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) {
        return Error{
            ErrorCode::kRefused,
            "write key " + path +
                ": a file is there; agents that have it would no longer be reached. Remove "
                "it first, or name another with -o"};
    }
    const std::string text =
        std::string(kFirstLine) + "\n" + key.public_half + "\n" + key.secret_half + "\n";
    // On the disk before anybody relies on it: where a quota is full some file systems say so that late.
    if (!file ||
        ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fsync(file.get()) != 0) {
        const int cause = errno;
        if (file) ::unlink(path.c_str());
        errno = cause;
        return unwritable(path);
    }
    return {};
}

schema::Result<Key> read_key(const std::string& path) {
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file)
        return Error{ErrorCode::kUsage,
                     failed("read", path, errno) +
                         "; make one with `ringside keygen`, or name it with --key"};
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return damaged(path);
    if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
        return Error{ErrorCode::kRefused, "read key " + path +
                                              ": it must be yours and nobody else may read it; "
                                              "chmod 600 it, and make a new one if it was seen"};
    }
    char buffer[kMostFileBytes];
    const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
    if (size < 0) return Error{ErrorCode::kUsage, failed("read", path, errno)};
    std::string_view text(buffer, static_cast<std::size_t>(size));
    if (take_line(text) != kFirstLine) return damaged(path);
    Key key;
    key.public_half = take_line(text);
    key.secret_half = take_line(text);
    std::uint8_t binary[kBinaryBytes];
    for (const std::string& half : {key.public_half, key.secret_half}) {
        if (half.size() != kZ85Bytes || ::zmq_z85_decode(binary, half.c_str()) == nullptr)
            return damaged(path);
    }
    return key;
}

schema::Result<std::optional<Key>> find_key(const std::string& path) {
    using Found = std::optional<Key>;
    const std::string wanted = path.empty() ? default_key_path() : path;
    const bool named = !path.empty() || ::secure_getenv("RINGSIDE_KEY") != nullptr;
    if (!named && (wanted.empty() || ::access(wanted.c_str(), F_OK) != 0)) return Found();
    auto key = read_key(wanted);
    if (!key) return key.error();
    return Found(std::move(*key));
}

schema::Result<Key> find_or_make_key(const std::string& path) {
    auto found = find_key(path);
    if (!found) return found.error();
    if (*found) return std::move(**found);
    const std::string wanted = path.empty() ? default_key_path() : path;
    if (wanted.empty())
        return Error{ErrorCode::kUsage,
                     "keep a key: there is no home for it; set HOME, or name a file with "
                     "RINGSIDE_KEY"};
    const auto opened_to_others = make_key_folder(wanted);
    if (!opened_to_others) return opened_to_others.error();
    if (*opened_to_others)
        spdlog::warn("{}: others could read or write its directory; it is yours alone now (0700)",
                     wanted);
    auto made = make_key();
    if (!made) return made.error();
    // Whole before it has its name: link() is the one way to give it only where there is none yet, on network file systems too.
    char unique[17] = {};
    schema::write_hex(unique, schema::hash_bytes(made->public_half.data(), kZ85Bytes), 16);
    const std::string aside = wanted + "." + unique;
    if (auto written = write_key(aside, *made); !written) return written.error();
    const int cause = ::link(aside.c_str(), wanted.c_str()) == 0 ? 0 : errno;
    ::unlink(aside.c_str());
    if (cause == EPERM || cause == EOPNOTSUPP) {
        // A file system without links.
        auto written = write_key(wanted, *made);
        if (!written && written.error().code != ErrorCode::kRefused) return written.error();
    } else if (cause != 0 && cause != EEXIST) {
        return Error{ErrorCode::kUsage, failed("write", wanted, cause)};
    }
    return read_key(wanted);
}

schema::Result<Key> job_key(const Key& user, const std::string& job) {
    constexpr std::string_view kPurpose = "ringside job key 1 ";
    std::uint8_t user_secret[kBinaryBytes], secret[kBinaryBytes];
    if (::zmq_z85_decode(user_secret, user.secret_half.c_str()) == nullptr)
        return Error{ErrorCode::kInput, "use the key: its secret half is not Z85"};
    const std::string text = std::string(kPurpose) + job;
    ::crypto_generichash(secret, sizeof secret, reinterpret_cast<const std::uint8_t*>(text.data()),
                         text.size(), user_secret, sizeof user_secret);
    char secret_half[kZ85Bytes + 1] = {}, public_half[kZ85Bytes + 1] = {};
    if (::zmq_z85_encode(secret_half, secret, sizeof secret) == nullptr ||
        ::zmq_curve_public(public_half, secret_half) != 0)
        return Error{ErrorCode::kInternal, std::string("make a job's key: ") +
                                               ::zmq_strerror(errno) +
                                               "; install a libzmq with CURVE"};
    return Key{public_half, secret_half};
}

Error key_missing(const std::string& endpoint) {
    return {
        ErrorCode::kRefused,
        "endpoint " + endpoint +
            ": tcp needs a key; make one with `ringside keygen` and give the same file to every "
            "agent and command (--key FILE, RINGSIDE_KEY, or ~/.ringside/key)"};
}

}  // namespace ringside::agent
