"""Which of the symbols that the torch source goes by (inject/sources/torch/abi.hpp) this machine's torch exports, and calls through slots."""
import glob
import os
import re
import subprocess

import elf
from harness import Failed, kPython, kSource

# Of those that differ by version: one of each group is enough.
kEither = (("kPipeWriteByValue", "kPipeWriteByReference"), ("kReportMemory", "kReportMemorySigned"), ("kMarkErrorNewString", "kMarkErrorOldString"), ("kRemoteNameNewString", "kRemoteNameOldString"),
           ("kRangeBeforeText", "kRangeBeforeVariant"), ("kGlooExecuteByValue", "kGlooExecuteByReference"))
# Those that are written into slots; the others are called.
kHooked = ("kSend", "kPipeWrite", "kPipeRead", "kServe", "kMarkError", "kMarkComplete", "kRespond", "kPoolRun", "kGlooEnqueue", "kGlooExecute", "kMemoryNew", "kMemoryDelete")


def symbols():
    """{constant: mangled name}, of the header's text."""
    with open(os.path.join(kSource, "inject", "sources", "torch", "abi.hpp")) as file:
        text = re.sub(r"//[^\n]*", "", file.read()).replace("\\\n", " ")
    macros = {}
    found = {}
    for line in re.finditer(r"^#define (RS_\w+) (.+)$|inline constexpr char (\w+)\[\] =([^;]+);", text, re.M):
        macro, value, constant, pieces = line.groups()
        name = "".join(macros[word] if word in macros else word[1:-1] for word in re.findall(r'RS_\w+|"[^"]*"', value or pieces))
        if macro:
            macros[macro] = name
        else:
            found[constant] = name
    return found


def libraries():
    done = subprocess.run([kPython, "-c", "import os, torch; print(os.path.join(os.path.dirname(torch.__file__), 'lib')); print(torch.__version__)"],
                          stdout=subprocess.PIPE, text=True, check=False, timeout=100)
    if done.returncode != 0:
        raise Failed("import torch: status %d" % done.returncode)
    folder, version = done.stdout.split("\n")[:2]
    # Debian's lie in the loader's own folder.
    found = glob.glob(os.path.join(folder, "lib*.so*")) + glob.glob("/usr/lib/x86_64-linux-gnu/lib*torch*.so") + glob.glob("/usr/lib/x86_64-linux-gnu/libtensorpipe*.so*")
    return version, sorted({os.path.realpath(path) for path in found if re.match(r"lib(torch|c10|tensorpipe)", os.path.basename(path)) and os.path.exists(path)})


def tell(lab):
    version, paths = libraries()
    wanted = symbols()
    exported, slots = set(), set()
    for path in paths:
        library = elf.Elf(path)
        exported |= library.exported(wanted.values())
        slots |= library.slots(wanted.values())
    lab.findings.figure("torch", version)
    lab.findings.expect("the header names symbols", len(wanted) > 25 and all(name.startswith("_Z") for name in wanted.values()), "%d" % len(wanted))
    missing = []
    for constant, name in sorted(wanted.items()):
        hooked = constant.startswith(kHooked)
        has = name in exported, name in slots
        lab.findings.figure(constant, "exported" * has[0] + (" and in slots" if has[1] else "") or "missing")
        good = has[0] and (has[1] or not hooked)
        if not good and not any(constant in group and any(other != constant and wanted[other] in exported for other in group) for group in kEither):
            missing.append(constant)
    lab.findings.expect("each hook finds its symbol, and a slot where it needs one", not missing, "missing: %s" % missing if missing else "%d symbols" % len(wanted))
