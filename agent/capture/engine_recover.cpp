// After an agent that died: the capture that it left is found before a record is drained, gone on with, and ended; and what dead processes
// left without any capture becomes a dump where somebody asks.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "agent/capture/engine_impl.hpp"
#include "agent/window/left_window.hpp"
#include "agent/window/piece_file.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr Nanoseconds kLetGo{1'000'000'000};

CaptureRequest request_of(const CaptureNote& note) {
    CaptureRequest request;
    request.id = note.id;
    request.selection = note.selection;
    request.options = note.options;
    request.max_bytes = note.max_bytes;
    request.compress = note.compress;
    request.name = note.name;
    return request;
}

}  // namespace

/// What an agent that died had in its window becomes a capture that it has left. The pieces stay until that is ended: whoever is interrupted
/// here begins again. A capture that is there itself comes first.
void EngineImpl::find_window() {
    const std::string path = table_.directory().path();
    const int directory = table_.directory().descriptor();
    if (options_.recover.id == 0 || find_pieces(directory).empty() || read_note(path)) return;
    CaptureRequest request;
    request.id = options_.recover.id;
    request.name = options_.recover.name;
    auto writer = DumpWriter::create({options_.output_root, request.name, options_.node});
    if (!writer) return say_window(writer.error());
    const std::string dump = (*writer)->path();
    const auto header = copy_left_window(directory, request.id, **writer);
    auto done = header ? Result<void>() : Result<void>(header.error());
    if (header) {
        request.options = header->options;
        CaptureNote note = note_of(request, false);
        note.window = true;
        done = write_note(path, note);
    }
    if (done) return;
    // Half a copy, or one that nobody knows of, is of no use: all of it is still in the pieces.
    ::unlink((dump + ".partial").c_str());
    ::rmdir(dump.substr(0, dump.rfind('/')).c_str());
    if (done.error().code != ErrorCode::kInput) return say_window(done.error());
    // Its agent died while it began: there is nothing in them, and they must not keep what else is here from being recovered.
    spdlog::warn("{}", done.error().message);
    remove_pieces(directory);
}

void EngineImpl::say_window(const Error& error) {
    recovered_text_ = "the window of an agent that died: " + error.message;
    recover_error_ = Error{error.code, "recover " + recovered_text_};
}

/// The word is off already: nobody owned it. Without a capture here the drain thread would throw away what is to be kept.
void EngineImpl::find_capture(std::uint64_t now) {
    const auto note = read_note(table_.directory().path());
    if (!note) return;
    PartialDump partial;
    const DumpRequest wanted{note->output_root, note->name, note->node, note->max_bytes,
                             note->compress};
    auto writer = DumpWriter::resume(wanted, note->id, partial);
    if (!writer && writer.error().code == ErrorCode::kNothingMatched)
        writer = DumpWriter::create(wanted);  // it died between its note and the file
    if (!writer) return say_recovered(*note, writer.error());
    if (*writer == nullptr) {
        found_dump_ =
            note->output_root + "/" + note->name + "/" + note->node + schema::kDumpExtension;
        recovered_text_ = "the dump of an agent that had ended its capture: " + found_dump_;
        spdlog::warn("found {}", recovered_text_);
        if (note->window) remove_pieces(table_.directory().descriptor());
        return remove_note(table_.directory().path());
    }
    if (partial.cut != 0)
        cut_text_ =
            "; " + std::to_string(partial.cut) + " bytes of a chunk that was not whole are cut off";
    capture_ = std::make_unique<Capture>(request_of(*note), std::move(*writer), options_.job,
                                         calibration_);
    capture_->resume(std::move(partial), note->from_start);
    window_found_ = note->window;
    capture_->set_stop(std::min(now, table_.directory().control().stop_ticks()));
    capture_->draining(table_.directory().control().word());
}

void EngineImpl::say_recovered(const CaptureNote& note, const Error& error) {
    recovered_text_ = "the capture '" + note.name + "' of an agent that died: " + error.message;
    spdlog::error("can't end {}", recovered_text_);
    recover_error_ = Error{error.code, "end " + recovered_text_};
    // What another's file is or says will not change; a disk that is full or away may, and `recover` can be tried again.
    if (error.code == ErrorCode::kInput) remove_note(table_.directory().path());
}

void EngineImpl::end_found_capture() {
    Turn turn(*this);
    if (capture_ && capture_->resumed()) finish_found_capture(turn);
    opened_ = true;
}

void EngineImpl::finish_found_capture(Turn& turn) {
    wait_for(turn.lock(), kLetGo, [this] {
        return std::all_of(table_.all().begin(), table_.all().end(),
                           [this](const auto& process) { return capture_->has_let_go(*process); });
    });
    const std::string what = window_found_ ? "window" : "capture";
    recovered_ = last_ = finish_capture();
    recovered_text_ = "the " + what + " of an agent that died: " + std::to_string(last_->records) +
                      " records, " + std::to_string(last_->lost) + " lost, of " +
                      std::to_string(last_->processes.size()) + " processes, in " + last_->path +
                      (last_->error.empty() ? "" : " (" + last_->error + ")") + cut_text_;
    spdlog::warn("ended {}", recovered_text_);
    table_.forget_removed();
}

std::optional<CaptureReport> EngineImpl::recovered() const {
    const Turn turn(*this);
    return recovered_;
}

std::uint64_t EngineImpl::removed_segments() const {
    const Turn turn(*this);
    return table_.removed();
}

Result<std::optional<CaptureReport>> EngineImpl::take_left_behind(const CaptureRequest& request) {
    const Turn turn(*this);
    if (capture_) {
        return Error{ErrorCode::kRefused, "take what dead processes left in " +
                                              table_.directory().path() +
                                              ": a capture runs there; wait for its end"};
    }
    const std::uint64_t now = now_ticks();
    find(now);
    bury(now);
    const auto left = [](const auto& process) { return process->segment && process->left_behind; };
    if (std::none_of(table_.all().begin(), table_.all().end(), left))
        return std::optional<CaptureReport>();
    const auto path = table_.directory().path();
    if (auto noted = write_note(path, note_of(request, true)); !noted) return noted.error();
    auto writer =
        DumpWriter::create({options_.output_root, request.name, options_.node, request.max_bytes});
    if (!writer) {
        remove_note(path);
        return writer.error();
    }
    table_.forget_removed();
    capture_ = std::make_unique<Capture>(request, std::move(*writer), options_.job, calibration_);
    capture_->begin(0);
    for (const auto& process : table_.all()) {
        process->in_capture = false;
        if (left(process)) capture_->include(*process);
    }
    capture_->set_stop(now);
    capture_->draining(table_.directory().control().word());
    bury_left_behind(now);
    last_ = finish_capture();
    table_.forget_removed();
    return std::optional<CaptureReport>(last_);
}

}  // namespace ringside::agent
