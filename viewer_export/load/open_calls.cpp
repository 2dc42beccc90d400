#include "viewer_export/load/open_calls.hpp"

namespace ringside::viewer_export::load {
namespace {

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? "" : text->str();
}

}  // namespace

void add_open_calls(const fbs::ProcessEnd& end, model::Process& process) {
    process.open_calls.clear();
    process.groups.clear();
    if (end.open_calls() != nullptr) {
        for (const fbs::OpenCall* call : *end.open_calls()) {
            process.open_calls.push_back(
                {call->tid(), static_cast<schema::SourceId>(call->source()),
                 text_of(call->function()), call->begin_ticks(), call->group(), call->sequence(),
                 call->peer(), call->tag()});
        }
    }
    if (end.groups() == nullptr) return;
    for (const fbs::Group* group : *end.groups()) {
        process.groups.push_back({group->id(), static_cast<schema::SourceId>(group->source()),
                                  text_of(group->label()), group->size(), group->rank(),
                                  group->job_rank(), group->last()});
    }
}

}  // namespace ringside::viewer_export::load
