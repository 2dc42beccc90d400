// Input shapes and CPU memory: which range has them, the table's columns, the trace's arguments.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sample_job.hpp"
#include "schema/control_page.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
namespace schema = ringside::schema;

namespace {

/// One lane: linear holds addmm twice, of other shapes; memory comes before, in and after them. Times in us.
void write_job(const std::filesystem::path& path, std::uint32_t options) {
    DumpMaker dump("n0", 1, options);
    dump.process(0, 100);
    LaneMaker& lane = dump.lane(0, 0, 7);
    lane.memory(500, 0x10, 64);
    lane.memory(1'500, 0x20, 100);
    lane.memory(2'500, 0x30, 2048);
    lane.op("aten::addmm", 2'000, 3'000, -1, 1, 0, 0, "[[4], [5, 16], []]");
    lane.memory(4'500, 0x40, 3 * 1024 * 1024);
    lane.memory(4'600, 0x30, -2048);
    lane.op("aten::addmm", 4'000, 5'000, -1, 1, 0, 0, "[[4], [1, 16], []]");
    lane.op("aten::linear", 1'000, 6'000, -1, 1, 0, 0, "[[5, 16], [4, 16], [4]]");
    lane.memory(7'000, 0x20, -100);
    dump.footer(9'000);
    dump.write(path / "n0.rsd");
}

constexpr std::uint32_t kBoth = schema::capture_options(true, true);

// Checked against torch 2.15's own _build_table on the same rows.
constexpr const char* kGolden =
    R"(----------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ---------------------------  
            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem  Self CPU Mem    # of Calls                 Input Shapes  
----------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ---------------------------  
        [memory]         0.00%       0.000us         0.00%       0.000us       0.000us         -36 B         -36 B             2                           []  
    aten::linear        60.00%       3.000us       100.00%       5.000us       5.000us       3.00 MB         100 B             1      [[5, 16], [4, 16], [4]]  
     aten::addmm        20.00%       1.000us        20.00%       1.000us       1.000us       2.00 KB       2.00 KB             1           [[4], [5, 16], []]  
     aten::addmm        20.00%       1.000us        20.00%       1.000us       1.000us       3.00 MB       3.00 MB             1           [[4], [1, 16], []]  
----------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ---------------------------  
Self CPU time total: 5.000us
)";

}  // namespace

TEST_CASE("memory: rows by input shapes, memory inside and of its own, as torch prints them") {
    TemporaryDirectory directory;
    write_job(directory.path(), kBoth);
    const auto text = render_table(loaded(directory.path()), {});
    REQUIRE(text);
    CHECK(text->substr(0, text->find("RPCs:")) == kGolden);
}

TEST_CASE("memory: a column is there only for what was asked for") {
    TemporaryDirectory directory;
    write_job(directory.path(), 0);
    const auto text = render_table(loaded(directory.path()), {});
    REQUIRE(text);
    CHECK(text->find("CPU Mem") == std::string::npos);
}

TEST_CASE("memory: rows sort by it, and JSON has it in bytes") {
    TemporaryDirectory directory;
    write_job(directory.path(), kBoth);
    const auto text = table_json(loaded(directory.path()), {.sort_by = "self_cpu_memory_usage"});
    REQUIRE(text);
    const auto json = nlohmann::json::parse(*text);
    CHECK(json["rows"][0]["input_shapes"] == "[[4], [1, 16], []]");
    CHECK(json["rows"][0]["self_cpu_memory_usage"] == 3 * 1024 * 1024 - 2048);
    CHECK(json["rows"][3]["name"] == "[memory]");
    CHECK(json["rows"][2]["cpu_memory_usage"] == 100 + 3 * 1024 * 1024);
}

TEST_CASE("memory: in the trace shapes are lists, whatever is none is text; memory is Kineto's") {
    TemporaryDirectory directory;
    DumpMaker dump("n0", 1, kBoth);
    dump.process(0, 100);
    LaneMaker& lane = dump.lane(0, 0, 7);
    const std::vector<std::string> texts = {"[[4], [5, 16], []]", "[]",     "[...]",  "[[4]",
                                            "[[4],[5]]",          "[[04]]", "[[4]]]", "[[\"4\"]]"};
    for (std::size_t i = 0; i < texts.size(); ++i)
        lane.op("op" + std::to_string(i), 1'000 * i, 1'000 * i + 500, -1, 1, 0, 0, texts[i]);
    lane.memory(9'000, 0x30, -2048);
    lane.memory(9'100, 0x30, -2048, true);
    dump.footer(10'000);
    dump.write(directory / "n0.rsd");
    const std::filesystem::path target = directory / "trace.json";
    REQUIRE(write_chrome(loaded(directory / "n0.rsd"), target, {}));
    const auto json = nlohmann::json::parse(read_text(target));
    std::size_t seen = 0;
    std::vector<int> devices;
    for (const auto& event : json["traceEvents"]) {
        const std::string name = event.value("name", "");
        if (name.starts_with("op")) {
            const std::size_t i = std::stoul(name.substr(2));
            const auto& dims = event["args"]["Input Dims"];
            CHECK(dims.is_array() == (i < 2));
            if (i >= 2) CHECK(dims == texts[i]);
            ++seen;
        }
        if (name == "[memory]") {
            CHECK(event["args"]["Bytes"] == -2048);
            CHECK(event["args"]["Addr"] == 0x30);
            devices.push_back(event["args"]["Device Type"]);
            ++seen;
        }
    }
    CHECK(seen == texts.size() + 2);
    CHECK(devices == std::vector<int>{0, 1});
}
