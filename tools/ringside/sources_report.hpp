// What each source reached in a process, for programs: `ps` and `trace` say it alike. For people: sources_text() in words.hpp.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/ringside/words.hpp"

namespace ringside::tools {

inline nlohmann::json sources_json(const SourceTables& sources) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& source : sources) {
        list.push_back({{"name", source_word(source->id)},
                        {"level", level_word(source->level)},
                        {"reason", source->reason}});
    }
    return list;
}

}  // namespace ringside::tools
