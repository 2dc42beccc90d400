// Which mutex is torch's of its callbacks: one alone, whatever else was locked makes it none.
#include <doctest/doctest.h>

#include "inject/sources/torch/callbacks_lock.hpp"

using ringside::inject::torch::OneMutex;

TEST_CASE("callbacks' lock: one that is locked several times is it; none, or two, are none") {
    int a = 0, b = 0;
    OneMutex seen;
    CHECK(seen.get() == nullptr);
    seen.saw(&a);
    seen.saw(&a);
    CHECK(seen.get() == &a);
    seen.saw(&b);
    CHECK(seen.get() == nullptr);
    seen.saw(&b);
    CHECK(seen.get() == nullptr);
}
