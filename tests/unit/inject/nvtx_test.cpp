// NVTX without NVTX: a copy's tables made by hand, our functions called through them as the headers do.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "hooks.hpp"
#include "inject/sources/nvtx/calls.hpp"
#include "inject/sources/nvtx/handles.hpp"

using namespace ringside;
using namespace ringside::inject::nvtx;
using schema::RecordKind;
using test::Sandbox;
using test::SegmentView;

// NOLINTNEXTLINE(readability-identifier-naming): the interface's own name
extern "C" int InitializeInjectionNvtx2(GetExportTable get_table);

namespace {

void start_up_function() {}

/// One copy of NVTX: tables of pointers to its function pointers.
struct Copy {
    AnyFunction core[kCoreCount];
    AnyFunction core2[kCore2Count];
    AnyFunction* core_places[kCoreCount];
    AnyFunction* core2_places[kCore2Count];
    AnyFunction** core_table = core_places;
    AnyFunction** core2_table = core2_places;
    std::uint32_t core_size = kCoreCount;

    Copy() {
        for (std::uint32_t i = 0; i < kCoreCount; ++i) {
            core[i] = start_up_function;
            core_places[i] = i == 0 ? nullptr : &core[i];
        }
        for (std::uint32_t i = 0; i < kCore2Count; ++i) {
            core2[i] = start_up_function;
            core2_places[i] = i == 0 ? nullptr : &core2[i];
        }
    }
    template <class Function>
    Function* call(Core index) const {
        return reinterpret_cast<Function*>(core[index]);
    }
    template <class Function>
    Function* call(Core2 index) const {
        return reinterpret_cast<Function*>(core2[index]);
    }
};
Copy* g_copy = nullptr;

int module_table(std::uint32_t module, AnyFunction*** table, std::uint32_t* size) {
    if (module == kCoreModule) {
        *table = g_copy->core_table;
        *size = g_copy->core_size;
        return 1;
    }
    if (module != kCore2Module || g_copy->core2_table == nullptr) return 0;
    *table = g_copy->core2_table;
    *size = kCore2Count;
    return 1;
}

const void* get_table(std::uint32_t id) {
    static const CallbacksTable kCallbacks{sizeof kCallbacks, module_table};
    return id == kCallbacksTable ? &kCallbacks : nullptr;
}
const void* no_table(std::uint32_t) {
    return nullptr;
}

EventAttributes event(const char* text) {
    EventAttributes made{};
    made.version = 3;
    made.size = sizeof made;
    made.message_type = kMessageAscii;
    made.message = text;
    return made;
}

schema::SourceLevel level() {
    const auto& status =
        inject::g_process.header->sources[static_cast<std::uint32_t>(schema::SourceId::kNvtx)];
    return static_cast<schema::SourceLevel>(status.level.load());
}

}  // namespace

TEST_CASE("nvtx: every place of a copy that we know is taken, what we don't is left") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        Copy copy;
        g_copy = &copy;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        for (std::uint32_t i = 1; i < kCoreCount; ++i) EXPECT(copy.core[i] != start_up_function);
        EXPECT(copy.core2[kDomainResourceCreate] == start_up_function);
        EXPECT(copy.core2[kInitialize] == start_up_function);
        EXPECT(copy.core2[kDomainRangePop] != start_up_function);
        EXPECT(level() == schema::SourceLevel::kFull);
        // A second copy in the process, and an older one with a shorter table.
        Copy second;
        second.core_size = kRangePop + 1;
        g_copy = &second;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        EXPECT(second.core[kRangePop] == copy.core[kRangePop]);
        EXPECT(second.core[kNameCategoryA] == start_up_function);
    });
}

TEST_CASE("nvtx: no tables, no process that is traced: NVTX stays as it was") {
    Sandbox box;
    box.run([&] {
        Copy copy;
        g_copy = &copy;
        EXPECT(InitializeInjectionNvtx2(get_table) == 0);
        EXPECT(copy.core[kRangePushA] == start_up_function);
        EXPECT(box.load());
        EXPECT(InitializeInjectionNvtx2(no_table) == 0);
        EXPECT(InitializeInjectionNvtx2(nullptr) == 0);
        copy.core2_table = nullptr;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        EXPECT(level() == schema::SourceLevel::kDegraded);
    });
}

TEST_CASE("nvtx: with no capture on nothing is written, and what is returned is NVTX's own") {
    Sandbox box;
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        Copy copy;
        g_copy = &copy;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        EXPECT(copy.call<int(const char*)>(kRangePushA)("x") == -2);
        EXPECT(copy.call<int()>(kRangePop)() == -2);
        EXPECT(copy.call<RangeId(const char*)>(kRangeStartA)("x") == 0);
        copy.call<void(RangeId)>(kRangeEnd)(0);
    });
    CHECK(SegmentView(box.segment_of(pid)).header().lanes_in_use.load() == 0);
}

TEST_CASE("nvtx: attributes shorter than ours are read as far as they go") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        Copy copy;
        g_copy = &copy;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        EventAttributes made = event("whole");
        copy.call<void(const EventAttributes*)>(kMarkEx)(&made);
        made.size = 32;
        copy.call<void(const EventAttributes*)>(kMarkEx)(&made);
        copy.call<void(const EventAttributes*)>(kMarkEx)(nullptr);
        copy.call<void(const char*)>(kMarkA)(nullptr);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 4);
    CHECK(records[0].name == "whole");
    for (std::size_t i = 1; i < 4; ++i) CHECK(records[i].header.name == schema::kNoName);
}

TEST_CASE("nvtx: a registered string is the same name each time, another one with attributes") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        Copy copy;
        g_copy = &copy;
        EXPECT(InitializeInjectionNvtx2(get_table) == 1);
        const auto push = [&](Domain* domain, const EventAttributes& made) {
            EXPECT(copy.call<int(Domain*, const EventAttributes*)>(kDomainRangePushEx)(
                       domain, &made) == -2);
        };
        const auto pop = [&](Domain* domain) {
            EXPECT(copy.call<int(Domain*)>(kDomainRangePop)(domain) == -2);
        };
        Domain* one = make_domain("one", nullptr);
        Domain* two = make_domain("two", nullptr);
        EventAttributes made = event(nullptr);
        made.message_type = kMessageRegistered;
        made.message = make_string(one, "text", nullptr);
        EventAttributes coloured = made;
        coloured.colour_type = kColourArgb;
        coloured.colour = 7;
        for (int i = 0; i < 3; ++i) {
            push(one, made);
            // A string of the other domain, and one with a colour, are no less pushed.
            push(two, made);
            push(one, coloured);
            pop(one);
            pop(two);
            pop(one);
        }
        pop(one);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 9);
    for (std::size_t i = 0; i < 9; ++i) {
        CHECK(records[i].name == "text");
        CHECK(records[i].header.name == records[i % 3].header.name);
    }
    CHECK(records[0].header.name != records[1].header.name);
    CHECK(records[1].header.name != records[2].header.name);
    CHECK(records[0].header.name != records[2].header.name);
}

TEST_CASE("nvtx: one domain and one string a text; a category without a name is its number") {
    Sandbox box;
    box.run([&] {
        Domain* domain = make_domain("d", nullptr);
        EXPECT(domain != nullptr && domain == make_domain("d", nullptr));
        EXPECT(domain != make_domain("e", nullptr) && domain != make_domain("d", &box));
        RegisteredString* text = make_string(domain, "s", nullptr);
        EXPECT(text == make_string(domain, "s", nullptr));
        EXPECT(text != make_string(nullptr, "s", nullptr));
        EXPECT(category_text(domain, 0) == nullptr);
        EXPECT(std::string(category_text(domain, 7)) == "7");
        name_category(domain, 7, "seven");
        EXPECT(std::string(category_text(domain, 7)) == "seven");
        EXPECT(std::string(category_text(nullptr, 7)) == "7");
    });
}
