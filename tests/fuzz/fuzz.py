#!/usr/bin/python3
"""The fuzzer over its committed corpus, and what keeps that corpus small.

    fuzz.py run FUZZER SECONDS [SEED]    new inputs for so long; a crash fails, its input is kept and named
    fuzz.py add FUZZER DIRECTORY         takes what of the inputs in DIRECTORY reaches new code into the corpus
    fuzz.py seeds                        the corpus anew: what seeds.py makes, nothing found
    fuzz.py dump FUZZER FLIPS SECONDS    the fuzzer over dumps; FLIPS makes the dump that it starts from
    fuzz.py own FUZZER SECONDS           one that makes itself what it starts from: control messages, job indexes
    fuzz.py all SEGMENT CONTROL INDEX DUMP FLIPS SECONDS    all of them side by side
    fuzz.py flips FLIPS COUNT            that many bit flips of that dump
"""
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

import seeds

kHere = os.path.dirname(os.path.abspath(__file__))
kCorpus = os.path.join(kHere, "corpus", "segment.txt")
kMostBytes = 180 * 1024
kMostInputBytes = 4 + 12 * 256
kSkipped = 77
kFound = "# found by the fuzzer, each for code that no other reaches"


def read_corpus():
    with open(kCorpus) as file:
        return [bytes.fromhex(line) for line in file.read().split("\n") if line and not line.startswith("#")]


def write_corpus(found=()):
    made = list(seeds.seeds())
    lines = ["# One input a line, read by replay.cpp and fuzz.py; made by `fuzz.py seeds` and `fuzz.py add`."]
    for what, data in made:
        lines += ["# " + what, data.hex()]
    known = {data for _, data in made}
    lines.append(kFound)
    size = sum(len(line) + 1 for line in lines)
    for data in sorted(found, key=len):
        size += 2 * len(data) + 1
        if data not in known and size <= kMostBytes:
            lines.append(data.hex())
    with open(kCorpus, "w") as file:
        file.write("\n".join(lines) + "\n")


class Folders:
    """A corpus as libFuzzer wants it, and room for the target's segment; both in memory, both gone afterwards."""

    def __init__(self, committed=True):
        self.committed = committed

    def __enter__(self):
        self.root = tempfile.mkdtemp(prefix="rs-fuzz-", dir="/dev/shm")
        self.corpus, self.segments = os.path.join(self.root, "corpus"), os.path.join(self.root, "segments")
        for folder in (self.corpus, self.segments):
            os.mkdir(folder, 0o700)
        for number, data in enumerate(read_corpus() if self.committed else []):
            with open(os.path.join(self.corpus, "%05d" % number), "wb") as file:
                file.write(data)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def environment(self):
        return dict(os.environ, TMPDIR=self.segments, UBSAN_OPTIONS="print_stacktrace=1")


def is_missing(program):
    if os.path.exists(program):
        return False
    print("SKIPPED: %s is not built: it needs clang++-16 and its libclang-rt-16-dev (tools/setup --all)" % program, flush=True)
    return True


def flips(program, count):
    if is_missing(program):
        return kSkipped
    with Folders() as folders:
        return 0 if subprocess.run([program, count], env=folders.environment(), check=False).returncode == 0 else 1


def dump(fuzzer, maker, seconds):
    if is_missing(fuzzer):
        return kSkipped
    with Folders(committed=False) as folders:
        subprocess.run([maker, "seed", os.path.join(folders.corpus, "sample")], env=folders.environment(), check=True)
        return fuzz(fuzzer, seconds, folders, 1 << 14, None)


def own(fuzzer, seconds):
    if is_missing(fuzzer):
        return kSkipped
    with Folders(committed=False) as folders:
        return fuzz(fuzzer, seconds, folders, 1 << 14, None, {"RINGSIDE_FUZZ_SEEDS": folders.corpus})


def every(segment, control, index, dumps, maker, seconds):
    if is_missing(segment):
        return kSkipped
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = [pool.submit(run, segment, seconds), pool.submit(own, control, seconds), pool.submit(own, index, seconds),
                pool.submit(dump, dumps, maker, seconds)]
        return max(one.result() for one in runs)


def run(fuzzer, seconds, seed=None):
    if is_missing(fuzzer):
        return kSkipped
    with Folders() as folders:
        return fuzz(fuzzer, seconds, folders, kMostInputBytes, seed)


def fuzz(fuzzer, seconds, folders, most_bytes, seed, environment=None):
    seed = int(seed or random.SystemRandom().randrange(1, 1 << 31))
    kept = os.path.join(os.path.dirname(fuzzer), "crashes")
    os.makedirs(kept, exist_ok=True)
    name = os.path.basename(fuzzer)
    print("%s: seed %d, %d inputs to begin with" % (name, seed, len(os.listdir(folders.corpus))), flush=True)
    done = subprocess.run(
        [fuzzer, "-seed=%d" % seed, "-max_total_time=%d" % int(seconds), "-max_len=%d" % most_bytes, "-timeout=20", "-rss_limit_mb=2048",
         "-print_final_stats=1", "-verbosity=1", "-artifact_prefix=%s/" % kept, folders.corpus],
        env=dict(folders.environment(), **(environment or {})), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    lines = done.stdout.split("\n")
    print(name + ":\n" + "\n".join([line for line in lines if "NEW" not in line and "REDUCE" not in line][-60 if done.returncode else -8:]), flush=True)
    if done.returncode != 0:
        print("FAILED: the input is in %s; make it small with `%s -minimize_crash=1 -max_total_time=60 FILE`" % (kept, fuzzer), flush=True)
    elif os.environ.get("RINGSIDE_FUZZ_KEEP"):
        shutil.copytree(folders.corpus, os.environ["RINGSIDE_FUZZ_KEEP"], dirs_exist_ok=True)
    return 0 if done.returncode == 0 else 1


def add(fuzzer, directory):
    with Folders() as folders:
        small = os.path.join(folders.root, "small")
        os.mkdir(small)
        subprocess.run([fuzzer, "-merge=1", "-max_len=%d" % kMostInputBytes, small, folders.corpus, directory], env=folders.environment(), check=True)
        found = []
        for name in os.listdir(small):
            with open(os.path.join(small, name), "rb") as file:
                found.append(file.read())
        write_corpus(found)
    return 0


def main(arguments):
    if arguments[:1] == ["run"] and len(arguments) in (3, 4):
        return run(*arguments[1:])
    if arguments[:1] == ["add"] and len(arguments) == 3:
        return add(*arguments[1:])
    if arguments[:1] == ["dump"] and len(arguments) == 4:
        return dump(*arguments[1:])
    if arguments[:1] == ["own"] and len(arguments) == 3:
        return own(*arguments[1:])
    if arguments[:1] == ["all"] and len(arguments) == 7:
        return every(*arguments[1:])
    if arguments[:1] == ["flips"] and len(arguments) == 3:
        return flips(*arguments[1:])
    if arguments == ["seeds"]:
        write_corpus()
        return 0
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main(sys.argv[1:]))
