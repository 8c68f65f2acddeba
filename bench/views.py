#!/usr/bin/env python3
"""How long `steno messages` takes in each format, in processor time, beside a baseline in the same
run: another build of Steno (STENO_BENCH_BEFORE, its program), else `cat` of the log.

  bench/views.py [BUILD]

The conversation is turns of {user, assistant with a call, result, assistant}; STENO_BENCH_VIEWS says
how many messages (80,000). Each program reads a store that it wrote itself. The ratios are medians of
five interleaved rounds, with their least and their greatest."""
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 5
FORMATS = ["openai", "responses", "anthropic", "gemini"]
RESULT = 'src/base/buf.c:47: note: in a call to "buf_reserve" here\n' * 4
build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STENO_BUILD", "build"))
count = int(os.environ.get("STENO_BENCH_VIEWS", "80000"))
before = os.environ.get("STENO_BENCH_BEFORE")


def turn(i):
    call = {"id": "call_%d" % i, "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": "src/%d.c" % i})}}
    return [{"role": "user", "content": "please look at file %d and fix it" % i},
            {"role": "assistant", "content": "I will read it first.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": RESULT},
            {"role": "assistant", "content": "The buffer was too small; the test passes now."}]


def fill(program, folder):
    """A store with the conversation, in batches; returns how to read it."""
    store = [program, "--store", folder]
    conv = subprocess.run(store + ["new"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    batches = "".join(json.dumps(sum((turn(i) for i in range(at, at + 200)), [])) + "\n"
                      for at in range(0, count // 4, 200))
    subprocess.run(store + ["append", conv, "--durability", "process"], check=True, input=batches,
                   text=True, stdout=subprocess.DEVNULL)
    return store + ["messages", conv, "--format"]


def spent(command):
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime


with tempfile.TemporaryDirectory(dir=os.environ.get("STENO_BENCH_DIR")) as folder:
    own = fill(os.path.join(build, "steno"), os.path.join(folder, "own"))
    log = glob.glob(os.path.join(folder, "own/projects/*/conversations/*/messages.jsonl"))
    other = fill(before, os.path.join(folder, "before")) if before else None
    for form in FORMATS:
        ratios = []
        for _ in range(ROUNDS):
            base = spent(other + [form] if other else ["cat"] + log)
            ratios.append(spent(own + [form]) / base)
        print(json.dumps({"bench": "views", "format": form, "messages": count // 4 * 4,
                          "beside": "STENO_BENCH_BEFORE" if before else "cat",
                          "ratio": round(statistics.median(ratios), 2),
                          "least": round(min(ratios), 2), "greatest": round(max(ratios), 2)}))
