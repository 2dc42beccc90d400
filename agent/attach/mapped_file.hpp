// A shared-memory file of ours, mapped for reading and writing by Boost.Interprocess and checked: no link, a regular file, our owner,
// large enough, and the mapping is the very file that was checked.
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct MappedFile {
    FileHandle file;  ///< kept: its lock tells whether the process lives
    boost::interprocess::mapped_region region;

    /// @param directory, path  the open directory and its path, for Boost and for messages
    /// @param least_bytes      a smaller file is refused
    /// @errors Refused: with the cause and what to do
    static schema::Result<MappedFile> open(int directory, const std::string& path,
                                           const std::string& name, std::size_t least_bytes);
};

}  // namespace ringside::agent
