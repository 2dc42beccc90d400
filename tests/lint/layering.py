"""Includes run one way: schema <- inject, schema <- agent, schema <- viewer_export, all of them <- tools; tests use everything.

A rule is (folder, what it may include of the project, which foreign headers it must not). The longest folder that fits counts.
"""
import re

from files import Violation, lines_of, project_files

kInclude = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
kRoomPrefix = ("schema/", "inject/", "agent/", "viewer_export/", "tools/", "tests/")
kGenerated = "_generated.h"

kSockets = ("zmq", "sys/socket.h", "sys/un.h", "netinet/", "arpa/", "netdb.h")
kLibraries = ("flatbuffers/", "spdlog/", "fmt/", "boost/", "CLI/", "nlohmann/", "zmq", "xxhash.h", "zstd.h", "doctest/")

# Folder: (project prefixes allowed, foreign prefixes forbidden, may use generated FlatBuffers)
kRules = {
    "schema/": (("schema/",), kLibraries + kSockets, False),
    "inject/": (("inject/", "schema/"), kLibraries + ("sys/socket.h", "netinet/"), False),
    "inject/core/": (("inject/core/", "schema/"), kLibraries + ("sys/socket.h", "netinet/"), False),
    "agent/": (("agent/", "schema/"), ("nlohmann/", "doctest/"), True),
    "agent/attach/": (("agent/attach/", "agent/capture/engine.hpp", "schema/"), kSockets, True),
    "agent/drain/": (("agent/attach/", "agent/drain/", "agent/capture/engine.hpp", "schema/"), kSockets, True),
    "agent/dump/": (("agent/dump/", "agent/drain/", "agent/attach/", "agent/capture/engine.hpp", "schema/"), kSockets, True),
    "agent/window/": (("agent/window/", "agent/dump/", "agent/drain/", "agent/attach/", "agent/capture/engine.hpp", "schema/"), kSockets, True),
    "agent/capture/": (("agent/attach/", "agent/drain/", "agent/dump/", "agent/window/", "agent/capture/", "schema/"), kSockets, True),
    "agent/clock/": (("agent/clock/", "agent/capture/engine.hpp", "schema/"), kSockets + ("spdlog/", "boost/"), False),
    "agent/correlate/": (("agent/correlate/", "agent/clock/", "agent/capture/engine.hpp", "schema/"), kSockets + ("spdlog/", "boost/"), True),
    "agent/control/": (("agent/control/", "agent/clock/", "agent/correlate/", "agent/capture/engine.hpp", "agent/attach/beneath.hpp", "agent/attach/file_handle.hpp", "agent/attach/without_signals.hpp", "agent/dump/output_folder.hpp", "schema/"), (), True),
    "viewer_export/": (("viewer_export/", "schema/"), kSockets + ("spdlog/", "boost/", "CLI/", "nlohmann/", "doctest/"), True),
    "viewer_export/model/": (("viewer_export/model/", "schema/"), kSockets + kLibraries, False),
    "viewer_export/out/": (("viewer_export/out/", "viewer_export/model/", "schema/"), kSockets + ("spdlog/", "boost/", "flatbuffers/"), False),
    "tools/": (("tools/", "viewer_export/", "agent/control/", "agent/clock/", "agent/correlate/", "schema/"), ("boost/", "zmq", "doctest/"), True),
    "tests/": (kRoomPrefix, (), True),
}


def rule_of(path):
    fitting = [folder for folder in kRules if path.startswith(folder)]
    return kRules[max(fitting, key=len)] if fitting else None


def what_is_wrong(path, include):
    allowed, forbidden, generated = rule_of(path)
    if include.startswith(kRoomPrefix):
        if not include.startswith(allowed):
            return "includes %s: beyond its layer, which may use %s" % (include, ", ".join(allowed))
        if include.endswith(kGenerated) and not generated:
            return "includes %s: FlatBuffers are not for this folder" % include
    elif include.startswith(forbidden):
        return "includes <%s>: not for this folder" % include
    return None


def check(root):
    for path in project_files(root, ".cpp", ".hpp", ".h", ".c"):
        if rule_of(path) is None:
            continue
        for number, line in lines_of(root, path):
            include = kInclude.match(line)
            wrong = include and what_is_wrong(path, include.group(2))
            if wrong:
                yield Violation(path, number, wrong)
