#!/usr/bin/env python3
"""Importing a large transcript beside `jq -c .` on the same file, and again when nothing changed.

    bench/import.py [BUILD]      STENO_BENCH_IMPORT_MB: size of the file, 256 unless told

Rates are of processor time (user and system), because the disk of a busy machine says nothing.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

build = sys.argv[1] if len(sys.argv) > 1 else "build"
size = int(os.environ.get("STENO_BENCH_IMPORT_MB") or 256) << 20
top = tempfile.mkdtemp(prefix="import-", dir=os.environ.get("STENO_BENCH_DIR"))
path = os.path.join(top, "rollout.jsonl")
text = ("The record of a conversation is kept as it was written. " * 20)[:900]


def line(kind, payload):
    return json.dumps({"timestamp": "2026-11-15T14:32:52.000Z", "type": kind, "payload": payload},
                      separators=(",", ":")) + "\n"


with open(path, "w") as f:
    written = f.write(line("session_meta", {"id": "bench", "cwd": "/x", "cli_version": "1"}))
    n = 0
    while written < size:
        n += 1
        written += f.write(
            line("response_item", {"type": "message", "id": "u%d" % n, "role": "user",
                                   "content": [{"type": "input_text", "text": text}]}) +
            line("response_item", {"type": "function_call", "id": "f%d" % n, "name": "exec", "call_id": "c%d" % n,
                                   "arguments": "{\"cmd\":\"ls\"}"}) +
            line("response_item", {"type": "function_call_output", "id": "o%d" % n, "call_id": "c%d" % n,
                                   "output": text}) +
            line("response_item", {"type": "message", "id": "a%d" % n, "role": "assistant",
                                   "content": [{"type": "output_text", "text": text, "annotations": []}]}))

MEASURE = """
import os, sys
null = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime, usage.ru_stime, usage.ru_maxrss)
"""


def measure(*argv):
    started = time.monotonic()
    out = subprocess.run([sys.executable, "-c", MEASURE, *argv], env=dict(os.environ, STENO_STORE=top + "/store"),
                         stdout=subprocess.PIPE, check=True).stdout.split()
    assert out[0] == b"0", argv
    user, system, memory = float(out[1]), float(out[2]), int(out[3])
    return {"seconds": round(time.monotonic() - started, 2), "user": round(user, 2), "system": round(system, 2),
            "mb_per_cpu_second": round(written / 1e6 / (user + system), 1), "peak_kib": memory}


try:
    steno = os.path.join(build, "steno")
    first = measure(steno, "import", path, "--quiet")
    again = measure(steno, "import", path, "--quiet")
    result = {"name": "import_jsonl", "mb": round(written / 1e6), "import": first, "again": again}
    if shutil.which("jq"):
        result["jq"] = measure("jq", "-c", ".", path)
        result["ratio"] = round(result["jq"]["user"] / (first["user"] + first["system"]), 2)
    print(json.dumps(result))
finally:
    shutil.rmtree(top, ignore_errors=True)
