#include "agent/drain/name_book.hpp"

namespace ringside::agent {

void NameBook::first_use(MappedSegment& segment, std::uint32_t id) {
    if (id == schema::kNoName.value || id == schema::kInlineName.value) return;
    if (id > schema::kNameEntries) return segment.count_violation();
    used_[id - 1] = true;
    auto name = segment.name_of({id});
    if (!name) return;
    texts_[id] = name->text;
    const std::uint16_t attribute = name->attribute;
    pending_.names.push_back(std::move(*name));
    if (attribute == 0) return;
    if (attribute > schema::kAttributeEntries) return segment.count_violation();
    if (attributes_used_[attribute]) return;
    attributes_used_[attribute] = true;
    const auto extras = segment.attribute_of({attribute});
    if (!extras) return;
    pending_.attributes.push_back(*extras);
    // Each step marks a name or an attribute that was not marked, so hostile cycles end.
    use(segment, extras->domain);
    use(segment, extras->category);
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
