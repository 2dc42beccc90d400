#include "agent/control/member.hpp"

#include <algorithm>

#include "agent/control/endpoint.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {
namespace {

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string slurm_member(const std::function<std::string(const char*)>& variable) {
    const std::string array = variable("SLURM_ARRAY_JOB_ID");
    return array.empty() ? variable("SLURM_JOB_ID") : array + "_" + variable("SLURM_ARRAY_TASK_ID");
}

std::string family_of(const std::string& member) {
    const std::size_t at = member.find_first_of("_+");
    if (at == std::string::npos) return member;
    const std::string_view text = member;
    const bool is_slurms = all_digits(text.substr(0, at)) && all_digits(text.substr(at + 1));
    return is_slurms ? member.substr(0, at) : member;
}

schema::Result<void> check_member(std::string_view what, std::string_view member) {
    std::string name(member);
    // Where Slurm has it: "4242+1".
    if (family_of(name) != name) std::replace(name.begin(), name.end(), '+', '_');
    return check_name(what, name);
}

std::array<std::uint16_t, 4> rendezvous_ports(const std::string& member) {
    constexpr std::uint64_t kFirst = 20'000, kCount = 12'000;
    const std::uint64_t hash = schema::hash_bytes(member.data(), member.size());
    std::array<std::uint16_t, 4> ports{};
    for (std::uint64_t i = 0; i < ports.size(); ++i)
        ports[i] = static_cast<std::uint16_t>(kFirst + schema::mix64(hash + i) % kCount);
    return ports;
}

}  // namespace ringside::agent
