// The key of tcp endpoints: one CURVE key pair in one file, given to all agents of a job and to who asks them. Who has the file may ask;
// nobody else can, nor read what is said. Public: the command uses it too.
#pragma once

#include <optional>
#include <string>

#include "schema/result.hpp"

namespace ringside::agent {

/// Both halves in Z85, 40 characters each.
struct Key {
    std::string public_half;
    std::string secret_half;
};

/// RINGSIDE_KEY, else ~/.ringside/key; empty where there is no home.
std::string default_key_path();

/// A new random pair.
/// @errors Internal: this libzmq has no CURVE
schema::Result<Key> make_key();

/// Sees to the directory of a key: makes it where it is missing (0700), and makes ~/.ringside its owner's alone where it was not, however it came to be.
/// @return whether ~/.ringside was not until now: to be said
/// @errors Refused: another user's, or others may write to it and so put another key there; Usage: can't be made
schema::Result<bool> make_key_folder(const std::string& path);

/// Writes a key for its owner alone (0600), in such a directory. Never over a file that is there.
/// @errors as make_key_folder; Refused: a file is there; Usage: can't be written
schema::Result<void> write_key(const std::string& path, const Key& key);

/// @errors Usage: not there or not readable; Refused: others may read or write it, or it is another user's; Input: no key in it
schema::Result<Key> read_key(const std::string& path);

/// The key that was named, else the default one where it is there.
/// @param path  empty: the default
/// @errors as read_key, for a key that was named
schema::Result<std::optional<Key>> find_key(const std::string& path);

/// The user's key, made where there is none yet; of several that make it at once, on hosts that share the directory, all get the same.
/// @param path  empty: the default
/// That ~/.ringside was open to others is logged.
/// @errors as read_key and write_key; Usage: there is no home to keep it in
schema::Result<Key> find_or_make_key(const std::string& path);

/// The key of one job's agents, the same wherever it is made: a keyed BLAKE2b of the job's name. Who has it can't tell the user's.
/// @errors Internal: this libzmq has no CURVE
schema::Result<Key> job_key(const Key& user, const std::string& job);

/// For an endpoint that can't go without: what is missing and how to get it.
schema::Error key_missing(const std::string& endpoint);

}  // namespace ringside::agent
