// Runs operators in the first line of main and ends: what attaches late misses them.
//   first_line          nothing else
//   first_line count    counts them by a RecordFunction callback of its own, and prints "count NAME N"
#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

namespace {
std::map<std::string, int> counts;

std::unique_ptr<at::ObserverContext> count_one(const at::RecordFunction& function) {
    ++counts[function.name()];
    return nullptr;
}

int run_operators() {
    at::Tensor sum = at::zeros({4});
    for (int i = 0; i < 10; ++i) sum = at::add(sum, at::ones({4}));
    at::mul(sum, sum).sum();
    return static_cast<int>(sum.size(0));
}
}  // namespace

int main(int argc, char** argv) {
    const bool counting = argc > 1 && std::strcmp(argv[1], "count") == 0;
    if (counting) at::addGlobalCallback(at::RecordFunctionCallback(count_one));
    const int size = run_operators();
    for (const auto& [name, count] : counts) std::printf("count %s\t%d\n", name.c_str(), count);
    return size == 4 ? 0 : 1;
}
