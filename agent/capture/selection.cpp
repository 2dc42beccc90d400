#include "agent/capture/selection.hpp"

#include <algorithm>
#include <tuple>

namespace ringside::agent {
namespace {

template <class List, class Is>
bool empty_or_any(const List& list, const Is& is) {
    return list.empty() || std::any_of(list.begin(), list.end(), is);
}

void add_list(std::string& text, const char* what, const std::vector<std::string>& words) {
    if (words.empty()) return;
    text += (text.empty() ? "" : ", ") + std::string(what);
    for (const std::string& word : words) text += (&word == &words[0] ? " " : ", ") + word;
}

std::vector<std::string> words_of(const std::vector<int>& numbers) {
    std::vector<std::string> words;
    words.reserve(numbers.size());
    for (const int number : numbers) words.push_back(std::to_string(number));
    return words;
}

}  // namespace

bool Selection::fits(const Candidate& candidate) const {
    return empty_or_any(pids, [&](int pid) { return candidate.has_pid(pid); }) &&
           empty_or_any(ranks, [&](int rank) { return candidate.rank == rank; }) &&
           empty_or_any(executables,
                        [&](const std::string& name) { return candidate.is_executable(name); });
}

std::string Selection::text() const {
    std::string text;
    add_list(text, "with pid", words_of(pids));
    add_list(text, "of rank", words_of(ranks));
    add_list(text, "of executable", executables);
    return text;
}

void Choice::decide(std::span<const std::pair<schema::SegmentId, Candidate>> there) {
    if (selection_.limit == 0) return;
    std::vector<const std::pair<schema::SegmentId, Candidate>*> fitting;
    for (const auto& process : there) {
        if (selection_.fits(process.second)) fitting.push_back(&process);
    }
    std::sort(fitting.begin(), fitting.end(), [this](const auto* a, const auto* b) {
        const auto place = [this](const auto& process) {
            const Candidate& candidate = process.second;
            // Without a rank: behind all that have one.
            return std::tuple(!candidate.has_framework, !chosen_.contains(process.first),
                              static_cast<unsigned>(candidate.rank), candidate.pid);
        };
        return place(*a) < place(*b);
    });
    chosen_.clear();
    for (std::size_t i = 0; i < fitting.size(); ++i) {
        const auto& [id, candidate] = *fitting[i];
        if (i < selection_.limit) {
            chosen_.insert(id);
        } else if (candidate.has_framework) {
            left_out_.insert(id);
        }
    }
}

}  // namespace ringside::agent
