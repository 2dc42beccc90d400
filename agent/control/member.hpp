// What a job is called between hosts, and what follows from that. member: as its user names it: `4242`, task 7 of an array `4242_7`, a component of
// a heterogeneous job `4242+1`. family: `4242` of all of these. Pure. Public.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "schema/result.hpp"

namespace ringside::agent {

/// What Slurm's variables say that this task's job is called: ARRAY_TASK, else its id; empty where they say nothing.
std::string slurm_member(const std::function<std::string(const char*)>& variable);

/// The job of which `member` is a task or component; itself where it is of none.
std::string family_of(const std::string& member);

/// As check_name(), and '+' too.
/// @errors Usage
schema::Result<void> check_member(std::string_view what, std::string_view member);

/// The ports that a job's agent tries, in this order: below those that systems hand out by themselves.
std::array<std::uint16_t, 4> rendezvous_ports(const std::string& member);

}  // namespace ringside::agent
