#!/usr/bin/python3
"""Bad input: one clear error each (action, object, cause, what to do), the documented exit code, nothing half-written under the final name."""
import json
import os
import struct

from harness import Node, check, kAgent, kPython, kShim, main, wait_until
from rsd import frames

kUsage, kNothingMatched, kNoAgent, kRefused, kInput, kOwnFailure = 2, 3, 4, 5, 6, 125


class Cases:
    def __init__(self, workspace):
        self.workspace, self.count = workspace, 0

    def refused(self, what, arguments, status, *words, environment=None, absent=()):
        """The command ends with `status`, says one error with all the words, and leaves nothing at `absent`."""
        child = self.workspace.ringside(*arguments, expect=None, environment=environment, name="case-%d" % self.count)
        self.count += 1
        said = child.err().strip()
        check(child.process.returncode == status, "%s: exit %d, expected %d; it says: %s", what, child.process.returncode, status, said)
        lines = [l for l in said.splitlines() if l.startswith("ringside: ")]
        check(len(lines) == 1 and not child.out().strip(), "%s: not one error: %s%s", what, said, child.out())
        for word in words:
            check(word.lower() in said.lower(), "%s: the error does not say %r: %s", what, word, said)
        for path in absent:
            check(not os.path.exists(path), "%s: left %s behind", what, path)
        print("%-34s %d  %s" % (what, status, said.replace("\n", " | ")[:230]), flush=True)


def sample_dump(workspace):
    """A small real dump: a program without torch has none, so a short one with it."""
    output = workspace.path("good")
    workspace.ringside("run", "-o", output, "--", kPython, "-c", "import torch; [torch.ones(2) + 1 for _ in range(50)]")
    (dump,) = [os.path.join(output, f) for f in os.listdir(output) if f.endswith(".rsd")]
    return output, dump


def make_copy(workspace, name, data):
    folder = workspace.path(name)
    os.makedirs(folder)
    with open(os.path.join(folder, "node.rsd"), "wb") as out:
        out.write(data)
    return folder


def newer(data):
    """The dump with min_reader raised: the field's value, 1, stands in the first frame (found by trying each)."""
    length, = struct.unpack_from("<I", data, 4)
    payload = bytearray(data[16:16 + length])
    from rsd.shapes import kDumpReader
    for place in range(0, length - 3):
        if payload[place:place + 4] == b"\1\0\0\0":
            changed = bytearray(payload)
            changed[place] = 200
            try:
                if kDumpReader.root(bytes(changed), b"RSD1", "Chunk").body.min_reader == 200:
                    return frames.frame(bytes(changed), frames.kDumpMagic) + data[16 + length + (-length % 8):]
            except Exception:  # a changed offset: not the field
                continue
    raise AssertionError("min_reader not found")


def dumps(cases, workspace):
    output, dump = sample_dump(workspace)
    with open(dump, "rb") as file:
        data = file.read()
    edges = [0]
    while edges[-1] < len(data):
        length, = struct.unpack_from("<I", data, edges[-1] + 4)
        edges.append(edges[-1] + 16 + length + (-length % 8))
    trace = workspace.path("bad.json")
    for what, folder, words in (
            ("a dump from a newer version", make_copy(workspace, "newer", newer(data)), ("version",)),
            ("a file that is no dump", make_copy(workspace, "other", b"some other file\n" * 20), ("node.rsd",)),
            ("an empty dump", make_copy(workspace, "empty", b""), ("node.rsd",))):
        cases.refused("table: " + what, ["table", folder], kInput, *words)
        cases.refused("export: " + what, ["export", folder, "-o", trace], kInput, *words, absent=[trace])
        for verb in ("steps", "ranges"):
            cases.refused(verb + ": " + what, [verb, folder], kInput, *words)
    os.makedirs(workspace.path("nothing"))
    cases.refused("table: no dump at all", ["table", workspace.path("nothing")], kInput, "nothing")
    cases.refused("table: missing directory", ["table", workspace.path("missing")], kInput, "missing")
    cases.refused("export: missing directory", ["export", workspace.path("missing"), "-o", trace], kInput, "missing", absent=[trace])
    cases.refused("export: unwritable target", ["export", output, "-o", workspace.path("no", "such", "t.json")], kUsage, "t.json", absent=[trace])
    truncated(cases, workspace, data, edges)
    return output


def truncated(cases, workspace, data, edges):
    """What is whole is shown; the end is named, the exit code says so."""
    cut = (edges[-2] + edges[-1]) // 2
    folder = make_copy(workspace, "cut", data[:cut])
    child = workspace.ringside("table", folder, expect=kInput)
    check("aten::" in child.out() and str(edges[-2]) in child.err(), "a truncated dump: %s\n%s", child.out()[:300], child.err())
    for verb in ("steps", "ranges"):
        child = workspace.ringside(verb, folder, expect=kInput)
        check("No GPU work" in child.out() and str(edges[-2]) in child.err(), "%s of a truncated dump: %s\n%s", verb, child.out(), child.err())
    trace = workspace.path("cut.json")
    child = workspace.ringside("export", folder, "-o", trace, expect=kInput)
    check(os.path.exists(trace), "a truncated dump is not exported: %s", child.err())
    print("%-34s %d  %s" % ("table: truncated dump", kInput, child.err().strip()[:230]), flush=True)
    # At every edge between two chunks, and with a bit flipped in every chunk behind the first: what stands before is shown, its end is named.
    for number, edge in enumerate(edges[1:-1], 1):
        flipped = bytearray(data)
        flipped[edge + 16 + (edges[number + 1] - edge - 16) // 2] ^= 4
        for what, damaged in (("cut", data[:edge]), ("flipped", bytes(flipped))):
            folder = make_copy(workspace, "%s-%d" % (what, edge), damaged)
            child = workspace.ringside("table", folder, expect=kInput)
            check("byte %d of %d" % (edge, len(damaged)) in child.err(), "%s at byte %d: it says %s", what, edge, child.err())
    print("%-34s %d  %d edges, a bit of %d chunks" % ("table: every edge, every chunk", kInput, len(edges) - 2, len(edges) - 2), flush=True)


def usage(cases, workspace, output):
    cases.refused("unknown option", ["table", output, "--no-such-option"], kUsage, "no-such-option")
    cases.refused("unknown verb", ["dance"], kUsage, "dance")
    cases.refused("unknown sort key", ["table", output, "--sort-by", "beauty"], kUsage, "beauty")
    cases.refused("ranges: unknown sort key", ["ranges", output, "--sort-by", "beauty"], kUsage, "beauty")
    cases.refused("export to an unknown format", ["export", output, "-o", workspace.path("t.xyz")], kUsage, "t.xyz", absent=[workspace.path("t.xyz")])
    cases.refused("a duration that is none", ["trace", "--duration", "soon"], kUsage, "soon")
    cases.refused("a size that is none", ["trace", "--max-bytes", "much"], kUsage, "much")
    unused = workspace.path("unused")
    cases.refused("run: a size that is none", ["run", "-o", unused, "--max-bytes", "3", "--", "/bin/true"], kUsage, "'3'", absent=[unused])
    cases.refused("run: JSON into CMD's stderr", ["run", "-o", unused, "--json", "--", "/bin/true"], kUsage, "--table", absent=[unused])


def agents(cases, workspace):
    gone = "ipc://" + workspace.path("nobody.sock")
    out = workspace.path("traced")
    for verb in (["trace", "--hosts", gone, "-o", out], ["status", "--hosts", gone], ["ps", "--hosts", gone]):
        cases.refused("%s: an agent that is not there" % verb[0], verb, kNoAgent, "nobody.sock", absent=[out])
    node = Node(workspace, "here")
    cases.refused("a pid that does not exist", ["trace", "--hosts", node.endpoint, "--pid", "4194303", "--duration", "100ms", "-o", out],
                  kNothingMatched, "4194303", absent=[out])
    one_of_two_pids(workspace, node)
    cases.refused("a tcp endpoint", ["trace", "--hosts", "tcp://127.0.0.1:5555", "-o", out], kRefused, "tcp", absent=[out])
    blocked = workspace.path("a-file")
    with open(blocked, "w"):
        pass
    cases.refused("an output below a file", ["trace", "--hosts", node.endpoint, "--duration", "100ms", "-o", blocked + "/out"],
                  kUsage, "a-file")
    node.stop()


def one_of_two_pids(workspace, node):
    """The one that is there is captured, the other is named, and the exit status says that not all is well."""
    sleeper = workspace.start("sleeper", node.job_command("sleep", "300"), node.environment())
    wait_until("the sleeper's segment", lambda: any(p["pid"] == sleeper.pid for p in workspace.json("ps", "--hosts", node.endpoint)), children=[sleeper])
    told = workspace.json("trace", "--hosts", node.endpoint, "--pid", "%d,4194303" % sleeper.pid, "--duration", "100ms", "-o", workspace.path("one"),
                          expect=1)
    verdicts = {p["pid"]: p["verdict"] for p in told["processes"]}
    check(set(verdicts) == {sleeper.pid, 4194303} and "inject" in verdicts[4194303], "verdicts: %s", told["processes"])
    sleeper.end()


def bounded(workspace):
    """A dump that may not grow says what it lacks, and stays readable."""
    output = workspace.path("bounded")
    child = workspace.ringside("run", "-o", output, "--max-bytes", "1M", "--", kPython, "-c", "import torch; [torch.ones(2) + 1 for _ in range(60000)]")
    check("1048576 bytes is reached" in child.err(), "it says: %s", child.err()[-600:])
    sizes = [os.path.getsize(os.path.join(output, f)) for f in os.listdir(output) if f.startswith(os.uname().nodename)]
    check(len(sizes) == 1 and 0 < sizes[0] <= 1 << 20, "its dumps: %s of %s", sizes, os.listdir(output))
    told = json.loads(workspace.ringside("table", output, "--json", "--row-limit", "1", expect=None).out())["totals"]
    check(told["records"] > 10000 and told["lost"] > 10000, "the table says: %s", told)


def own_failures(cases, workspace):
    blocked = workspace.path("another-file")
    with open(blocked, "w"):
        pass
    cases.refused("run: unwritable output", ["run", "-o", blocked + "/out", "--", "/bin/true"], kOwnFailure, "another-file")
    child = workspace.ringside("run", "-o", workspace.path("r127"), "--", "/no/such/program", expect=127)
    check("/no/such/program" in child.err(), "run of a missing program says: %s", child.err())
    workspace.ringside("run", "-o", workspace.path("r126"), "--", workspace.path("a-file"), expect=126)
    workspace.ringside("run", "-o", workspace.path("r3"), "--", "/bin/sh", "-c", "exit 3", expect=3)
    workspace.ringside("run", "-o", workspace.path("r137"), "--", "/bin/sh", "-c", "kill -9 $$", expect=137)
    for arguments, status, word in ((["--dir", blocked + "/root"], None, "another-file"), (["--endpoint", "tcp://127.0.0.1:5555"], kRefused, "tcp"),
                                    (["--no-such-option"], kUsage, "no-such-option")):
        child = workspace.run("bad-agent-%d" % len(workspace.children), [kAgent, *arguments], expect=None)
        check(child.process.returncode not in (0, None) and status in (None, child.process.returncode) and word in child.err(),
              "agent %s: exit %s, says %s", arguments, child.process.returncode, child.err())
        print("agent %-28s %d  %s" % (arguments[0], child.process.returncode, child.err().strip()[:230]), flush=True)


def unharmed(workspace):
    """Whatever the shim is given, the job runs as if it were not there."""
    for what, environment in (("unwritable root", {"RINGSIDE_DIR": "/proc/nowhere"}), ("disabled", {"RINGSIDE_DISABLE": "1"}),
                              ("relative root", {"RINGSIDE_DIR": "here"}), ("long job", {"RINGSIDE_JOB": "j" * 400})):
        child = workspace.run("job-%s" % what.replace(" ", "-"), [kPython, "-c", "print(6 * 7)"], dict(os.environ, LD_PRELOAD=kShim, **{
            "RINGSIDE_DIR": os.path.join(workspace.root, "unharmed"), **environment}))
        check(child.out() == "42\n" and not child.err(), "%s: the job says %r %r", what, child.out(), child.err())
    check(not os.path.exists(workspace.path("cwd", "here")), "a relative root was made in the job's directory")


def test(workspace):
    cases = Cases(workspace)
    output = dumps(cases, workspace)
    usage(cases, workspace, output)
    agents(cases, workspace)
    own_failures(cases, workspace)
    bounded(workspace)
    unharmed(workspace)
    print("%d cases refused as documented" % cases.count, flush=True)


main(test, "bad_input")
