"""Every call of the public API in Python. "calls": in this process; "rpc": this process calls a child of its own over pipes."""
import multiprocessing
import sys
import threading

try:
    import ringside
except ImportError:
    ringside = None


def calls():
    ringside.name_thread("main of api_calls.py")
    with ringside.range("plain range"):
        with ringside.range("range with all", domain="py domain", category="py category", colour=0xFF010203, payload=-9):
            pass
    decorated()
    ringside.push("pushed")
    ringside.pop()
    ringside.mark("mark with payload", payload=2.5)
    ringside.mark("mark with more than a signed word", payload=(1 << 64) - 1)
    ringside.counter("py counter", -12, domain="py domain")
    ringside.counter("py real", 0.25)
    for _ in range(2):
        ringside.iteration("py step")
    number = ringside.start("across threads", payload=1)
    thread = threading.Thread(target=ringside.end, args=(number,))
    thread.start()
    thread.join()


def decorated():
    if ringside:
        return ringside.range("decorated")(lambda: None)()
    return None


def serve(pipe):
    ringside.set_worker("py_server", 1)
    for _ in range(3):
        method, carried = pipe.recv()
        with ringside.server(method, carried, peer="py_client"):
            with ringside.range("work of " + method):
                pass
        pipe.send(method)


def rpc():
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=serve, args=(there,))
    child.start()
    ringside.set_worker("py_client", 0)
    for method, carrier in (("by_text", "text"), ("by_bytes", "binary"), ("malformed", None)):
        with ringside.client(method, peer="py_server", mode=ringside.SYNC) as call:
            here.send((method, getattr(call, carrier)() if carrier else "00-nonsense"))
            here.recv()
    child.join()
    sys.exit(child.exitcode)


if sys.argv[1] == "calls":
    if ringside:
        calls()
    print("active" if ringside and ringside.active() else "nothing")
else:
    rpc()
