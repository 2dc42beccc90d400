#include "agent/drain/name_book.hpp"

namespace ringside::agent {
namespace {

const std::string kLostName = "<name lost>";

}  // namespace

void NameBook::first_use(MappedSegment& segment, std::uint32_t id) {
    if (id == schema::kNoName.value || id == schema::kInlineName.value) return;
    if (id > schema::kNameEntries) return segment.count_violation();
    used_[id - 1] = true;
    auto name = segment.name_of({id});
    if (!name) {
        // The segment is damaged, or was cut off since the record was drained. The dump names what it uses, all the same.
        const auto known = texts_.find(id);
        name = NameFacts{id, known == texts_.end() ? kLostName : known->second, 0, 0};
    }
    texts_[id] = name->text;
    if (!use_attribute(segment, name->attribute)) name->attribute = 0;
    pending_.names.push_back(std::move(*name));
}

/// @return whether there is such a set
bool NameBook::use_attribute(MappedSegment& segment, std::uint16_t attribute) {
    if (attribute == 0) return false;
    if (attribute > schema::kAttributeEntries) {
        segment.count_violation();
        return false;
    }
    if (attributes_used_[attribute]) return true;
    const auto extras = segment.attribute_of({attribute});
    if (!extras) return false;
    attributes_used_[attribute] = true;
    pending_.attributes.push_back(*extras);
    // Each step marks a name or an attribute that was not marked, so hostile cycles end.
    use(segment, extras->domain);
    use(segment, extras->category);
    return true;
}

bool NameBook::take(NamesBatch& batch) {
    batch.names.clear();
    batch.attributes.clear();
    std::swap(batch.names, pending_.names);
    std::swap(batch.attributes, pending_.attributes);
    return !batch.names.empty() || !batch.attributes.empty();
}

void NameBook::restore(const NamesBatch& batch) {
    for (const NameFacts& name : batch.names) {
        if (name.id == 0 || name.id > schema::kNameEntries) continue;
        used_[name.id - 1] = true;
        texts_[name.id] = name.text;
    }
    for (const AttributeFacts& attribute : batch.attributes) {
        if (attribute.id <= schema::kAttributeEntries) attributes_used_[attribute.id] = true;
    }
}

const std::string& NameBook::text(schema::NameId id) const {
    static const std::string kNothing;
    const auto at = texts_.find(id.value);
    return at == texts_.end() ? kNothing : at->second;
}

void NameBook::announce_again() {
    used_.reset();
    attributes_used_.reset();
    pending_ = {};
}

void NameBook::clear() {
    used_.reset();
    attributes_used_.reset();
    texts_.clear();
    pending_ = {};
}

}  // namespace ringside::agent
