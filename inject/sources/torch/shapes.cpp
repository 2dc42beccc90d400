#include "inject/sources/torch/shapes.hpp"

#include <dlfcn.h>

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/sources/torch/abi.hpp"

namespace ringside::inject::torch {
namespace {

constexpr char kShapesTooLong[] = "[...]";

/// libstdc++'s std::vector.
template <class T>
struct Vector {
    T* begin;
    T* end;
    T* capacity;
};
using Sizes = Vector<std::int64_t>;

// std::vector<std::vector<int64_t>> inputSizes(const RecordFunction&, bool flatten_list_enabled)
Vector<Sizes>* (*g_input_sizes)(Vector<Sizes>* result, const void* range, bool flatten);

// void operator delete(void*), as torch's own calls of it are bound: to the C++ runtime's, or to that of a tool (AddressSanitizer) that wants
// to see again what its operator new gave.
void (*g_delete)(void*);
constexpr char kDelete[] = "_ZdlPv";
constexpr SlotSet kRuntime = {{"libstdc++.so"}, {}, nullptr, 0};

/// Text in a fixed room, cut where it is full.
class Writer {
public:
    explicit Writer(ShapesText* out) : out_(out) { out_->length = 0; }
    void character(char c) {
        if (out_->length < sizeof out_->text) out_->text[out_->length++] = c;
    }
    void number(std::int64_t value) {
        char digits[20];
        std::uint32_t count = 0;
        std::uint64_t rest = static_cast<std::uint64_t>(value);
        if (value < 0) {
            character('-');
            rest = ~rest + 1;
        }
        do {
            digits[count++] = static_cast<char>('0' + rest % 10);
            rest /= 10;
        } while (rest != 0);
        while (count != 0) character(digits[--count]);
    }
    void separator() {
        character(',');
        character(' ');
    }
    bool full() const { return out_->length == sizeof out_->text; }

private:
    ShapesText* out_;
};

void write_sizes(Writer& writer, const Sizes& sizes) {
    writer.character('[');
    for (const std::int64_t* size = sizes.begin; size != sizes.end; ++size) {
        if (size != sizes.begin) writer.separator();
        writer.number(*size);
    }
    writer.character(']');
}

}  // namespace

bool prepare_shapes(const SlotSet& libraries) {
    void* const found = find_symbol(libraries, kInputSizes);
    if (found != nullptr) std::memcpy(&g_input_sizes, &found, sizeof found);
    // As the loader binds: the global scope first; a torch that was loaded RTLD_LOCAL has its runtime elsewhere.
    void* remove = real_dlsym()(RTLD_DEFAULT, kDelete);
    if (remove == nullptr) remove = find_symbol(kRuntime, kDelete);
    if (remove != nullptr) std::memcpy(&g_delete, &remove, sizeof remove);
    return g_input_sizes != nullptr && g_delete != nullptr;
}

void read_shapes(const char* range, ShapesText* out) {
    Vector<Sizes> inputs{};
    g_input_sizes(&inputs, range, false);
    Writer writer(out);
    writer.character('[');
    for (Sizes* sizes = inputs.begin; sizes != inputs.end; ++sizes) {
        if (sizes != inputs.begin) writer.separator();
        write_sizes(writer, *sizes);
        g_delete(sizes->begin);
    }
    g_delete(inputs.begin);
    writer.character(']');
    if (writer.full()) {
        std::memcpy(out->text, kShapesTooLong, sizeof kShapesTooLong - 1);
        out->length = sizeof kShapesTooLong - 1;
    }
}

NameId intern_shapes(ThreadLane& lane, const ShapesText& shapes) {
    if (shapes.length == 0) return schema::kNoName;
    return label_of(lane.intern(shapes.text, shapes.length));
}

}  // namespace ringside::inject::torch
