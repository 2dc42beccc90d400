"""Every check must be able to fail: plants one violation of each kind in a small tree of its own and sees it found, and that the same tree
without it is clean."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import files
import formatting
import layering
import shim
import sync
import tidy
import tree

kHere = os.path.dirname(os.path.abspath(__file__))
kRoot = os.path.normpath(os.path.join(kHere, "..", ".."))


def found(violations):
    return [(violation.path, violation.line) for violation in violations]


class Planted(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="ringside-lint-")
        self.addCleanup(shutil.rmtree, self.root)
        for room in files.kRooms:
            self.write(room + "/README.md", "# what is here\n")
        for name in ("meson.build", "meson_options.txt", "README.md", "LICENSE", "CONTRIBUTING.md"):
            self.write(name, "text\n")
        for name in (".clang-format", ".clang-tidy"):
            shutil.copy(os.path.join(kRoot, name), self.root)

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as out:
            out.write(text)
        return whole

    def compile(self, path, text, *options):
        self.write(path + ".cpp", text)
        library = os.path.join(self.root, path + ".so")
        subprocess.run(["c++", "-shared", "-fPIC", "-o", library, os.path.join(self.root, path + ".cpp")] + list(options), check=True)
        return library


class Layering(Planted):
    def check_one(self, path, include, wrong):
        self.write(path, "#pragma once\n#include %s\n" % include)
        self.assertEqual(found(layering.check(self.root)), [(path, 2)] if wrong else [])

    def test_each_arrow_that_is_allowed(self):
        for path, include in (("inject/core/a.hpp", '"schema/ids.hpp"'), ("inject/sources/torch/a.hpp", '"inject/core/emit.hpp"'),
                              ("agent/drain/a.hpp", '"agent/attach/watch.hpp"'), ("agent/control/a.hpp", "<zmq.hpp>"),
                              ("tools/ringside/a.hpp", '"viewer_export/out/table.hpp"'), ("tests/unit/a.hpp", '"inject/core/emit.hpp"'),
                              ("viewer_export/load/a.hpp", '"schema/dump_generated.h"'), ("schema/a.hpp", "<cstdint>")):
            with self.subTest(path=path, include=include):
                self.check_one(path, include, wrong=False)

    def test_each_arrow_that_is_not(self):
        for path, include in (("schema/a.hpp", '"inject/core/emit.hpp"'), ("schema/a.hpp", "<flatbuffers/flatbuffers.h>"),
                              ("schema/a.hpp", '"schema/dump_generated.h"'), ("inject/core/a.hpp", '"inject/sources/torch/rpc.hpp"'),
                              ("inject/core/a.hpp", '"agent/attach/watch.hpp"'), ("inject/a.hpp", "<spdlog/spdlog.h>"),
                              ("agent/correlate/a.hpp", '"agent/control/link.hpp"'), ("agent/correlate/a.hpp", "<zmq.hpp>"),
                              ("agent/clock/a.hpp", "<sys/socket.h>"), ("agent/attach/a.hpp", '"agent/drain/drainer.hpp"'),
                              ("agent/a.hpp", '"viewer_export/model/job.hpp"'), ("agent/a.hpp", '"inject/core/emit.hpp"'),
                              ("viewer_export/model/a.hpp", '"viewer_export/load/frames.hpp"'), ("viewer_export/a.hpp", '"agent/clock/model.hpp"'),
                              ("viewer_export/a.hpp", '"tools/ringside/words.hpp"'), ("tools/a.hpp", '"agent/drain/drainer.hpp"'),
                              ("tools/a.hpp", '"inject/core/emit.hpp"'), ("tools/a.hpp", '"tests/unit/a.hpp"')):
            with self.subTest(path=path, include=include):
                self.check_one(path, include, wrong=True)
                os.remove(os.path.join(self.root, path))


class Tree(Planted):
    def test_clean(self):
        for check in (tree.top_level, tree.readmes, tree.sizes, tree.words):
            self.assertEqual(found(check(self.root)), [])

    def test_a_file_too_many_or_too_few_at_the_top(self):
        self.write("notes.txt", "x\n")
        os.remove(os.path.join(self.root, "CONTRIBUTING.md"))
        self.assertEqual(found(tree.top_level(self.root)), [("notes.txt", 0), ("CONTRIBUTING.md", 0)])

    def test_dot_files_are_free(self):
        self.write(".editorconfig", "x\n")
        self.assertEqual(found(tree.top_level(self.root)), [])

    def test_a_folder_without_readme(self):
        os.remove(os.path.join(self.root, "tests/README.md"))
        self.write("agent/drain/a.cpp", "\n")
        self.write("inject/sources/mpi/a.cpp", "\n")
        self.assertEqual(found(tree.readmes(self.root)), [("agent/drain", 0), ("inject/sources/mpi", 0), ("tests", 0)])

    def test_a_file_at_the_limit_and_one_line_beyond(self):
        self.write("agent/a.cpp", "\n" * tree.kMostLines)
        self.assertEqual(found(tree.sizes(self.root)), [])
        self.write("agent/a.cpp", "\n" * (tree.kMostLines + 1))
        self.assertEqual(found(tree.sizes(self.root)), [("agent/a.cpp", tree.kMostLines + 1)])

    def test_words_of_a_machine(self):
        self.write("agent/a.cpp", "// fine\n// see /wo" + "rk/x\n// /ho" + "me/me\n// TO" + "DO\n// deb.deb" + "ian.org\n")
        self.assertEqual(found(tree.words(self.root)), [("agent/a.cpp", line) for line in (2, 3, 4, 5)])


class Sync(Planted):
    kMutants = "import collections\nMutant = collections.namedtuple('Mutant', 'name tags file old new')\nkMutants = [%s]\n"
    kMutant = "Mutant('a', ['commit'], 'ring_writer.hpp', 'word.store(1, std::memory_order_release)', 'word.store(1, std::memory_order_relaxed)')"
    kStore = "// SYNC(commit): why.\nword.store(1, std::memory_order_release);\n"
    kLoad = "// SYNC(commit): why.\nword.load(std::memory_order_acquire);\n"

    def check(self, mutants, writer, agent):
        self.write(sync.kMutants, self.kMutants % mutants)
        self.write("schema/ring_writer.hpp", writer)
        self.write("agent/a.cpp", agent)
        return found(sync.check(self.root))

    def test_clean(self):
        self.assertEqual(self.check(self.kMutant, self.kStore, self.kLoad), [])

    def test_a_comment_of_the_ring_without_its_mutant(self):
        self.assertEqual(self.check("", self.kStore, self.kLoad), [("schema/ring_writer.hpp", 1)])

    def test_a_mutant_of_another_order_or_of_more_than_the_order(self):
        for wrong in (self.kMutant.replace("['commit']", "['free']"), self.kMutant.replace("(1, std::memory_order_relaxed", "(2, std::memory_order_relaxed"),
                      self.kMutant.replace("ring_writer", "ring_reader"), self.kMutant.replace("word", "other")):
            with self.subTest(mutant=wrong):
                self.assertEqual(self.check(wrong, self.kStore, self.kLoad), [("schema/ring_writer.hpp", 1)])

    def test_an_order_of_the_ring_without_a_comment(self):
        self.assertEqual(self.check(self.kMutant, self.kStore + "\nother.store(1, std::memory_order_release);\n", self.kLoad), [("schema/ring_writer.hpp", 4)])

    def test_a_tag_with_one_side(self):
        self.assertEqual(self.check(self.kMutant, self.kStore, "\n"), [("schema/ring_writer.hpp", 1)])
        self.assertEqual(self.check("", "\n", self.kLoad), [("agent/a.cpp", 1)])

    def test_a_source_s_tags_are_its_own(self):
        self.write("inject/sources/itt/a.cpp", self.kLoad)
        self.write("inject/sources/nvtx/a.cpp", self.kStore)
        self.assertEqual(self.check(self.kMutant, self.kStore, self.kLoad), [("inject/sources/itt/a.cpp", 1), ("inject/sources/nvtx/a.cpp", 1)])

    def test_a_comment_over_no_order(self):
        self.assertEqual(self.check(self.kMutant, self.kStore, self.kLoad + "\n// SYNC(other): why.\nword.load(std::memory_order_relaxed);\n"), [("agent/a.cpp", 4)])

    def test_a_declaration_is_no_side(self):
        self.assertEqual(self.check(self.kMutant, self.kStore + "std::atomic<int> x;  ///< SYNC(other)\n", self.kLoad), [])


class Shim(Planted):
    def setUp(self):
        super().setUp()
        self.write(shim.kExportList, "# a comment\nfirst\nsecond\n")

    def test_exports_as_listed(self):
        library = self.compile("inject/same", 'extern "C" { void first() {} void second() {} }\n', "-nostartfiles")
        self.assertEqual(found(shim.exports(self.root, library)), [])

    def test_an_export_too_many_and_one_too_few(self):
        library = self.compile("inject/other", 'extern "C" { void first() {} void third() {} }\n', "-nostartfiles")
        texts = [violation.text for violation in shim.exports(self.root, library)]
        self.assertEqual(len(texts), 2)
        self.assertIn("exports third", texts[0])
        self.assertIn("does not export second", texts[1])

    def test_needed_libraries(self):
        bare = self.compile("inject/bare", 'extern "C" int puts(const char*);\nint f() { return puts(""); }\n', "-nodefaultlibs", "-lc")
        self.assertEqual(found(shim.libraries(self.root, bare)), [])
        more = self.compile("inject/more", "int f() { return 0; }\n", "-Wl,--no-as-needed")
        self.assertIn("needs libstdc++.so.6", "".join(violation.text for violation in shim.libraries(self.root, more)))

    def test_a_cancellation_point(self):
        none = self.compile("inject/none", 'extern "C" long syscall(long, ...);\nint f() { return syscall(3, 0); }\n', "-nodefaultlibs", "-lc")
        self.assertEqual(found(shim.cancellation(self.root, none)), [])
        code = 'extern "C" int close(int);\nextern "C" long pread64(int, void*, unsigned long, long);\nlong f() { return close(0) + pread64(0, nullptr, 0, 0); }\n'
        two = self.compile("inject/two", code, "-nodefaultlibs", "-lc")
        self.assertEqual([violation.text.split("(")[0] for violation in shim.cancellation(self.root, two)], ["calls close", "calls pread64"])

    def test_a_version_beyond_the_floor(self):
        old = self.compile("inject/old", 'extern "C" int puts(const char*);\nint f() { return puts(""); }\n', "-nodefaultlibs", "-lc")
        self.assertEqual(found(shim.floor(self.root, old)), [])
        pinned = 'asm(".symver quick_exit,quick_exit@GLIBC_2.24");\n'
        new = self.compile("inject/new", pinned + 'extern "C" void quick_exit(int);\nvoid f() { quick_exit(0); }\n', "-nodefaultlibs", "-lc")
        self.assertIn("quick_exit want GLIBC_2.24", "".join(violation.text for violation in shim.floor(self.root, new)))


class Formatting(Planted):
    def test_one_space_too_many(self):
        if shutil.which("clang-format") is None:
            self.skipTest("no clang-format here")
        self.write("agent/a.cpp", "int value = 1;\n")
        self.assertEqual(found(formatting.check(self.root)), [])
        self.write("agent/a.cpp", "int fine = 1;\nint  value = 1;\n")
        self.assertEqual(found(formatting.check(self.root)), [("agent/a.cpp", 2)])


class Tidy(Planted):
    def setUp(self):
        super().setUp()
        if shutil.which("clang-tidy") is None:
            self.skipTest("no clang-tidy here")
        self.build = os.path.join(self.root, "build")
        os.makedirs(self.build)
        ours = {"XDG_CACHE_HOME": os.path.join(self.root, ".cache"), "RINGSIDE_TIDY_BUDGET_S": "60"}
        patched = unittest.mock.patch.dict(os.environ, ours)
        patched.start()
        self.addCleanup(patched.stop)
        self.write("agent/a.hpp", "#pragma once\ninline int good_name() { return 1; }\n")
        source = self.write("agent/a.cpp", '#include "agent/a.hpp"\nint caller() { return good_name(); }\n')
        command = "c++ -std=c++20 -I%s -c %s" % (self.root, source)
        self.write("build/compile_commands.json", json.dumps([{"directory": self.build, "file": source, "command": command}]))

    def check(self):
        return found(tidy.check(self.root, self.build))

    def test_a_clean_file_is_remembered_and_a_changed_header_is_seen(self):
        self.assertEqual(self.check(), [])
        self.assertEqual(len(os.listdir(tidy.cache_folder())), 1)
        self.assertEqual(self.check(), [])
        self.assertEqual(len(os.listdir(tidy.cache_folder())), 1)
        self.write("agent/a.hpp", "#pragma once\ninline int good_name() { return 1; }\ninline int BadName() { return 1; }\n")
        self.assertEqual(self.check(), [("agent/a.hpp", 3)])
        self.assertEqual(self.check(), [("agent/a.hpp", 3)])

    def test_a_wrong_name_in_the_source(self):
        self.write("agent/a.cpp", "int BadName() { return 1; }\n")
        self.assertEqual(self.check(), [("agent/a.cpp", 1)])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
