#!/usr/bin/python3
"""kill -9 of the job, of the agent, of both, again and again: every number that the job began to record stands in the dump once, or is
counted as lost; `ringside recover`, the next agent and a standby end what a dead agent left; nothing remains in shared memory.

    through_kills.py COUNTING KILL_POINTS ROUNDS [SEED]

The job (workloads/counting.c) counts in places, a thread each; its board, which this test reads, says how far it has come. Where the
agent dies is random, or a call of its own: before, in the middle of and after the write of a chunk, the sync, the rename and the removal of
its note (workloads/kill_points.c). No instant is waited for: conditions are the board's numbers and the ends of processes."""
import collections
import functools
import json
import mmap
import os
import random
import shutil
import signal
import struct
import sys

from harness import check, kAgent, kCommand, kOfTheJobDirectory, kShim, main, wait_until

from rsd.dump import Dump
from rsd.events import Events

kPlaces = 8
kNotAllGood, kNothing = 1, 3
kPoints = [("writev", n, when) for n in (1, 2, 4, 7) for when in ("before", "half", "after")] + [
    ("fsync", n, when) for n in (1, 2) for when in ("before", "after")] + [("unlink", 1, "before"), ("unlink", 1, "after")]


class Board:
    """What the job says of itself."""

    def __init__(self, path):
        with open(path, "wb") as file:
            file.truncate(mmap.PAGESIZE)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def places(self):
        words = struct.unpack_from("<%dQ" % (2 * kPlaces), self.memory)
        return [(words[2 * i], words[2 * i + 1]) for i in range(kPlaces)]

    def done(self):
        return sum(done for _, done in self.places())


class Round:
    def __init__(self, workspace, number, choose):
        self.workspace, self.number, self.choose = workspace, number, choose
        self.name = "round-%d" % number
        self.root = os.path.join(workspace.root, "root")
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        self.board_path = workspace.path("board-%d" % number)
        self.board = Board(self.board_path)
        self.kib = choose.choice((4, 16, 256))
        self.most_kib = choose.choice((self.kib, self.kib, 4096))
        self.threads = choose.choice((1, 2, 3))
        self.began = False

    def start_agent(self, *extra, point=None, capture=True):
        reading, writing = os.pipe()
        environment = dict(os.environ)
        if point:
            environment.update(LD_PRELOAD=self.workspace.kill_points, RINGSIDE_KILL_POINT="%s %d %s" % point)
        words = ["--capture-from-start", "--name", self.name] if capture else []
        agent = self.workspace.start("agent-%s-%d" % (self.name, len(self.workspace.children)), [
            kAgent, "--dir", self.root, "--job", "job", "--node", "node", "--endpoint", "ipc://" + self.workspace.path("sock"),
            "--output", self.workspace.path("output"), "--first-lane-kib", str(self.kib), "--most-lane-kib", str(self.most_kib), "--ready-fd", str(writing), *words, *extra],
            environment, pass_fds=(writing,))
        os.close(writing)
        agent.ready = os.fdopen(reading)
        return agent

    def await_ready(self, agent):
        with agent.ready:
            return agent.ready.readline() == "ready\n"

    def start_job(self):
        self.job = self.workspace.start("job-" + self.name, [self.workspace.counting, self.board_path, str(self.threads)],
                                        dict(os.environ, RINGSIDE_DIR=self.root, RINGSIDE_JOB="job", LD_PRELOAD=kShim))

    def await_numbers(self, most):
        """The job has come some way."""
        wanted = self.choose.randrange(1, most)
        wait_until("the job to count to %d" % wanted, lambda: self.board.done() >= wanted, children=[self.job])

    def kill(self, child):
        os.kill(child.pid, signal.SIGKILL)
        child.wait(expect=-signal.SIGKILL)

    def stop_job(self):
        """Alive, and in the middle of whatever it does: its board is final."""
        os.kill(self.job.pid, signal.SIGSTOP)
        stat = "/proc/%d/task" % self.job.pid
        wait_until("the job to be stopped", lambda: all(_state(os.path.join(stat, t, "stat")) in "tT" for t in os.listdir(stat)))

    def ask_to_recover(self):
        child = self.workspace.ringside("recover", "--dir", self.root, "--job", "job", "--json", expect=None)
        for outcome in json.loads(child.out() or "[]"):
            # Where no agent had come as far as a file, it lies in the user's default output.
            if outcome["dump"] and not outcome["dump"].startswith(self.workspace.disk):
                self.workspace.on_exit(functools.partial(shutil.rmtree, os.path.dirname(outcome["dump"])))
        return child

    def recover(self):
        """@return what `ringside recover` says of the job"""
        child = self.ask_to_recover()
        check(child.process.returncode in (0, kNotAllGood), "recover ended with %s:\n%s", child.process.returncode, child.tail())
        (told,) = json.loads(child.out())
        check(os.path.exists(told["dump"]) and os.path.exists(told["index"]), "recover names %s and %s", told["dump"], told["index"])
        return told

    def check_dump(self, told_lost=None, least=None):
        """Every number that was begun is in the dump once, or counted as lost. @return kept, lost

        least: of a job that goes on where nobody captures any more: so many had been done when somebody still did
        """
        folder = self.workspace.path("output", self.name)
        files = sorted(os.listdir(folder))
        check([f for f in files if f != "job.rsj"] == ["node.rsd"], "%s holds %s", folder, files)
        dump = Dump(os.path.join(folder, "node.rsd"))
        check(dump.problem is None and not dump.accounts(), "%s: %s; %s", folder, dump.problem, dump.accounts())
        check(dump.seen_again[0] == 0, "%d records stand in the dump twice", dump.seen_again[0])
        numbers = collections.Counter(m[8] for m in Events(dump).marks if m[0] == "counter")
        twice = [n for n, count in numbers.items() if count != 1]
        check(not twice, "%d numbers came twice, %s first", len(twice), twice[:3])
        places = self.board.places()
        for number in numbers:
            place, value = number >> 48, number & ((1 << 48) - 1)
            check(value < places[place][0], "number %d of place %d was never begun (%d were)", value, place, places[place][0])
        begun, done, kept, lost = sum(b for b, _ in places), self.board.done(), len(numbers), dump.lost()
        outside = sum(lane.outside for lane in dump.footer.lanes)
        done = done if least is None else least
        check(done <= kept + outside + lost <= begun, "%d numbers are done, %d begun; the dump has %d kept, %d outside, %d lost", done, begun, kept,
              outside, lost)
        check(told_lost is None or told_lost == lost, "recover says %s lost, the dump %d", told_lost, lost)
        return kept, outside + lost

    def clean(self):
        left = [f for f in os.listdir(os.path.join(self.root, "job")) if f not in kOfTheJobDirectory]
        check(not left, "in the job directory remain %s", left)
        for child in self.workspace.children:
            child.end()
        self.workspace.children.clear()
        os.remove(self.board_path)


def _state(path):
    with open(path) as file:
        return file.read().rpartition(")")[2].split()[0]


def job_dies(run):
    """The agent lives, ends the capture when it is told to, and has everything."""
    agent = run.start_agent()
    check(run.await_ready(agent), "the agent is not ready: %s", agent.tail())
    run.start_job()
    run.await_numbers(15000)
    run.kill(run.job)
    agent.send(signal.SIGTERM)
    agent.wait(20)
    return run.check_dump()


def agent_dies(run):
    """The job goes on, into full lanes; then it stands still, and what it has said so far is all there."""
    agent = run.start_agent()
    check(run.await_ready(agent), "the agent is not ready: %s", agent.tail())
    run.start_job()
    run.await_numbers(15000)
    run.kill(agent)
    run.await_numbers(run.board.done() + run.choose.choice((2, 20000)))
    run.stop_job()
    told = run.recover()
    check(told["living"] == 1, "recover says that %s processes live", told["living"])
    counts = run.check_dump(told["lost"])
    os.kill(run.job.pid, signal.SIGCONT)
    run.kill(run.job)
    again = run.ask_to_recover()
    check(again.process.returncode in (0, kNotAllGood, kNothing), "a second recover ends with %s:\n%s", again.process.returncode, again.tail())
    # A thread that had been stopped in the middle of a record has ended it since: nothing else is new.
    new = sum(outcome["records"] for outcome in json.loads(again.out()) if outcome["dump"])
    check(new <= kPlaces, "a second recover finds %d records", new)
    return counts


def both_die(run):
    agent = run.start_agent()
    check(run.await_ready(agent), "the agent is not ready: %s", agent.tail())
    run.start_job()
    run.await_numbers(15000)
    for child in run.choose.sample([agent, run.job], 2):
        run.kill(child)
    return run.check_dump(run.recover()["lost"])


def point_is_reached(run):
    """The agent dies where it hurts: in the middle of its own bookkeeping."""
    point = run.choose.choice(kPoints)
    agent = run.start_agent(point=point)
    if run.await_ready(agent):
        run.start_job()
        run.await_numbers(15000)
        if point[0] == "writev" and point[1] > 1:
            wait_until("the agent to die at its point", lambda: agent.process.poll() is not None, children=[run.job])
            run.stop_job()
            run.kill(run.job)
        else:
            run.kill(run.job)
            agent.send(signal.SIGTERM)
    else:
        run.job = None
    agent.wait(30, expect=-signal.SIGKILL)
    if run.job is None:  # it died before the word was on: there is nothing
        run.recover()
        return 0, 0
    if point[0] == "unlink" and point[2] == "after":
        return run.check_dump()
    run.ask_to_recover()
    return run.check_dump()


def standby_takes_over(run):
    """A standby waits for the lock and ends what the dead agent left; the job is dead, stands still, or goes on meanwhile."""
    agent = run.start_agent()
    check(run.await_ready(agent), "the agent is not ready: %s", agent.tail())
    standby = run.start_agent("--standby", "--log-level", "info", capture=False)
    wait_until("the standby to wait", lambda: "stand by" in standby.err(), children=[standby])
    check("agent with pid %d" % agent.pid in standby.err(), "the standby does not name the holder: %s", standby.err())
    refused = run.workspace.start("refused-%d" % run.number, [kAgent, "--dir", run.root, "--job", "job", "--endpoint",
                                                              "ipc://" + run.workspace.path("sock2")])
    refused.wait(expect=5)
    check("--standby" in refused.err() and "agent with pid %d" % agent.pid in refused.err(), "refused with: %s", refused.err())
    run.start_job()
    run.await_numbers(15000)
    job = run.choose.choice(("dead", "stopped", "running"))
    if job == "dead":
        run.kill(run.job)
    elif job == "stopped":
        run.stop_job()
    least = run.board.done() if job == "running" else None
    run.kill(agent)
    check(run.await_ready(standby), "the standby is not ready: %s", standby.tail())
    (status,) = run.workspace.json("status", "--hosts", "ipc://" + run.workspace.path("sock"))
    check("the capture of an agent that died" in status["recovered"], "its status says %r", status["recovered"])
    if job != "dead":
        run.kill(run.job)
    counts = run.check_dump(least=least)
    standby.send(signal.SIGTERM)
    standby.wait(20)
    return counts


def run_recovers(workspace, choose, number):
    """`ringside run` whose agent is killed ends with the job's status, a whole dump, and says so."""
    board_path = workspace.path("board-run-%d" % number)
    board = Board(board_path)
    root = os.path.join(workspace.root, "run-root-%d" % number)
    os.makedirs(root, mode=0o700)
    output = workspace.path("run-output-%d" % number)
    child = workspace.start("run-%d" % number, [kCommand, "run", "-o", output, "--table", workspace.path("run-table-%d" % number), "--node", "node", "--",
                                    workspace.counting, board_path, "2"], dict(os.environ, RINGSIDE_DIR=root))
    wanted = choose.randrange(1, 15000)
    wait_until("the job to count", lambda: board.done() >= wanted, children=[child])
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if int(rest.split()[1]) == child.pid:
                children[name] = int(pid)
        except OSError:
            continue
    for name in choose.sample(["ringside-agent", "counting"], 2):
        os.kill(children[name], signal.SIGKILL)
    child.wait(expect=128 + signal.SIGKILL)
    check("the agent did not end the trace" in child.err() and "recovered" in child.err(), "it says:\n%s", child.err())
    check(sorted(os.listdir(output)) == ["job.rsj", "node.rsd"], "in its output are %s", os.listdir(output))
    check(not os.listdir(root), "in its root remain %s", os.listdir(root))
    dump = Dump(os.path.join(output, "node.rsd"))
    kept = sum(m[0] == "counter" for m in Events(dump).marks)
    begun = sum(b for b, _ in board.places())
    check(dump.problem is None and not dump.accounts(), "the dump: %s %s", dump.problem, dump.accounts())
    check(board.done() <= kept + dump.lost() <= begun, "%d done, %d begun, %d kept, %d lost", board.done(), begun, kept, dump.lost())


kWays = (job_dies, agent_dies, both_die, point_is_reached, standby_takes_over)


def test(workspace):
    workspace.counting, workspace.kill_points, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 30)
    print("seed %d" % seed, flush=True)
    choose = random.Random(seed)
    totals, kinds = [0, 0], collections.Counter()
    for number in range(rounds):
        way = kWays[number % len(kWays)]
        run = Round(workspace, number, choose)
        kept, lost = way(run)
        totals[0] += kept
        totals[1] += lost
        kinds[way.__name__] += 1
        run.clean()
        if (number + 1) % 100 == 0:
            print("%d rounds: %d numbers kept, %d counted as lost" % (number + 1, *totals), flush=True)
    for number in range(1 + rounds // 25):
        run_recovers(workspace, choose, number)
    print("%d rounds (%s): %d numbers kept, %d counted as lost, none twice, none unaccounted" % (
        rounds, ", ".join("%d %s" % (n, k.replace("_", " ")) for k, n in kinds.items()), *totals), flush=True)


main(test, "through_kills")
