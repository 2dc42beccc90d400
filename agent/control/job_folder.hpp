// A job's directory, before there is an agent in it: for who starts one. Public.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::agent {

/// Opens `<root>/<job>`; what is missing is made (0700).
/// @return its descriptor, the caller's from now on
/// @errors Usage: it can't be made, or is not this user's alone
schema::Result<int> open_job_folder(const std::string& root, const std::string& job);

}  // namespace ringside::agent
