// An IterationReport as messages and the job index have it, and back.
#pragma once

#include "agent/capture/engine.hpp"
#include "schema/dump_generated.h"

namespace ringside::agent {

inline fbs::IterationsT iterations_table(const IterationReport& report) {
    fbs::IterationsT table;
    table.name = report.name;
    table.asked = report.asked;
    table.count = report.count;
    table.first = report.first;
    table.begin_ticks = report.begin_ticks;
    table.end_ticks = report.end_ticks;
    table.beside = report.beside;
    return table;
}

inline IterationReport iterations_of(const fbs::IterationsT& table) {
    return {table.name,        table.asked,     table.count, table.first,
            table.begin_ticks, table.end_ticks, table.beside};
}

}  // namespace ringside::agent
