// An ordinary CUDA program whose work is known: which kernels, copies and memsets, in which order, on which streams, and for how long.
//   program work FILE   all of it; FILE: what was done and how long it took, by the GPU's own clocks, as JSON
//   program wait DIR    100 kernels, waited for; says DIR/worked; at DIR/go one kernel of 5 s, says DIR/spinning; ends at DIR/end
//   program serve       a line with a number in: so many empty kernels; a line out: ns a launch
#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "ringside.h"

struct Times {
    long long clock_begin, clock_end;
    unsigned long long global_begin, global_end;
};

namespace {

__device__ unsigned long long globaltimer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

__device__ void spin(Times* out, long long cycles) {
    const unsigned long long global_begin = globaltimer();
    const long long begin = clock64();
    long long now = begin;
    while (now - begin < cycles) now = clock64();
    *out = {begin, now, global_begin, globaltimer()};
}

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "program: %s: %s\n", what, cudaGetErrorString(status));
    std::exit(3);
}
#define CHECK(call) check((call), #call)

}  // namespace

extern "C" __global__ void nothing() {}
extern "C" __global__ void spin_plain(Times* out, long long cycles) {
    spin(out, cycles);
}
extern "C" __global__ void spin_other(Times* out, long long cycles) {
    spin(out, cycles);
}
extern "C" __global__ void graph_first(Times* out, long long cycles) {
    spin(out, cycles);
}
extern "C" __global__ void graph_second(Times* out, long long cycles) {
    spin(out, cycles);
}
template <int number>
__global__ void turned(Times* out, long long cycles) {
    spin(out, cycles + number);
}
constexpr char kTurned[] = "_Z6turnedILi7EEvP5Timesx";

namespace {

/// One piece of work, as the program knows it.
struct Work {
    const char* what;
    std::string name;
    int stream;
    long long times;  // where its times are; -1: none
    long long bytes;
    int value;
    const char* range;
};

class Program {
public:
    Program() {
        int khz = 0;
        CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
        cycles_a_us_ = khz / 1000;
        CHECK(cudaMalloc(&times_, kRoom * sizeof(Times)));
        for (cudaStream_t& stream : streams_)
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        // The clocks come to rest.
        launch(spin_plain, "spin_plain", 0, 300000);
        CHECK(cudaDeviceSynchronize());
    }

    void durations() {
        begin("durations");
        for (int round = 0; round < 3; ++round) {
            for (long long us : {50, 5, 2000, 0, 10, 500, 20, 0, 5000, 100, 1000, 200, 0}) {
                if (us == 0) {
                    nothing<<<1, 1, 0, streams_[0]>>>();
                    note({"kernel", "nothing", 0, -1, 0, 0, range_});
                } else if (us == 10) {
                    launch(turned<7>, kTurned, 0, us);
                } else {
                    launch(us % 3 == 0 ? spin_other : spin_plain,
                           us % 3 == 0 ? "spin_other" : "spin_plain", 0, us);
                }
            }
        }
        end();
    }

    void several_streams() {
        begin("streams");
        for (int i = 0; i < 8; ++i)
            for (int stream = 0; stream < kStreams; ++stream)
                launch(spin_other, "spin_other", stream, 200);
        end();
    }

    void copies() {
        char *host = nullptr, *device = nullptr;
        constexpr std::size_t kRoom = 4 << 20;
        CHECK(cudaMallocHost(&host, kRoom));
        CHECK(cudaMalloc(&device, 2 * kRoom));
        begin("copies");
        for (std::size_t bytes : {std::size_t{4096}, std::size_t{1} << 20, kRoom}) {
            CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams_[1]));
            note({"copy", "HtoD", 1, -1, static_cast<long long>(bytes), 0, range_});
            CHECK(cudaMemcpyAsync(device + kRoom, device, bytes, cudaMemcpyDeviceToDevice,
                                  streams_[1]));
            note({"copy", "DtoD", 1, -1, static_cast<long long>(bytes), 0, range_});
            CHECK(
                cudaMemcpyAsync(host, device + kRoom, bytes, cudaMemcpyDeviceToHost, streams_[1]));
            note({"copy", "DtoH", 1, -1, static_cast<long long>(bytes), 0, range_});
        }
        CHECK(cudaMemsetAsync(device, 0x5a, 1 << 20, streams_[2]));
        note({"memset", "", 2, -1, 1 << 20, 0x5a, range_});
        end();
        CHECK(cudaFree(device));
        CHECK(cudaFreeHost(host));
    }

    void graph() {
        cudaGraph_t graph;
        cudaGraphExec_t ready;
        CHECK(cudaStreamBeginCapture(streams_[3], cudaStreamCaptureModeGlobal));
        graph_first<<<1, 1, 0, streams_[3]>>>(&times_[used_], 30 * cycles_a_us_);
        graph_second<<<1, 1, 0, streams_[3]>>>(&times_[used_ + 1], 60 * cycles_a_us_);
        graph_first<<<1, 1, 0, streams_[3]>>>(&times_[used_ + 2], 30 * cycles_a_us_);
        used_ += 3;
        CHECK(cudaStreamEndCapture(streams_[3], &graph));
        CHECK(cudaGraphInstantiate(&ready, graph, 0ull));
        begin("graph");
        for (int i = 0; i < 5; ++i) {
            CHECK(cudaGraphLaunch(ready, streams_[3]));
            for (const char* name : {"graph_first", "graph_second", "graph_first"})
                note({"graph kernel", name, 3, -1, 0, 0, range_});
        }
        end();
        CHECK(cudaGraphExecDestroy(ready));
        CHECK(cudaGraphDestroy(graph));
    }

    void events() {
        cudaEvent_t first, second;
        CHECK(cudaEventCreate(&first));
        CHECK(cudaEventCreate(&second));
        begin("events");
        CHECK(cudaEventRecord(first, streams_[0]));
        launch(spin_plain, "spin_plain", 0, 100);
        CHECK(cudaEventRecord(second, streams_[0]));
        CHECK(cudaStreamWaitEvent(streams_[1], second, 0));
        CHECK(cudaEventSynchronize(second));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, first, second));
        for (int i = 0; i < 2; ++i) note({"event", "", 0, -1, 0, 0, range_});
        end();
    }

    void write(const char* path) {
        cudaDeviceProp properties;
        CHECK(cudaGetDeviceProperties(&properties, 0));
        int driver = 0, runtime = 0;
        CHECK(cudaRuntimeGetVersion(&runtime));
        CHECK(cudaDriverGetVersion(&driver));
        std::vector<Times> times(kRoom);
        CHECK(cudaMemcpy(times.data(), times_, kRoom * sizeof(Times), cudaMemcpyDeviceToHost));
        FILE* out = std::fopen(path, "w");
        if (out == nullptr) std::exit(4);
        std::fprintf(
            out,
            "{\"device\": \"%s\", \"processors\": %d, \"capability\": \"%d.%d\", \"driver\": %d, "
            "\"runtime\": %d, \"streams\": %d, \"clock_mhz\": %lld, \"work\": [",
            properties.name, properties.multiProcessorCount, properties.major, properties.minor,
            driver, runtime, kStreams, cycles_a_us_);
        for (std::size_t i = 0; i < work_.size(); ++i) {
            const Work& one = work_[i];
            std::fprintf(out,
                         "%s\n {\"what\": \"%s\", \"name\": \"%s\", \"stream\": %d, \"bytes\": "
                         "%lld, \"value\": %d, \"range\": \"%s\"",
                         i ? "," : "", one.what, one.name.c_str(), one.stream, one.bytes, one.value,
                         one.range);
            if (one.times >= 0) {
                const Times& at = times[one.times];
                std::fprintf(out,
                             ", \"cycles\": %lld, \"global_begin\": %llu, \"global_end\": %llu",
                             at.clock_end - at.clock_begin, at.global_begin, at.global_end);
            }
            std::fprintf(out, "}");
        }
        std::fprintf(out, "]}\n");
        if (std::fclose(out) != 0) std::exit(4);
    }

    void quick(int count) {
        for (int i = 0; i < count; ++i) nothing<<<1, 1, 0, streams_[0]>>>();
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    }
    /// @return ns a launch
    double block(int count) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < count; ++i) nothing<<<1, 1, 0, streams_[0]>>>();
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - start;
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        return took.count() / count;
    }
    void start_long() {
        spin_plain<<<1, 1, 0, streams_[0]>>>(&times_[used_++], 5000000 * cycles_a_us_);
        CHECK(cudaGetLastError());
    }

private:
    static constexpr int kStreams = 4, kRoom = 4096;

    void begin(const char* name) {
        range_ = name;
        ringside_range_push(name);
    }
    void end() {
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        ringside_range_pop();
        range_ = "";
    }
    void note(Work one) { work_.push_back(std::move(one)); }
    void launch(void (*kernel)(Times*, long long), const char* name, int stream, long long us) {
        kernel<<<1, 1, 0, streams_[stream]>>>(&times_[used_], us * cycles_a_us_);
        note({"kernel", name, stream, used_++, 0, 0, range_});
    }

    long long cycles_a_us_ = 0, used_ = 0;
    Times* times_ = nullptr;
    cudaStream_t streams_[kStreams] = {};
    const char* range_ = "";
    std::vector<Work> work_;
};

bool there(const std::string& path) {
    return access(path.c_str(), F_OK) == 0;
}
void say(const std::string& path) {
    if (FILE* made = std::fopen(path.c_str(), "w")) std::fclose(made);
}

}  // namespace

int main(int count, char** words) {
    const std::string verb = count > 1 ? words[1] : "";
    Program program;
    if (verb == "work" && count == 3) {
        program.durations();
        program.several_streams();
        program.copies();
        program.graph();
        program.events();
        program.write(words[2]);
    } else if (verb == "wait" && count == 3) {
        const std::string folder = std::string(words[2]) + "/";
        program.quick(100);
        say(folder + "worked");
        for (bool went = false; !there(folder + "end"); usleep(2000)) {
            if (went || !there(folder + "go")) continue;
            went = true;
            program.start_long();
            say(folder + "spinning");
        }
    } else if (verb == "serve") {
        for (std::string line; std::getline(std::cin, line);)
            std::cout << program.block(std::stoi(line)) << std::endl;
    } else {
        std::fprintf(stderr, "program work FILE | wait DIR | serve\n");
        return 2;
    }
    return 0;
}
