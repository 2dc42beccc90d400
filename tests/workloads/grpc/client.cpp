// gRPC's C++ clients: sync, async (a completion queue), callback. Prints what it has called: `Service Method api count`.
//   grpc_client ADDRESS all THREADS CALLS    every kind of call, by every API, at every server; CALLS in all
//   grpc_client ADDRESS WHAT                 one call of a kind of its own, below
//   grpc_client ADDRESS unary CALLS       a block of unary calls a line of input, in ns each; `header`: with a traceparent
#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "calls.grpc.pb.h"

namespace {

using calls::Text;
using grpc::ClientContext;
using grpc::CompletionQueue;
using grpc::Status;

constexpr int kMessages = 3;
constexpr std::array kServices = {"SyncServer", "AsyncServer", "CallbackServer"};
constexpr std::array kKinds = {"Unary", "ServerStream", "ClientStream", "Bidi"};
constexpr std::array kApis = {"sync", "async", "callback"};
std::atomic<int> g_made[kServices.size()][kKinds.size()][kApis.size()];

void require(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "grpc_client: %s\n", what);
    std::_Exit(1);
}

void require(const Status& status) {
    require(status.ok(), status.error_message().c_str());
}

const Text& question() {
    static const Text kText = [] {
        Text made;
        made.set_text("question");
        return made;
    }();
    return kText;
}

// --- sync ---

template <class Stub>
void call_sync(Stub& stub, int kind) {
    ClientContext context;
    Text text;
    if (kind == 0) return require(stub.Unary(&context, question(), &text));
    if (kind == 1) {
        const auto stream = stub.ServerStream(&context, question());
        while (stream->Read(&text)) continue;
        return require(stream->Finish());
    }
    if (kind == 2) {
        const auto stream = stub.ClientStream(&context, &text);
        for (int i = 0; i < kMessages; ++i) stream->Write(question());
        stream->WritesDone();
        return require(stream->Finish());
    }
    const auto stream = stub.Bidi(&context);
    for (int i = 0; i < kMessages; ++i) {
        stream->Write(question());
        stream->Read(&text);
    }
    stream->WritesDone();
    require(stream->Finish());
}

// --- async ---

bool next(CompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    require(queue.Next(&tag, &ok), "its queue has shut down");
    return ok;
}

template <class Stub>
void call_async(Stub& stub, int kind) {
    ClientContext context;
    CompletionQueue queue;
    Text text;
    Status status;
    void* const tag = &text;
    if (kind == 0) {
        const auto call = stub.AsyncUnary(&context, question(), &queue);
        call->Finish(&text, &status, tag);
        next(queue);
    } else if (kind == 1) {
        const auto stream = stub.AsyncServerStream(&context, question(), &queue, tag);
        next(queue);
        do stream->Read(&text, tag);
        while (next(queue));
        stream->Finish(&status, tag);
        next(queue);
    } else if (kind == 2) {
        const auto stream = stub.AsyncClientStream(&context, &text, &queue, tag);
        next(queue);
        for (int i = 0; i < kMessages; ++i) {
            stream->Write(question(), tag);
            next(queue);
        }
        stream->WritesDone(tag);
        next(queue);
        stream->Finish(&status, tag);
        next(queue);
    } else {
        const auto stream = stub.AsyncBidi(&context, &queue, tag);
        next(queue);
        for (int i = 0; i < kMessages; ++i) {
            stream->Write(question(), tag);
            next(queue);
            stream->Read(&text, tag);
            next(queue);
        }
        stream->WritesDone(tag);
        next(queue);
        stream->Finish(&status, tag);
        next(queue);
    }
    require(status);
}

// --- callback ---

struct Reader final : grpc::ClientReadReactor<Text> {
    Text text;
    std::promise<Status> done;
    void OnReadDone(bool ok) override {
        if (ok) StartRead(&text);
    }
    void OnDone(const Status& status) override { done.set_value(status); }
};

struct Writer final : grpc::ClientWriteReactor<Text> {
    int left = kMessages;
    std::promise<Status> done;
    void next() { left-- > 0 ? StartWrite(&question()) : StartWritesDone(); }
    void OnWriteDone(bool) override { next(); }
    void OnDone(const Status& status) override { done.set_value(status); }
};

struct Both final : grpc::ClientBidiReactor<Text, Text> {
    Text text;
    int left = kMessages;
    std::promise<Status> done;
    void next() { left-- > 0 ? StartWrite(&question()) : StartWritesDone(); }
    void OnWriteDone(bool ok) override {
        if (ok) StartRead(&text);
    }
    void OnReadDone(bool ok) override {
        if (ok) next();
    }
    void OnDone(const Status& status) override { done.set_value(status); }
};

template <class Stub>
void call_back(Stub& stub, int kind) {
    ClientContext context;
    Text text;
    if (kind == 0) {
        std::promise<Status> done;
        stub.async()->Unary(&context, &question(), &text,
                            [&](const Status& status) { done.set_value(status); });
        require(done.get_future().get());
    } else if (kind == 1) {
        Reader reader;
        stub.async()->ServerStream(&context, &question(), &reader);
        reader.StartRead(&reader.text);
        reader.StartCall();
        require(reader.done.get_future().get());
    } else if (kind == 2) {
        Writer writer;
        stub.async()->ClientStream(&context, &text, &writer);
        writer.next();
        writer.StartCall();
        require(writer.done.get_future().get());
    } else {
        Both both;
        stub.async()->Bidi(&context, &both);
        both.next();
        both.StartCall();
        require(both.done.get_future().get());
    }
}

template <class Stub>
void make(Stub& stub, int service, int kind, int api) {
    g_made[service][kind][api].fetch_add(1, std::memory_order_relaxed);
    if (api == 0) return call_sync(stub, kind);
    if (api == 1) return call_async(stub, kind);
    call_back(stub, kind);
}

void call_all(const std::shared_ptr<grpc::Channel>& channel, int first, int calls) {
    const auto sync = calls::SyncServer::NewStub(channel);
    const auto async = calls::AsyncServer::NewStub(channel);
    const auto callback = calls::CallbackServer::NewStub(channel);
    for (int i = first; i < first + calls; ++i) {
        const int service = i % 3, kind = i / 3 % 4, api = i / 12 % 3;
        if (service == 0) make(*sync, service, kind, api);
        if (service == 1) make(*async, service, kind, api);
        if (service == 2) make(*callback, service, kind, api);
    }
}

void print_made() {
    for (std::size_t service = 0; service < kServices.size(); ++service)
        for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
            for (std::size_t api = 0; api < kApis.size(); ++api)
                std::printf("%s %s %s %d\n", kServices[service], kKinds[kind], kApis[api],
                            g_made[service][kind][api].load());
}

// --- one of a kind ---

constexpr char kOwn[] = "00-0123456789abcdef0123456789abcdef-fedcba9876543210-01";

/// Until the server serves the call of Patient with this text.
void await_arrival(calls::SyncServer::Stub& stub, const Text& asked) {
    ClientContext context;
    Text nothing;
    require(stub.Arrived(&context, asked, &nothing));
}

int call_one(const std::shared_ptr<grpc::Channel>& channel, const std::string& what,
             const std::string& more) {
    using std::chrono::system_clock;
    const auto stub = calls::SyncServer::NewStub(channel);
    ClientContext context;
    Text text, asked = question();
    Status status;
    if (what == "own") context.AddMetadata("traceparent", kOwn);
    if (what == "chain") asked.set_text(more);
    if (what == "cancel" || what == "leave") asked.set_text(what);
    if (what == "own" || what == "kept") {
        status = stub->Kept(&context, asked, &text);
    } else if (what == "chain") {
        status = stub->Chain(&context, asked, &text);
    } else if (what == "fail") {
        status = stub->Fail(&context, asked, &text);
    } else if (what == "deadline") {
        context.set_deadline(system_clock::now() + std::chrono::milliseconds(200));
        status = stub->Patient(&context, asked, &text);
    } else if (what == "cancel") {
        std::promise<void> done;
        stub->async()->Patient(&context, &asked, &text, [&](const Status& told) {
            status = told;
            done.set_value();
        });
        await_arrival(*stub, asked);
        context.TryCancel();
        done.get_future().wait();
    } else if (what == "abandon") {
        // A stream that is dropped without being asked for its status.
        const auto streams = calls::SyncServer::NewStub(channel);
        const auto stream = streams->Bidi(&context);
        stream->Write(asked);
        stream->Read(&text);
        context.TryCancel();
    } else if (what == "patient") {
        status = stub->Patient(&context, asked, &text);
    } else if (what == "leave") {
        // Nobody waits for the answer.
        stub->async()->Patient(&context, &asked, &text, [](const Status&) {});
        await_arrival(*stub, asked);
        std::fflush(stdout);
        std::_Exit(0);
    } else {
        require(false, "what is no call of ours");
    }
    std::printf("%d %s\n", static_cast<int>(status.error_code()), text.text().c_str());
    return 0;
}

int time_unary(const std::shared_ptr<grpc::Channel>& channel, int calls, bool header) {
    using std::chrono::steady_clock;
    const auto stub = calls::SyncServer::NewStub(channel);
    Text text;
    const auto begin = steady_clock::now();
    for (int i = 0; i < calls; ++i) {
        ClientContext context;
        if (header) {
            char own[64];
            std::snprintf(own, sizeof own, "00-%032x-%016x-01", i * 7919 + 1, i + 1);
            context.AddMetadata("traceparent", own);
        }
        require(stub->Unary(&context, question(), &text));
    }
    const std::chrono::nanoseconds spent = steady_clock::now() - begin;
    std::printf("%.1f\n", static_cast<double>(spent.count()) / calls);
    std::fflush(stdout);
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    require(count >= 3, "usage: grpc_client ADDRESS all THREADS CALLS | WHAT [ADDRESS]");
    const std::string what = arguments[2];
    const auto channel = grpc::CreateChannel(arguments[1], grpc::InsecureChannelCredentials());
    if (what == "unary") {
        // A block for each line that comes: whoever measures decides when, and which.
        const int calls = std::atoi(arguments[3]);
        for (char line[16]; std::fgets(line, sizeof line, stdin) != nullptr;)
            time_unary(channel, calls, std::strcmp(line, "header\n") == 0);
        return 0;
    }
    if (what != "all") return call_one(channel, what, count > 3 ? arguments[3] : "");
    const int threads = std::atoi(arguments[3]), each = std::atoi(arguments[4]) / threads;
    std::vector<std::thread> callers;
    for (int i = 0; i < threads; ++i)
        callers.emplace_back([&, i] { call_all(channel, i * each, each); });
    for (std::thread& caller : callers) caller.join();
    print_made();
    return 0;
}
