// Which executables are traced: RINGSIDE_INCLUDE and RINGSIDE_EXCLUDE, lists of patterns, looked at once, at load.
#pragma once

namespace ringside::inject {

/// Whether `path` matches one of the patterns of a list.
/// @param patterns  divided by ':' or ','; '*' stands for any text, '?' for one character. One with a slash is compared with the whole path,
///                  any other with its last part
bool matches_one(const char* patterns, const char* path);

/// Whether the process is to be traced: none of RINGSIDE_EXCLUDE matches and, where there is a RINGSIDE_INCLUDE, one of that does.
/// @param executable  its path; empty (no /proc) matches nothing
/// @thread main thread, at load
bool is_chosen(const char* executable);

}  // namespace ringside::inject
