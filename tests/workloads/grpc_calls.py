"""Calls gRPC's service (grpc_service.py) in every way that Python has, and logs each call and how it ended: prints {"calls": [...], "served": [...]}.

    grpc_calls.py sync|aio [--bare-server] [--rounds N]

--bare-server: the server is not traced. Calls come from 8 threads, or from 8 tasks of one loop.
"""
import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import threading

import grpc
import grpc.experimental

kService = "/calls.Service/"
kThreads = 8
kOwn = "00-0123456789abcdef0123456789abcdef-%016x-01"
log = []
lock = threading.Lock()


def say(method, status, own=None):
    with lock:
        log.append({"method": method, "status": status, "own": own})


def code_of(failure):
    return failure.code().name


def start_server(api, bare):
    environment = {k: v for k, v in os.environ.items() if not bare or k not in ("LD_PRELOAD", "PYTHONPATH")}
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grpc_service.py")
    server = subprocess.Popen([sys.executable, here, api], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    return server, int(server.stdout.readline())


# --- sync ---

def three():
    return iter([b"a", b"b", b"c"])


def sync_calls(address, channel, who, rounds):
    for n in range(who * 10000, who * 10000 + rounds):
        def method(kind, what):
            return "%s_%s_%d" % (kind, what, n)

        def stub(kind, name):
            make = {"uu": channel.unary_unary, "us": channel.unary_stream, "su": channel.stream_unary, "ss": channel.stream_stream}[kind]
            return make(kService + name)

        for kind in ("uu", "us", "su", "ss"):
            name = method(kind, "nested" if kind in ("uu", "ss") else "plain")
            own = kOwn % (n * 4 + 1 + ("uu", "us", "su", "ss").index(kind)) if n % 2 else None
            metadata = (("other", "kept"),) + ((("traceparent", own),) if own else ())
            answer = stub(kind, name)(three() if kind[0] == "s" else b"abc", metadata=metadata)
            assert (list(answer) if kind[1] == "s" else [answer] * 3) == [b"abc"] * 3
            say(name, "OK", own)
        name = "uu_plain_f%d" % n
        assert stub("uu", name).future(b"x").result() == b"x"
        say(name, "OK")
        name = "uu_plain_w%d" % n
        answer, call = stub("uu", name).with_call(b"x")
        assert answer == b"x" and call.code() is grpc.StatusCode.OK
        say(name, "OK")
    n = who
    for kind, what in (("uu", "fail"), ("us", "fail"), ("su", "raise"), ("ss", "raise")):
        name = "%s_%s_%d" % (kind, what, n)
        try:
            answer = stub(kind, name)(three() if kind[0] == "s" else b"abc")
            list(answer)
            say(name, "OK")
        except grpc.RpcError as failure:
            say(name, code_of(failure))
    name = "uu_slow_%d" % n
    try:
        stub("uu", name)(b"abc", timeout=0.2)
    except grpc.RpcError as failure:
        say(name, code_of(failure))
    name = "uu_slow_c%d" % n
    future = stub("uu", name).future(b"abc")
    stub("uu", "uu_plain_s%d" % n)(b"")  # the server has had time to see it
    say("uu_plain_s%d" % n, "OK")
    future.cancel()
    say(name, "CANCELLED")
    for what in ("dropped", "cancelled"):
        name = "us_endless_%s%d" % (what, n)
        answers = stub("us", name)(b"abc")
        assert next(answers) == b"abc"
        if what == "cancelled":
            answers.cancel()
        del answers
        gc.collect()
        say(name, "CANCELLED")
    with grpc.insecure_channel(address, options=[(grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1)]) as channel:
        assert list(channel.unary_stream(kService + "us_plain_t%d" % n)(b"abc")) == [b"abc"] * 3
        say("us_plain_t%d" % n, "OK")
        answers = channel.unary_stream(kService + "us_endless_t%d" % n)(b"abc")
        assert next(answers) == b"abc"
        del answers
        gc.collect()
        say("us_endless_t%d" % n, "CANCELLED")


def sync_client(port, rounds):
    failures = []

    def run(channel, who):
        try:
            sync_calls(address, channel, who, rounds)
        except BaseException as failure:
            failures.append(failure)
            raise

    address = "127.0.0.1:%d" % port
    with grpc.insecure_channel(address) as channel:
        threads = [threading.Thread(target=run, args=(channel, who)) for who in range(1, kThreads + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures


# --- aio ---

async def aio_three():
    for one in (b"a", b"b", b"c"):
        yield one


async def aio_calls(channel, who, rounds):
    def stub(kind, name):
        make = {"uu": channel.unary_unary, "us": channel.unary_stream, "su": channel.stream_unary, "ss": channel.stream_stream}[kind]
        return make(kService + name)

    async def result(kind, call):
        return [one async for one in call] if kind[1] == "s" else [await call] * 3

    for n in range(who * 10000, who * 10000 + rounds):
        for kind in ("uu", "us", "su", "ss"):
            name = "%s_%s_%d" % (kind, "nested" if kind in ("uu", "ss") else "plain", n)
            own = kOwn % (n * 4 + 1 + ("uu", "us", "su", "ss").index(kind)) if n % 2 else None
            metadata = (("other", "kept"),) + ((("traceparent", own),) if own else ())
            call = stub(kind, name)(aio_three() if kind[0] == "s" else b"abc", metadata=metadata)
            assert await result(kind, call) == [b"abc"] * 3
            say(name, "OK", own)
    n = who
    for kind, what in (("uu", "fail"), ("us", "fail"), ("su", "raise"), ("ss", "raise")):
        name = "%s_%s_%d" % (kind, what, n)
        try:
            await result(kind, stub(kind, name)(aio_three() if kind[0] == "s" else b"abc"))
            say(name, "OK")
        except grpc.RpcError as failure:
            say(name, code_of(failure))
    name = "uu_slow_%d" % n
    try:
        await stub("uu", name)(b"abc", timeout=0.2)
    except grpc.RpcError as failure:
        say(name, code_of(failure))
    name = "uu_slow_c%d" % n
    call = stub("uu", name)(b"abc")
    await asyncio.sleep(0.05)
    call.cancel()
    say(name, "CANCELLED")
    for what in ("dropped", "cancelled"):
        name = "us_endless_%s%d" % (what, n)
        call = stub("us", name)(b"abc")
        assert await call.read() == b"abc"
        if what == "cancelled":
            call.cancel()
        del call
        gc.collect()
        say(name, "CANCELLED")
    await stub("uu", "uu_plain_e%d" % n)(b"")
    say("uu_plain_e%d" % n, "OK")


async def aio_client(port, rounds):
    async with grpc.aio.insecure_channel("127.0.0.1:%d" % port) as channel:
        await asyncio.gather(*(aio_calls(channel, who, rounds) for who in range(1, kThreads + 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("api", choices=("sync", "aio"))
    parser.add_argument("--bare-server", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    server, port = start_server(options.api, options.bare_server)
    try:
        sync_client(port, options.rounds) if options.api == "sync" else asyncio.run(aio_client(port, options.rounds))
    finally:
        served, _ = server.communicate()
    assert server.returncode == 0
    print(json.dumps({"calls": log, "served": json.loads(served)}))


main()
