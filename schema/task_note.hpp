// What the process that starts a launcher's task leaves in the job directory: a file `task-<pid>.<step>`, under an OFD lock as long as the task
// runs, of lines `KEY VALUE`. So the agent knows of tasks whose processes have no segment. Written by `ringside wrap` (tools/ringside/task_file),
// read by the agent (agent/attach/task_notes), removed by the step's last task.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ringside::schema {

inline constexpr std::string_view kTaskNotePrefix = "task-";
/// More than that no note has.
inline constexpr std::size_t kTaskNoteBytes = 8192;

struct TaskNote {
    std::int32_t pid = 0;             ///< the command's, in `pid_namespace`
    std::uint64_t pid_namespace = 0;  ///< inode
    std::int32_t rank = -1;
    std::vector<std::int32_t>
        ranks_here;  ///< of its step on this node, its own too; empty: unknown
    std::string
        why;  ///< what keeps the preload from the command: "static", "setuid"; empty: nothing that is known
    std::string program;
    bool operator==(const TaskNote&) const = default;
};

/// @param step  without a dot
inline std::string task_note_name(std::int32_t pid, const std::string& step) {
    return std::string(kTaskNotePrefix) + std::to_string(pid) + "." + step;
}

/// What a note is called until it is whole and locked.
inline std::string task_note_aside(std::int32_t pid, const std::string& step) {
    return task_note_name(pid, step) + ".new";
}

inline bool is_task_note(std::string_view name) {
    return name.substr(0, kTaskNotePrefix.size()) == kTaskNotePrefix &&
           name.find('.') != name.npos && name.find('.') == name.rfind('.');
}
/// @param name  a note's
inline std::string task_note_step(std::string_view name) {
    return std::string(name.substr(name.find('.') + 1));
}
/// Also of one that is not whole.
inline bool is_task_note_of(std::string_view name, const std::string& step) {
    const std::string_view end = name.substr(std::min(name.find('.'), name.size()));
    return name.substr(0, kTaskNotePrefix.size()) == kTaskNotePrefix &&
           (end == "." + step || end == "." + step + ".new");
}

inline std::string text_of(const TaskNote& note) {
    std::ostringstream text;
    text << "pid " << note.pid << "\nnamespace " << note.pid_namespace << "\nrank " << note.rank
         << "\nwhy " << note.why << "\nprogram " << note.program << "\n";
    for (const std::int32_t rank : note.ranks_here) text << "here " << rank << "\n";
    return text.str();
}

/// What is none of its keys is passed over: a newer command's.
inline TaskNote task_note_of(const std::string& text) {
    TaskNote note;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t space = line.find(' ');
        const std::string key = line.substr(0, space);
        const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
        const auto read = [&](auto& number) {
            const char* const end = value.data() + value.size();
            const auto [rest, error] = std::from_chars(value.data(), end, number);
            return error == std::errc() && rest == end;
        };
        std::int32_t rank = -1;
        if (key == "pid") read(note.pid);
        if (key == "namespace") read(note.pid_namespace);
        if (key == "rank") read(note.rank);
        if (key == "here" && read(rank)) note.ranks_here.push_back(rank);
        if (key == "why") note.why = value;
        if (key == "program") note.program = value;
    }
    return note;
}

}  // namespace ringside::schema
