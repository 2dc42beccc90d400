// Kernels' names: as they were written, and bombs.
#include <doctest/doctest.h>

#include <string>

#include "viewer_export/model/kernel_names.hpp"
#include "viewer_export/model/work_name.hpp"

using namespace ringside::viewer_export::model;

namespace {

/// The n-th reference.
std::string reference(int n) {
    constexpr const char* kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return n == 0 ? "S_" : std::string("S") + kDigits[n - 1] + "_";
}

/// f(A<int, int>, A<A<int, int>, A<int, int> >, ...): each parameter is twice the one before it.
std::string doubling(int levels) {
    std::string name = "_Z1f1AIiiE";
    for (int i = 1; i <= levels; ++i) name += "S_I" + reference(i) + reference(i) + "E";
    return name;
}

/// A<A<...<int, int>...>, the same> as one type, after `prefix`.
std::string nested(const std::string& prefix, int levels) {
    std::string name = prefix + "1AI";
    for (int i = 1; i < levels; ++i) name += "S_I";
    name += "iiE";
    for (int i = 1; i < levels; ++i) name += reference(i) + "E";
    return name;
}

}  // namespace

TEST_CASE("kernel names: communication is what HolisticTraceAnalysis takes for it") {
    CHECK(is_communication("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)"));
    CHECK(is_communication("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"));
    CHECK(is_communication(
        demangled("_Z35ncclDevKernel_AllGather_RING_LL_Sum20ncclDevKernelStorage")));
    CHECK_FALSE(is_communication("void ncclKernel<1>()"));  // HTA looks at the name's begin
    CHECK_FALSE(is_communication("ncclInit"));
    CHECK_FALSE(is_communication("ampere_sgemm"));
}

TEST_CASE("kernel names: what a compiler mangled is told as it was written, the rest as it is") {
    CHECK(demangled("_Z3addPf") == "add(float*)");
    CHECK(demangled("_Z3addIJfiEEvDpT_") == "void add<float, int>(float, int)");
    CHECK(demangled("ampere_sgemm") == "ampere_sgemm");
    CHECK(demangled("i") == "i");  // a type to the demangler, a name to us
    CHECK(demangled("_Znothing") == "_Znothing");
    const std::string text(2000, 'a');  // longer than what __cxa_demangle takes
    CHECK(demangled("_Z2000" + text + "v") == text + "()");
    CHECK(demangled(doubling(4)).size() > 500);
}

TEST_CASE("kernel names: a few bytes that are short for gigabytes stay as they are") {
    for (const int levels : {12, 30}) {
        CHECK(demangled(doubling(levels)) == doubling(levels));
        CHECK(demangled(nested("_Z1f", levels)) == nested("_Z1f", levels));
    }
    // Nothing would be written for hours.
    CHECK(demangled(nested("_Z1fDp", 34)) == nested("_Z1fDp", 34));
}

TEST_CASE("kernel names: what nests very deep stays as it is") {
    const std::string pointers = "_Z1f" + std::string(8000, 'P') + "i";
    CHECK(demangled(pointers) == pointers);
    const std::string longer = "_Z9000" + std::string(9000, 'a') + "v";
    CHECK(demangled(longer) == longer);
}

TEST_CASE("kernel names: each kernel's is found out once, whatever else is asked in between") {
    Names names;
    GpuWork add{};
    add.kind = ringside::schema::RecordKind::kGpuKernel;
    add.name = names.add("_Z3addPf");
    GpuWork reduce = add;
    reduce.name = names.add("_Z29ncclDevKernel_AllGather_RING_v");
    GpuWork memset{};
    memset.kind = ringside::schema::RecordKind::kGpuMemset;
    memset.detail = 3;
    WorkNames work(names);
    const std::string_view first = work.of(add);
    CHECK(work.of(memset) == "Memset (Device)");
    CHECK(work.communicates(reduce));
    CHECK_FALSE(work.communicates(add));
    CHECK_FALSE(work.communicates(memset));
    CHECK(work.of(add).data() == first.data());
    CHECK(first == "add(float*)");
}
