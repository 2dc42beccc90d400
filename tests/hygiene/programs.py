"""Ordinary programs with output that is the same each time: what the transparency test runs with and without the shim.

A program is (name, argv, stdin); argv runs in an empty folder. PREPARED files lie beside it as ../prepared/<name>.
"""
import os
import random

kLines = "".join("%d %s line\n" % (n * 7919 % 1000, "abcdefghij"[n % 10]) for n in range(400))
kMakefile = "all: a b c d\na b c d:\n\t@echo making $@; sh -c 'echo $@ > $@.out'; cat $@.out\n"
kFailingMakefile = "all:\n\t@echo before\n\t@false\n"
kSource = "#include <stdio.h>\nint main(void) { int wrong = 1 / 1; printf(\"%d\\n\", wrong); return 3; }\n"
kPythonFork = "import os\npid = os.fork()\nif not pid: os._exit(5)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"
kPythonThreads = "import threading\nt = [threading.Thread(target=sum, args=(range(9),)) for _ in range(8)]\n[x.start() for x in t]; [x.join() for x in t]; print(len(t))"
kPythonPool = ("import multiprocessing as m\nif __name__ == '__main__':\n  pool = m.get_context('%s').Pool(2)\n"
               "  print(pool.map(abs, range(-9, 0))); pool.close(); pool.join()")
kPythonPath = "import os, sys\nprint(sys.path, os.environ.get('PYTHONPATH'), 'sitecustomize' in sys.modules, 'ringside' in sys.modules, sorted(sys.modules))"
kPerlFork = "my $p = fork // die; if (!$p) { print qq(child\\n); exit 4 } waitpid $p, 0; print $? >> 8, qq(\\n); exec q(echo), q(end)"
kBashPipes = "x=$(echo sub | tr a-z A-Z); echo $x; cat <(echo one) <(echo two); (exit 3); echo $?; for i in 1 2 3; do echo $i & wait; done; true | false; exit 7"


def prepare(folder):
    """The input files, made once."""
    files = {"lines": kLines, "other": kLines.replace("7", "8"), "main.c": kSource, "many/Makefile": kMakefile, "failing/Makefile": kFailingMakefile,
             **{"torch_%s.py" % name.replace(" ", "_"): "import torch\n" + code for name, code in kTorch.items()}, "pool_fork.py": kPythonPool % "fork", "pool_spawn.py": kPythonPool % "spawn"}
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
    with open(os.path.join(folder, "noise"), "wb") as out:
        out.write(random.Random(4).randbytes(3 << 20))


def all_of(python):
    """@param python  the interpreter of the Python programs"""
    lines, other, noise = ("../prepared/" + name for name in ("lines", "other", "noise"))
    small = [
        ("true", ["true"]), ("false", ["false"]), ("echo", ["echo", "a", "b"]), ("printf", ["printf", "%s-%d\n", "x", "7"]),
        ("seq", ["seq", "1", "3", "40"]), ("wc", ["wc", lines]), ("uniq", ["uniq", "-c", lines]), ("cut", ["cut", "-d ", "-f2", lines]),
        ("tr", ["tr", "a-z", "A-Z"], kLines), ("head", ["head", "-n3", lines]), ("tail", ["tail", "-n3", lines]), ("tac", ["tac", lines]),
        ("nl", ["nl", lines]), ("od", ["od", "-c", lines]), ("base64", ["base64", lines]), ("sha256sum", ["sha256sum", noise]), ("cksum", ["cksum", noise]),
        ("join", ["join", lines, other]), ("fold", ["fold", "-w9", lines]), ("factor", ["factor", "123456789"]), ("expr", ["expr", "6", "*", "7"]),
        ("ls of nothing", ["ls", "nothing"]), ("cat of nothing", ["cat", lines, "nothing"]), ("split", ["split", "-l", "50", lines]),
        ("dd", ["dd", "if=" + noise, "of=copy", "bs=64k", "count=8", "status=none"]), ("tee", ["tee", "copied"], kLines), ("nice", ["nice", "-n", "1", "echo", "nice"]),
        ("env", ["env", "echo", "through"]), ("xargs", ["xargs", "-n2", "-P1", "echo"], "a b c d e"), ("find", ["find", "../prepared", "-name", "*.py", "-newer", "/"]),
        ("grep", ["grep", "-c", "^7.* b", lines]), ("grep without a match", ["grep", "nothing", lines]), ("sed", ["sed", "-n", "s/^1\\(.*\\)/<\\1>/p", lines]),
        ("awk", ["awk", "{ s += $1 } END { print s }", lines]), ("diff", ["diff", lines, other]), ("tar", ["sh", "-c", "tar cf - ../prepared/many 2>/dev/null | tar tf -"]),
        ("gzip", ["sh", "-c", "gzip -nc %s | gunzip | sha256sum" % lines]), ("timeout", ["timeout", "-s", "KILL", "9", "echo", "in time"]),
        ("perl", ["perl", "-ne", "print scalar reverse"], kLines), ("perl, fork and exec", ["perl", "-e", kPerlFork]),
    ]
    shells = [
        ("sh pipeline", ["sh", "-c", "sort %s | uniq | grep a | wc -l; echo end >&2; exit 9" % lines]), ("bash", ["bash", "-c", kBashPipes]),
        ("bash, exec", ["bash", "-c", "exec bash -c 'exec echo last'"]), ("bash, killed", ["bash", "-c", "echo before; kill -TERM $$"]),
        ("sh, a child killed", ["sh", "-c", "sh -c 'kill -SEGV $$'; echo $?"]), ("sh, background", ["sh", "-c", "sleep 0.01 & sleep 0.02 & wait; echo both"]),
    ]
    pythons = [
        ("python", [python, "-c", "print(sum(range(9)))"]), ("python, raising", [python, "-c", "raise SystemExit('told')"]), ("python -I", [python, "-I", "-c", kPythonPath]),
        ("python -S", [python, "-S", "-c", kPythonPath]), ("python, modules", [python, "-c", kPythonPath]), ("python, fork", [python, "-c", kPythonFork]),
        ("python, subprocess", [python, "-c", "import subprocess; print(subprocess.run(['sh', '-c', 'echo x; exit 2'], capture_output=True))"]),
        ("python, threads", [python, "-c", kPythonThreads]), ("python, pool by fork", [python, "../prepared/pool_fork.py"]),
        ("python, pool by spawn", [python, "../prepared/pool_spawn.py"]),
    ]
    debians = [
        ("xz", ["sh", "-c", "xz -T2 --block-size=512KiB -c %s | tee packed.xz | xz -T2 -dc | sha256sum" % noise]), ("sort, threaded", ["sort", "--parallel=2", "-S", "1M", lines, other]),
        ("make", ["make", "-f", "../prepared/many/Makefile"]), ("make, failing", ["make", "-f", "../prepared/failing/Makefile"]),
        ("gcc", ["gcc", "-S", "-o", "-", "-O1", "../prepared/main.c"]), ("gcc and run", ["sh", "-c", "gcc -o made ../prepared/main.c && ./made"]),
        ("git", ["sh", "-c", "git init -q . && echo a > a && git add a && git -c user.name=n -c user.email=e commit -qm one && git log --format=%s%n%T --stat"]),
    ]
    return [one if len(one) == 3 else one + ("",) for one in small + shells + pythons + debians]


# Frameworks are where we do have something to do: the same demand, on torch.
kTorch = {
    "training": "torch.manual_seed(3)\nm = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))\n"
                "o = torch.optim.SGD(m.parameters(), lr=0.1)\nx = torch.randn(16, 8)\n"
                "for i in range(5):\n  o.zero_grad(); l = m(x).pow(2).mean(); l.backward(); o.step(); print('%.9f' % l.item())",
    "data loader": "from torch.utils.data import DataLoader, TensorDataset\nd = TensorDataset(torch.arange(12.).reshape(6, 2))\n"
                   "for b, in DataLoader(d, batch_size=2, num_workers=2): print(b.tolist())",
    "script": "@torch.jit.script\ndef f(x):\n  y = x\n  for i in range(3):\n    y = y * 2 + i\n  return y\nprint(f(torch.arange(4)).tolist())",
    "raising": "print(torch.ones(3).sum())\ntorch.ones(2, 3) @ torch.ones(2, 3)",
    "fork and threads": "import os, threading\nt = [threading.Thread(target=lambda: torch.ones(9).sum()) for _ in range(6)]\n[x.start() for x in t]; [x.join() for x in t]\n"
                        "p = os.fork()\nif not p:\n  print(torch.ones(3).sum().item(), flush=True); os._exit(3)\nprint(os.waitpid(p, 0)[1] >> 8)\nraise SystemExit(11)",
}
