// What rows are sorted by.
#pragma once

#include <string>

#include "viewer_export/out/table.hpp"

namespace ringside::viewer_export {

/// Whether `a` comes first.
using RowOrder = bool (*)(const TableRow& a, const TableRow& b);

/// @param key  one of table_sort_keys(), or torch's newer name of it, with `device` for `cuda`
/// @return null where it is empty: as registered
/// @errors Usage: an unknown key; the message lists them
schema::Result<RowOrder> table_order(const std::string& key);

}  // namespace ringside::viewer_export
