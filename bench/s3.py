#!/usr/bin/env python3
"""bench/s3.py BUILD: bench_s3 beside curl, with an S3 server of its own (tools/deps long)."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from ceph import S3, missing  # noqa: E402

SIZE = 256 << 20
ROUNDS = 2  # before ours, and after


def by_curl(s3, name):
    """MB/s of a put and of a get."""
    begun = time.monotonic()
    s3.curl("/bench/plain", "-T", name)
    put = time.monotonic()
    s3.curl("/bench/plain", "-o", "/dev/null")
    get = time.monotonic()
    return SIZE / (put - begun) / 1e6, SIZE / (get - put) / 1e6


def measure(program):
    plain = []
    with S3() as s3, tempfile.NamedTemporaryFile(dir=os.environ.get("STENO_BENCH_DIR")) as f:
        for _ in range(SIZE >> 20):
            f.write(os.urandom(1 << 20))
        f.flush()
        s3.curl("/bench", "-X", "PUT")
        by_curl(s3, f.name)  # the first one makes the server create its pools
        plain += [by_curl(s3, f.name) for _ in range(ROUNDS)]
        # A busy server may take a while to remove an object of this size.
        env = dict(os.environ, **s3.environment("bench", STENO_S3_STALL_S="300"))
        ours = json.loads(subprocess.run([program], env=env, stdout=subprocess.PIPE,
                                         check=True).stdout)
        plain += [by_curl(s3, f.name) for _ in range(ROUNDS)]
    put, get = [statistics.median(column) for column in zip(*plain)]
    return {"curlPutMBs": round(put), "curlGetMBs": round(get), **ours,
            "putOfCurl": round(ours["putMBs"] / put, 2), "getOfCurl": round(ours["getMBs"] / get, 2)}


bench = os.path.join(sys.argv[1], "bench", "bench_s3")
if os.path.exists(bench) and not missing():
    print(json.dumps(measure(bench)))
