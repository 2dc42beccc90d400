// gRPC's C++ servers: sync, async (a completion queue of its own), callback. Prints its port, then at SIGTERM what it has served:
// `Service Method count`.
//   grpc_server             until SIGTERM
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "calls.grpc.pb.h"

namespace {

using calls::Text;
using grpc::Status;

constexpr int kReplies = 3;

enum Kind {
    kUnary,
    kServerStream,
    kClientStream,
    kBidi,
    kChain,
    kFail,
    kPatient,
    kArrived,
    kKept,
    kKinds
};
constexpr std::array kNames = {"Unary", "ServerStream", "ClientStream", "Bidi", "Chain",
                               "Fail",  "Patient",      "Arrived",      "Kept"};
enum Service { kSync, kAsync, kCallback };
constexpr std::array kServices = {"SyncServer", "AsyncServer", "CallbackServer"};
std::atomic<int> g_served[3][kKinds];

void count(Service service, Kind kind) {
    g_served[service][kind].fetch_add(1, std::memory_order_relaxed);
}

/// The texts that Patient has been called with.
class Arrivals {
public:
    void add(const std::string& text) {
        const std::scoped_lock lock(mutex_);
        texts_.insert(text);
        changed_.notify_all();
    }
    void wait_for(const std::string& text) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return texts_.contains(text); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::string> texts_;
};
Arrivals g_arrivals;

// --- sync ---

class SyncServer final : public calls::SyncServer::Service {
    Status Unary(grpc::ServerContext*, const Text* in, Text* out) override {
        count(kSync, kUnary);
        out->set_text(in->text());
        return Status::OK;
    }
    Status ServerStream(grpc::ServerContext*, const Text* in,
                        grpc::ServerWriter<Text>* out) override {
        count(kSync, kServerStream);
        for (int i = 0; i < kReplies; ++i) out->Write(*in);
        return Status::OK;
    }
    Status ClientStream(grpc::ServerContext*, grpc::ServerReader<Text>* in, Text* out) override {
        count(kSync, kClientStream);
        while (in->Read(out)) continue;
        return Status::OK;
    }
    Status Bidi(grpc::ServerContext*, grpc::ServerReaderWriter<Text, Text>* both) override {
        count(kSync, kBidi);
        Text text;
        while (both->Read(&text)) both->Write(text);
        return Status::OK;
    }
    Status Chain(grpc::ServerContext*, const Text* in, Text* out) override {
        count(kSync, kChain);
        const auto stub = calls::SyncServer::NewStub(
            grpc::CreateChannel(in->text(), grpc::InsecureChannelCredentials()));
        grpc::ClientContext context;
        return stub->Unary(&context, *in, out);
    }
    Status Fail(grpc::ServerContext*, const Text*, Text*) override {
        count(kSync, kFail);
        return {grpc::StatusCode::NOT_FOUND, "as asked"};
    }
    Status Patient(grpc::ServerContext* context, const Text* in, Text*) override {
        count(kSync, kPatient);
        g_arrivals.add(in->text());
        while (!context->IsCancelled()) usleep(1000);
        return {grpc::StatusCode::CANCELLED, "its caller has gone"};
    }
    Status Arrived(grpc::ServerContext*, const Text* in, Text*) override {
        count(kSync, kArrived);
        g_arrivals.wait_for(in->text());
        return Status::OK;
    }
    Status Kept(grpc::ServerContext* context, const Text*, Text* out) override {
        count(kSync, kKept);
        for (const auto& [key, value] : context->client_metadata())
            if (key == "traceparent") out->set_text(std::string(value.data(), value.size()));
        return Status::OK;
    }
};

// --- async ---

calls::AsyncServer::AsyncService g_async;
grpc::ServerCompletionQueue* g_queue;

/// One call that is waited for, then served; each event of the queue takes it a step further.
struct Step {
    virtual ~Step() = default;
    virtual void step(bool ok) = 0;

    grpc::ServerContext context;
    Text text;
    int at = 0;
};

struct AsyncUnary final : Step {
    grpc::ServerAsyncResponseWriter<Text> out{&context};
    AsyncUnary() { g_async.RequestUnary(&context, &text, &out, g_queue, g_queue, this); }
    void step(bool ok) override {
        if (!ok || at++ == 1) return delete this;
        new AsyncUnary;
        count(kAsync, kUnary);
        out.Finish(text, Status::OK, this);
    }
};

struct AsyncServerStream final : Step {
    grpc::ServerAsyncWriter<Text> out{&context};
    AsyncServerStream() {
        g_async.RequestServerStream(&context, &text, &out, g_queue, g_queue, this);
    }
    void step(bool ok) override {
        if (!ok || at > kReplies) return delete this;
        if (at++ == 0) {
            new AsyncServerStream;
            count(kAsync, kServerStream);
        }
        if (at <= kReplies) return out.Write(text, this);
        out.Finish(Status::OK, this);
    }
};

struct AsyncClientStream final : Step {
    grpc::ServerAsyncReader<Text, Text> in{&context};
    AsyncClientStream() { g_async.RequestClientStream(&context, &in, g_queue, g_queue, this); }
    void step(bool ok) override {
        if (at == 0 ? !ok : at == 2) return delete this;
        if (at == 0) {
            new AsyncClientStream;
            count(kAsync, kClientStream);
        }
        at = ok ? 1 : 2;
        if (ok) return in.Read(&text, this);
        in.Finish(text, Status::OK, this);
    }
};

struct AsyncBidi final : Step {
    grpc::ServerAsyncReaderWriter<Text, Text> both{&context};
    AsyncBidi() { g_async.RequestBidi(&context, &both, g_queue, g_queue, this); }
    void step(bool ok) override {
        enum { kWaiting, kReading, kWriting, kFinishing };
        if (at == kFinishing || (at == kWaiting && !ok)) return delete this;
        if (at == kWaiting) {
            new AsyncBidi;
            count(kAsync, kBidi);
        }
        if (!ok) {
            at = kFinishing;
            both.Finish(Status::OK, this);
        } else if (at == kReading) {
            at = kWriting;
            both.Write(text, this);
        } else {
            at = kReading;
            both.Read(&text, this);
        }
    }
};

void run_queue() {
    new AsyncUnary;
    new AsyncServerStream;
    new AsyncClientStream;
    new AsyncBidi;
    void* tag = nullptr;
    bool ok = false;
    while (g_queue->Next(&tag, &ok)) static_cast<Step*>(tag)->step(ok);
}

// --- callback ---

class CallbackServer final : public calls::CallbackServer::CallbackService {
    grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, const Text* in,
                                    Text* out) override {
        count(kCallback, kUnary);
        out->set_text(in->text());
        auto* reactor = context->DefaultReactor();
        reactor->Finish(Status::OK);
        return reactor;
    }
    grpc::ServerWriteReactor<Text>* ServerStream(grpc::CallbackServerContext*,
                                                 const Text* in) override {
        struct Reactor final : grpc::ServerWriteReactor<Text> {
            Text text;
            int left = kReplies;
            explicit Reactor(const Text& in) : text(in) { next(); }
            void next() { left-- > 0 ? StartWrite(&text) : Finish(Status::OK); }
            void OnWriteDone(bool) override { next(); }
            void OnDone() override { delete this; }
        };
        count(kCallback, kServerStream);
        return new Reactor(*in);
    }
    grpc::ServerReadReactor<Text>* ClientStream(grpc::CallbackServerContext*, Text* out) override {
        struct Reactor final : grpc::ServerReadReactor<Text> {
            Text* text;
            explicit Reactor(Text* out) : text(out) { StartRead(text); }
            void OnReadDone(bool ok) override { ok ? StartRead(text) : Finish(Status::OK); }
            void OnDone() override { delete this; }
        };
        count(kCallback, kClientStream);
        return new Reactor(out);
    }
    grpc::ServerBidiReactor<Text, Text>* Bidi(grpc::CallbackServerContext*) override {
        struct Reactor final : grpc::ServerBidiReactor<Text, Text> {
            Text text;
            Reactor() { StartRead(&text); }
            void OnReadDone(bool ok) override { ok ? StartWrite(&text) : Finish(Status::OK); }
            void OnWriteDone(bool) override { StartRead(&text); }
            void OnDone() override { delete this; }
        };
        count(kCallback, kBidi);
        return new Reactor;
    }
};

}  // namespace

int main() {
    // Before any thread is made: only ours hears of it.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    SyncServer sync;
    CallbackServer callback;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&sync);
    builder.RegisterService(&g_async);
    builder.RegisterService(&callback);
    const auto queue = builder.AddCompletionQueue();
    g_queue = queue.get();
    const auto server = builder.BuildAndStart();
    std::thread stepper(run_queue);
    std::printf("%d\n", port);
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
    server->Shutdown(std::chrono::system_clock::now());
    queue->Shutdown();
    stepper.join();
    for (int service = 0; service < 3; ++service)
        for (int kind = 0; kind < kKinds; ++kind)
            if (g_served[service][kind] != 0)
                std::printf("%s %s %d\n", kServices[service], kNames[kind],
                            g_served[service][kind].load());
    return 0;
}
