#!/usr/bin/env python3
"""How long a command that prints 256 MiB takes through `steno run` and through `steno exec`, beside
`cmd > file; sync`: wall-clock time, and processor time of all processes.

  bench/commands.py [BUILD]

Each is run in turn, five times with nothing else and five times beside busy loops that are started
here and ended by their own clock at the latest. The ratios are medians, with their least and their
greatest. STENO_BENCH_COMMANDS is the size in MiB, STENO_BENCH_BUSY how many busy loops (six for each
core), and STENO_BENCH_BEFORE another program of Steno to compare with."""
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
BUSY_SECONDS = 300
build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STENO_BUILD", "build"))
size = int(os.environ.get("STENO_BENCH_COMMANDS", "256")) << 20
busy = int(os.environ.get("STENO_BENCH_BUSY", 6 * len(os.sched_getaffinity(0))))
before = os.environ.get("STENO_BENCH_BEFORE")
command = "yes %s | head -c %d" % ("x" * 63, size)


def spent(argv, env, folder):
    """Wall-clock time and processor time, in seconds."""
    a = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(argv, check=True, env=env, cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - start
    b = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, b.ru_utime - a.ru_utime + b.ru_stime - a.ru_stime


def measure(programs, folder, load):
    figures = {name: [] for name in ["plain", *programs]}
    for _ in range(ROUNDS):
        plain = ["sh", "-c", "%s > plain; sync plain" % command]
        figures["plain"].append(spent(plain, os.environ, folder))
        os.unlink(os.path.join(folder, "plain"))
        for name, (program, verb) in programs.items():
            store = os.path.join(folder, "store")
            env = {k: v for k, v in os.environ.items() if not k.startswith(("STENO_", "OPENAI_"))}
            env.update(STENO_STORE=store, XDG_CONFIG_HOME=os.path.join(folder, "config"))
            subprocess.run([program, "new", "--id", "c"], check=True, env=env, stdout=subprocess.DEVNULL)
            arguments = ["run", "c", "--yes", "--script", "script.json", "--prompt", "go"] if verb == "run" else \
                ["exec", "--json", "c", "--", "sh", "-c", command]
            figures[name].append(spent([program, *arguments], env, folder))
            shutil.rmtree(store)
    for name, (_, verb) in programs.items():
        wall = [own[0] / base[0] for own, base in zip(figures[name], figures["plain"])]
        used = [own[1] / base[1] for own, base in zip(figures[name], figures["plain"])]
        print(json.dumps({
            "bench": "commands", "through": name, "bytes": size, "busy_loops": load,
            "seconds": round(statistics.median(f[0] for f in figures[name]), 3),
            "baseline": "cmd > file; sync",
            "baseline_seconds": round(statistics.median(f[0] for f in figures["plain"]), 3),
            "ratio": round(statistics.median(wall), 2), "least": round(min(wall), 2), "greatest": round(max(wall), 2),
            "processor_seconds": round(statistics.median(f[1] for f in figures[name]), 3),
            "processor_ratio": round(statistics.median(used), 2),
            "processor_least": round(min(used), 2), "processor_greatest": round(max(used), 2)}), flush=True)


# So that a signal from outside ends the busy loops as well.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
with tempfile.TemporaryDirectory(dir=os.environ.get("STENO_BENCH_DIR")) as folder:
    own = os.path.join(build, "steno")
    programs = {"run": (own, "run"), "exec": (own, "exec")}
    if before:
        programs["run before"] = (os.path.abspath(before), "run")
    with open(os.path.join(folder, "script.json"), "w") as f:
        call = {"id": "a", "name": "execute_command", "arguments": {"shell": command}}
        json.dump({"replies": [{"calls": [call]}, {"text": "done"}]}, f)
    measure(programs, folder, 0)
    loops = []
    try:
        for _ in range(busy):
            loops.append(subprocess.Popen(["timeout", str(BUSY_SECONDS), "sh", "-c", "while :; do :; done"]))
        measure(programs, folder, busy)
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()
