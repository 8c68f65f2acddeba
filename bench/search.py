#!/usr/bin/env python3
"""Search beside the bare FTS5 query on the same index (bench_search, in processor time), a page from a
server, the size of the index, and appends meanwhile.

    bench/search.py [BUILD]      STENO_BENCH_SEARCH: messages (100,000), STENO_BENCH_SEARCH_MB: of
                                 outputs (200)
"""
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

build = sys.argv[1] if len(sys.argv) > 1 else "build"
steno = os.path.join(build, "steno")
messages = int(os.environ.get("STENO_BENCH_SEARCH") or 100000)
megabytes = int(os.environ.get("STENO_BENCH_SEARCH_MB") or 200)
top = tempfile.mkdtemp(prefix="search-", dir=os.environ.get("STENO_BENCH_DIR"))
env = dict(os.environ, STENO_STORE=top + "/store")
rng = random.Random(1)
# A vocabulary whose words are as frequent as those of a language.
vocabulary = ["w%s" % "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randrange(3, 10)))
              for _ in range(60000)]
weights = [1 / (i + 2) for i in range(len(vocabulary))]
pool = rng.choices(vocabulary, weights, k=400000)


def words(n):
    at = rng.randrange(len(pool) - n)
    return " ".join(pool[at:at + n])


def run(*args, data=None):
    return subprocess.run([steno, *args], input=data, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def append_rate(conv, seconds):
    """Appends a second, synced, one at a time."""
    p = subprocess.Popen([steno, "append", conv], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        p.stdin.write(json.dumps({"role": "user", "content": words(20)}).encode() + b"\n")
        p.stdin.flush()
        p.stdout.readline()
        count += 1
    p.stdin.close()
    p.wait()
    return count / seconds


def main():
    text = 0
    for c in range(max(1, messages // 10000)):
        run("new", "--id", "c%d" % c)
        left = min(10000, messages)
        for _ in range(left // 1000):
            batch = [{"role": "user", "content": words(40)} for _ in range(1000)]
            text += sum(len(m["content"]) for m in batch)
            run("append", "c%d" % c, "--durability", "process", data=json.dumps(batch).encode())
    run("new", "--id", "outputs")
    for i in range(max(1, megabytes // 20)):
        call = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_%d" % i, "type": "function", "function": {"name": "sh", "arguments": "{}"}}]}
        run("append", "outputs", data=json.dumps(call).encode())
        out = "\n".join(words(12) for _ in range(250000)).encode()
        out = (out * (20000000 // len(out) + 1))[:20000000]
        text += len(out)
        run("output", "outputs", "--tool", "sh", "--call", "call_%d" % i, data=out)
    run("new", "--id", "live")
    quiet = append_rate("live", 3)
    server = subprocess.Popen([steno, "serve", "--listen", "127.0.0.1:0"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    try:
        address = server.stdout.readline().decode().strip()
        host, token = address.split("//")[1].split("/#token=")
        started = time.monotonic()
        busy = append_rate("live", 3)

        def search(q):
            c = http.client.HTTPConnection(host)
            began = time.perf_counter()
            c.request("GET", "/api/search?q=" + q, headers={"Authorization": "Bearer " + token})
            answer = json.loads(c.getresponse().read())
            return time.perf_counter() - began, answer

        while search(vocabulary[5])[1]["missing"]:
            time.sleep(.2)
        caught_up = time.monotonic() - started
        asked = [vocabulary[i] for i in (3, 30, 300, 3000, 30000)] * 8
        ours = []
        for w in asked:
            took, answer = search(w)
            ours.append(took)
    finally:
        server.terminate()
        server.wait()
    folder = top + "/store/search"
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    beside = json.loads(subprocess.run([os.path.join(build, "bench", "bench_search"), top + "/store", *asked[:5]],
                                       stdout=subprocess.PIPE, check=True).stdout)
    print(json.dumps({
        "name": "search", "messages": messages, "text_mb": round(text / 1e6), "index_of_text": round(size / text, 3),
        "catch_up_seconds": round(caught_up, 1), "served_page_ms": round(statistics.median(ours) * 1e3, 2),
        "beside_fts5": beside,
        "appends_quiet": round(quiet), "appends_meanwhile": round(busy), "appends_ratio": round(busy / quiet, 2)}))


try:
    main()
finally:
    shutil.rmtree(top, ignore_errors=True)
