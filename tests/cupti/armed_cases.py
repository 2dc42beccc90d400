"""The GPU's records through an armed window: what was done before the trigger, up to the stop, and after the process's end."""
import signal

from harness import Node, check, wait_until
from lab import Captured, kFull

from rsd.index import Job


class Armed:
    """An armed node, and the program on it."""

    def __init__(self, lab, name, words, keep="60s", fake=""):
        self.lab, self.workspace, self.name = lab, lab.workspace, name
        self.node = Node(lab.workspace, name)
        self.told = self.workspace.json("arm", "--hosts", self.node.endpoint, "--keep", keep)
        self.child = self.workspace.start(name, lab.program_words(words), lab.environment(self.node, fake))

    def word(self, name):
        """The words of one case are its own: the folder of conditions is the lab's."""
        return "%s-%s" % (self.name, name)

    def await_word(self, name):
        self.workspace.await_condition(self.word(name), [self.child])

    def say(self, name):
        self.workspace.announce(self.word(name))

    def window(self):
        return self.workspace.json("status", "--hosts", self.node.endpoint)[0]["window"]

    def trace(self, *options, expect=0):
        output = self.workspace.path("%s-%d" % (self.name, len(self.workspace.children)))
        self.workspace.ringside("trace", "--hosts", self.node.endpoint, "-o", output, *options, expect=expect)
        return Captured(Job(output))

    def end(self, status=0):
        self.workspace.ringside("disarm", "--hosts", self.node.endpoint)
        self.say("end")
        self.child.wait(expect=status)
        wait_until("its segment to go", lambda: not self.node.segments())
        self.node.stop()


def a_window_has_the_gpus_work_of_before_the_trigger(lab):
    armed = Armed(lab, "window", ["cuda", "init", "push:early", "launch:7", "copy", "pop", "sync", "announce:window-worked", "await:window-end", "launch:5"])
    armed.await_word("worked")
    found = armed.trace("--history", "50s", "--duration", "10ms")
    check((len(found.of("kernel")), len(found.of("copy")), found.dropped()) == (7, 1, 0), "%d kernels, %d copies, %d dropped", len(found.of("kernel")),
          len(found.of("copy")), found.dropped())
    check({found.range_of(w) for w in found.of("kernel") + found.of("copy")} == {"early"}, "the ranges: %s", [found.range_of(w) for w in found.work])
    check(found.source() == (kFull, "") and found.gpu.devices, "the source: %s, %d devices", found.source(), len(found.gpu.devices))
    kernels = {(k.lane, k.position) for k in found.of("kernel")}
    again = armed.trace("--history", "50s", "--duration", "10ms")
    check({(k.lane, k.position) for k in again.of("kernel")} == kernels, "asked again: %d kernels", len(again.of("kernel")))
    check("cuptiUnsubscribe" not in lab.called(), "armed, and CUPTI was let go: %s", lab.called())
    armed.workspace.ringside("disarm", "--hosts", armed.node.endpoint)
    check("cuptiUnsubscribe" in lab.called(), "disarmed, and CUPTI is held: %s", lab.called())
    armed.end()
    check("kernels:12" not in lab.called(), "disarmed, and kernels are told")


def a_window_has_what_was_done_just_before_the_stop(lab):
    """CUPTI hands over twenty times a second: the stop waits for that. Several times, for chance might have it in time."""
    armed = Armed(lab, "stop", ["cuda", "init", "announce:stop-worked", "work:stop-end"])
    armed.await_word("worked")
    gaps, pauses = [], []
    for _ in range(5):
        found = armed.trace("--duration", "100ms")
        dump, begins = found.job.dumps[0], sorted(k.begin for k in found.of("kernel"))
        gaps.append(dump.duration_ns(dump.footer.stop_ticks - begins[-1]) / 1e6)
        pauses.append(dump.duration_ns(max(b - a for a, b in zip(begins, begins[1:]))) / 1e6)
    print("    ms from the last kernel to the stop: %s; between kernels at most %s" % tuple(" ".join("%.1f" % ms for ms in list_) for list_ in (gaps, pauses)))
    check(all(gap < 5 + 2 * pause for gap, pause in zip(gaps, pauses)), "ms from the last kernel to the stop: %s; between two: %s", gaps, pauses)
    armed.end()


def a_window_that_ages_tells_the_devices(lab):
    words = ["cuda", "init", "launch:10", "sync", "announce:aged-old", "await:aged-go", "launch:3", "sync", "announce:aged-new", "await:aged-end"]
    armed = Armed(lab, "aged", words, keep="1s")
    armed.await_word("old")
    wait_until("the first kernels to age out", lambda: armed.window()["aged_records"] >= 20)
    armed.say("go")
    armed.await_word("new")
    found = armed.trace("--history", "500ms", "--duration", "10ms")
    check(len(found.of("kernel")) == 3, "%d kernels", len(found.of("kernel")))
    check({d.name for d in found.gpu.devices.values()} == {"Fake GPU 0", "Fake GPU 1"}, "the devices: %s", found.gpu.devices)
    armed.end()


def a_killed_processs_work_is_in_the_window(lab):
    armed = Armed(lab, "killed", ["cuda", "init", "launch:9", "sync", "announce:killed-worked", "await:killed-never"])
    armed.await_word("worked")
    wait_until("the kernels to be handed over", lambda: "kernels:9" in lab.called(), children=[armed.child])
    armed.child.send(signal.SIGKILL)
    armed.child.wait(expect=-signal.SIGKILL)
    wait_until("its segment to go", lambda: not armed.node.segments())
    found = armed.trace("--history", "50s", "--duration", "10ms", expect=1)  # for one that was killed
    check(len(found.of("kernel")) == 9 and found.events.killed(0), "%d kernels, fates %s", len(found.of("kernel")), found.events.fates)
    armed.end(status=-signal.SIGKILL)


def busy_says_who_while_armed(lab):
    armed = Armed(lab, "busy", ["cuda", "init", "push:ours", "launch:5", "sync", "pop", "announce:busy-worked", "await:busy-end"], fake="busy")
    armed.await_word("worked")
    said = [s for p in lab.workspace.json("ps", "--hosts", armed.node.endpoint) for s in p["sources"] if s["name"] == "cupti"]
    check(len(said) == 1 and "CUPTI is held by" in said[0]["reason"], "ps: %s", said)
    found = armed.trace("--history", "50s", "--duration", "10ms")
    check(found.work == [] and [r.name for r in found.events.ranges] == ["ours"] and "(39)" in found.source()[1], "%s; %s", found.source(), found.events.ranges)
    armed.end()


kCases = [
    a_window_has_the_gpus_work_of_before_the_trigger, a_window_has_what_was_done_just_before_the_stop, a_window_that_ages_tells_the_devices,
    a_killed_processs_work_is_in_the_window, busy_says_who_while_armed,
]
