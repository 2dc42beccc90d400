// Whom a request means, and who of them has come: the engine's part of a selection, and the tasks that no process speaks for.
#include <algorithm>
#include <set>

#include "agent/attach/task_notes.hpp"
#include "agent/capture/engine_impl.hpp"
#include "agent/capture/unseen_tasks.hpp"
#include "agent/capture/verdict.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// "; ranks 0, 1 and executables python3, sh are there": what could have been asked for.
std::string there_are(const Selection& asked, const ProcessTable& table) {
    std::set<int> ranks;
    std::set<std::string> names;
    for (const auto& process : table.all()) {
        if (!process->alive()) continue;
        if (process->facts.rank >= 0) ranks.insert(process->facts.rank);
        const std::string& path = process->facts.executable;
        if (!path.empty()) names.insert(path.substr(path.rfind('/') + 1));
    }
    std::string text;
    const auto add = [&](const char* what, const auto& list, const auto& word) {
        if (list.empty()) return;
        text += text.empty() ? "; there are " : " and ";
        text += what;
        for (auto item = list.begin(); item != list.end(); ++item)
            text += (item == list.begin() ? " " : ", ") + word(*item);
    };
    if (!asked.ranks.empty()) add("ranks", ranks, [](int rank) { return std::to_string(rank); });
    if (!asked.executables.empty())
        add("executables", names, [](const std::string& name) { return name; });
    return text;
}

}  // namespace

Result<void> EngineImpl::check_selection(const std::string& action,
                                         const Selection& selection) const {
    const auto meant = [&](const auto& process) {
        return process->alive() && selection.fits(process->candidate());
    };
    const auto& all = table_.all();
    if (!selection.names_some() || std::any_of(all.begin(), all.end(), meant) ||
        !unseen(selection).empty())
        return {};
    return Error{ErrorCode::kNothingMatched,
                 action + " on node " + options_.node + ": no process " + selection.text() +
                     " is in " + table_.directory().path() + there_are(selection, table_) +
                     "; `ringside ps` lists those that are"};
}

void EngineImpl::decide(Choice& choice) const {
    std::vector<std::pair<schema::SegmentId, Candidate>> there;
    for (const auto& process : table_.all()) {
        const Candidate candidate = process->candidate();
        const bool holds_place =
            candidate.has_framework && process->in_capture && choice.means(process->id, candidate);
        if (process->alive() || holds_place) there.emplace_back(process->id, candidate);
    }
    choice.decide(there);
}

void EngineImpl::decide_again(Choice& choice) {
    if (choice.selection().limit == 0) return;
    for (const auto& process : table_.all()) {
        if (process->alive()) process->refresh();
    }
    decide(choice);
}

void EngineImpl::choose_again() {
    if (!capture_ || !capture_->selects_some()) return;
    decide_again(capture_->choice());
    bool wakes = false;
    for (const auto& process : table_.all()) {
        if (!process->alive()) continue;
        const bool meant = capture_->wants(*process);
        // One that is only ended here has been in it as long as it was.
        if (meant && capture_->include(*process)) process->came_late = !capture_->resumed();
        // A child has the flag of its parent, also of one that a limit has let in alone.
        process->segment->set_selected(meant);
        wakes |= meant && process->can_attach() && process->must_attach() && !process->attached;
    }
    // A shim that slept when it was chosen; or one that was about to sleep, at the next look.
    if (wakes) table_.directory().control().wake();
}

void EngineImpl::choose_again_in_excerpt() {
    if (!excerpt_ || excerpt_->request.selection.limit == 0 || !excerpt_->excerpt.begun()) return;
    decide_again(excerpt_->choice);
    for (const auto& process : table_.all()) {
        if (process->alive() && !excerpt_->excerpt.index_of(process->index))
            include_in_excerpt(*process);
    }
}

PrepareReport EngineImpl::attach_report(Nanoseconds waited) {
    PrepareReport report;
    for (const auto& process : table_.all()) {
        if (!process->in_capture || !process->alive()) continue;
        ++report.processes;
        if (process->attached) {
            ++report.attached;
            report.slowest_attach_ns = std::max(report.slowest_attach_ns, process->start_delay_ns);
        } else if (waited.value != 0 && process->can_attach() && process->must_attach()) {
            process->waited = waited;
        }
    }
    return report;
}

std::vector<ProcessReport> EngineImpl::unseen(const Selection& selection) const {
    const auto& all = table_.all();
    auto tasks =
        unseen_tasks(find_task_notes(table_.directory().descriptor()), [&](const Selection& task) {
            return std::any_of(all.begin(), all.end(), [&](const auto& process) {
                return (process->alive() || process->in_capture) && task.fits(process->candidate());
            });
        });
    std::erase_if(tasks, [&](const ProcessReport& task) {
        return !selection.fits({task.pid, task.host_pid, task.rank, task.executable});
    });
    return tasks;
}

void EngineImpl::add_unseen(const Selection& selection, std::vector<ProcessReport>& reports) const {
    for (const RefusedSegment& refused : table_.directory().refused())
        reports.push_back(report_refused(refused.id, refused.cause));
    for (ProcessReport& task : unseen(selection)) reports.push_back(std::move(task));
}

}  // namespace ringside::agent
