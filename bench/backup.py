#!/usr/bin/env python3
"""Backups of a store that is being written: what a second one costs, and what appends notice of it.

    bench/backup.py [BUILD]      STENO_BENCH_BACKUP: conversations of the larger store (4,000)

Three stores: a small one, one with ten times its conversations, and one whose conversations are
ten times as long. Each is backed up whole, then after a change of the same size in all. Times are
of the processor, because the disk of a busy machine says nothing. Eight
writers append meanwhile, and before that without a backup; their slowest appends are compared.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

build = sys.argv[1] if len(sys.argv) > 1 else "build"
steno = os.path.join(build, "steno")
large = int(os.environ.get("STENO_BENCH_BACKUP") or 4000)
top = tempfile.mkdtemp(prefix="backup-", dir=os.environ.get("STENO_BENCH_DIR"))
TEXT = "The record of a conversation is kept as it was written. " * 18


def run(store, *args, data=None):
    env = dict(os.environ, STENO_STORE=os.path.join(top, store))
    return subprocess.run([steno, *args], input=data, env=env, stdout=subprocess.PIPE, check=True).stdout


def message(text=TEXT):
    return json.dumps({"role": "user", "content": text}).encode()


def fill(store, conversations, records):
    """Forks of one conversation, which is faster than to append."""
    run(store, "new", "--id", "c0")
    run(store, "append", "c0", "--durability", "process", data=b"\n".join([message()] * records))
    for i in range(1, conversations):
        run(store, "fork", "c0", "--id", "c%d" % i)


def back_up(store):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    report = json.loads(run(store, "--json", "backup", os.path.join(top, store + "-copy")))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_ms": round(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)),
            "wall_ms": round(1e3 * (time.monotonic() - began)), "copied": report["copied"]}


def change(store):
    for i in range(10):
        run(store, "append", "c%d" % i, data=b"\n".join([message("more")] * 10))


def writers(store, stop, slowest):
    def write(n):
        env = dict(os.environ, STENO_STORE=os.path.join(top, store))
        p = subprocess.Popen([steno, "append", "c%d" % n], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while not stop.is_set():
            began = time.monotonic()
            p.stdin.write(message() + b"\n")
            p.stdin.flush()
            p.stdout.readline()
            slowest[n] = max(slowest[n], time.monotonic() - began)
        p.stdin.close()
        p.wait()
    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    return threads


def slowest_append(store, during):
    stop, slowest = threading.Event(), [0.0] * 8
    threads = writers(store, stop, slowest)
    during()
    stop.set()
    for t in threads:
        t.join()
    return round(1e3 * max(slowest), 1)


def main():
    result = {"name": "backup"}
    for store, count, records in (("small", large // 10, 50), ("many", large, 50), ("long", large // 10, 500)):
        fill(store, count, records)
        result[store] = {"conversations": count, "records": count * records, "first": back_up(store)}
        change(store)
        result[store]["after_a_change"] = back_up(store)
        result[store]["after_nothing"] = back_up(store)
    result["slowest_append_ms"] = {"alone": slowest_append("small", lambda: time.sleep(3)), "during_backups": slowest_append(
        "small", lambda: [back_up("small") for _ in range(5)])}
    print(json.dumps(result))


try:
    main()
finally:
    shutil.rmtree(top, ignore_errors=True)
