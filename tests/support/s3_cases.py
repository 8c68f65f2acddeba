"""What outputs in a bucket must do, whatever server holds the bucket."""
import json
import os
import random
import subprocess
import tempfile
import time

PATIENCE = int(os.environ.get("STENO_TEST_PATIENCE") or 300)
STENO = os.environ.get("STENO", "build/steno")
KEPT = ("PATH", "HOME", "TMPDIR", "LD_PRELOAD", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
        "LSAN_OPTIONS")


def lines(size, seed=1):
    """Text of about this size; no two lines are equal."""
    rng = random.Random(seed)
    out, n = [], 0
    while n < size:
        out.append("%08d %s\n" % (len(out), "%x" % rng.getrandbits(rng.randrange(40, 1200))))
        n += len(out[-1])
    return "".join(out).encode()


class Store:
    """A schema and a bucket."""

    def __init__(self, pg, schema, variables):
        self.pg, self.schema = pg, schema
        self.url = pg.url + "?schema=" + schema
        self.variables = variables

    def start(self, *args, **variables):
        env = {k: os.environ[k] for k in KEPT if k in os.environ}
        env.update(self.variables, STENO_STORE=self.url, **variables)
        return subprocess.Popen([STENO, *args], env=env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def steno(self, *args, stdin=b"", **variables):
        p = self.start(*args, **variables)
        out, err = p.communicate(stdin, timeout=PATIENCE)
        return subprocess.CompletedProcess(args, p.returncode, out, err)

    def sql(self, text):
        return self.pg.sql("SET search_path TO %s; %s" % (self.schema, text))

    def output(self, conversation, call, data, **variables):
        """Makes a call and its result; returns the ref of the output, or the run that failed."""
        self.steno("new", "--id", conversation)
        self.steno("append", conversation, stdin=json.dumps(
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": call, "type": "function", "function": {"name": "t", "arguments": "{}"}}]}
        ).encode())
        run = self.steno("output", conversation, "--tool", "t", "--call", call, "--json",
                         stdin=data, **variables)
        return run if run.returncode else (json.loads(run.stdout)["ref"] or {}).get("id")

    def bytes_of(self, conversation, ref, at=0, n=None):
        which = ["--all"] if n is None else ["--offset", str(at), "--limit", str(n)]
        run = self.steno("context", "read", conversation, ref, "--raw", *which)
        return run.stdout if run.returncode == 0 else run


def behaviours(pg, s3, check, bucket="artifacts"):
    store = Store(pg, "s3", s3.environment(bucket + "/some/prefix"))
    large, small = lines(12 << 20), lines(300 << 10, seed=2)
    ref = store.output("c", "call_1", large)
    check("an output of 12 MB is stored", isinstance(ref, str), ref)
    where = s3.objects(bucket)
    check("its bytes are one object below the prefix",
          len(where) == 1 and where[0].startswith("some/prefix/") and ref in where[0], where)
    rows = store.sql("SELECT (SELECT count(*) FROM chunk) || ' ' || (SELECT count(*) FROM stray)")
    check("and no row of the database", rows == "0 0", rows)
    whole = store.bytes_of("c", ref)
    check("it is read as it was written", whole == large,
          whole if not isinstance(whole, bytes) else len(whole))
    rng = random.Random(5)
    wrong = []
    for _ in range(12):
        at = rng.randrange(len(large))
        n = rng.choice([1, 4096, 12288])
        if store.bytes_of("c", ref, at, n) != large[at:at + n]:
            wrong.append((at, n))
    check("so is any range of it", not wrong, wrong)
    run = store.steno("context", "tail", "c", ref, "--lines", "3")
    check("and its end", run.stdout.rstrip(b"\n") == b"\n".join(large.splitlines()[-3:]), run)
    run = store.steno("context", "grep", "c", ref, "^00012345 ")
    check("a line in the middle is found",
          large.splitlines()[12345] in run.stdout, run.stdout[-600:] + run.stderr)
    other = store.output("c", "call_2", small)
    check("a small output stays in the database",
          isinstance(other, str) and len(s3.objects(bucket)) == 1
          and store.bytes_of("c", other) == small, other)
    blind = Store(pg, "s3", {})
    run = blind.steno("context", "read", "c", ref, "--raw")
    check("a process that does not know the bucket is told what to set",
          run.returncode and b"STENO_BLOBS" in run.stderr, run)
    run = store.steno("check")
    check("the store is in order", run.returncode == 0, run)
    moves(pg, s3, check, bucket, store, ref, large)


def moves(pg, s3, check, bucket, store, ref, large):
    run = store.steno("fork", "c", "--id", "f")
    check("a fork has the bytes as well", run.returncode == 0
          and store.bytes_of("f", ref) == large, run)
    check("in an object of its own", len(s3.objects(bucket)) == 2, s3.objects(bucket))
    with tempfile.TemporaryDirectory(prefix="steno-s3-copy-") as folder:
        run = store.steno("copy", "--to", folder)
        plain = subprocess.run([STENO, "--store", folder, "context", "read", "c", ref, "--raw",
                                "--all"], stdout=subprocess.PIPE, check=False)
        check("a copy into files is whole", run.returncode == 0 and plain.stdout == large, run)
        back = Store(pg, "s3back", store.variables)
        before = len(s3.objects(bucket))
        run = back.steno("copy", "--from", folder, "--to", back.url)
        check("and a copy back is in the bucket again", run.returncode == 0
              and back.bytes_of("c", ref) == large and len(s3.objects(bucket)) == before + 2,
              (run, s3.objects(bucket)))
    before = s3.objects(bucket)
    run = store.steno("rm", "f", "--yes")
    run = store.steno("trash", "--empty", "--yes")
    check("what is deleted from the trash is deleted from the bucket",
          run.returncode == 0 and len(s3.objects(bucket)) == len(before) - 1,
          (run, before, s3.objects(bucket)))
    check("and the other conversation keeps its bytes", store.bytes_of("c", ref) == large)


def death(pg, s3, check, bucket="artifacts"):
    """A writer dies in the middle of its upload."""
    store = Store(pg, "s3death", s3.environment(bucket))
    before = s3.objects(bucket)
    data = lines(26 << 20)
    store.steno("new", "--id", "c")
    store.steno("append", "c", stdin=json.dumps(
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "k", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}).encode())
    p = store.start("output", "c", "--tool", "t", "--call", "k")
    p.stdin.write(data)
    p.stdin.close()
    end = time.monotonic() + PATIENCE
    while store.sql("SELECT count(*) FROM stray WHERE upload <> ''") == "0":
        if p.poll() is not None or time.monotonic() > end:
            break
        time.sleep(0.005)
    p.kill()
    p.wait()
    p.stdout.close()
    p.stderr.close()
    noted = store.sql("SELECT count(*) FROM stray")
    check("an upload that was killed is noted", noted == "1", noted)
    store.sql("UPDATE stray SET lease = '-infinity'")
    run = store.steno("trash", "--empty", "--yes")
    check("and the process that checks its lease removes it",
          run.returncode == 0 and store.sql("SELECT count(*) FROM stray") == "0"
          and s3.objects(bucket) == before and not s3.unfinished(bucket),
          (run, s3.objects(bucket), s3.unfinished(bucket)))
    ref = store.output("c", "k2", data)
    check("the store goes on", isinstance(ref, str) and store.bytes_of("c", ref) == data, ref)


def untouched(store, s3, bucket, before):
    """Nothing of a failed output is left: no object, no upload, no stray, no record, no closed row."""
    return (s3.objects(bucket), s3.unfinished(bucket), store.sql(
        "SELECT (SELECT count(*) FROM stray) || ' ' || (SELECT count(*) FROM artifact WHERE state ="
        " 1) || ' ' || (SELECT count(*) FROM record)")) == before


def refusals(pg, s3, check, bucket="artifacts"):
    store = Store(pg, "s3refused", s3.environment(bucket))
    data = lines(9 << 20)
    store.output("c", "first", b"small")
    store.steno("append", "c", stdin=json.dumps(
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "k", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}).encode())
    before = (s3.objects(bucket), s3.unfinished(bucket), store.sql(
        "SELECT (SELECT count(*) FROM stray) || ' ' || (SELECT count(*) FROM artifact WHERE state ="
        " 1) || ' ' || (SELECT count(*) FROM record)"))

    def refused(sentence, word, code=None, **variables):
        run = store.steno("output", "c", "--tool", "t", "--call", "k", stdin=data, **variables)
        getattr(s3, "faults", {}).clear()  # what it could not remove then is removed now
        store.steno("trash", "--empty", "--yes")
        check(sentence, run.returncode in ((code,) if code else (2, 3, 5, 1)) and word in run.stderr.lower()
              and run.stderr.count(b"\n") == 1 and untouched(store, s3, bucket, before),
              (run.returncode, run.stdout[-300:], run.stderr, before))
    refused("a wrong secret is one clear line, and nothing is half done", b"signature",
            AWS_SECRET_ACCESS_KEY="wrong")
    refused("so is a key that nobody has", b"accesskeyid", AWS_ACCESS_KEY_ID="NOBODY")
    refused("so is a bucket that does not exist", b"nosuchbucket",
            STENO_BLOBS="s3://nosuch-bucket?endpoint=" + s3.endpoint)
    refused("so is a server that is not there", b"connect",
            STENO_BLOBS="s3://%s?endpoint=http://127.0.0.1:1" % bucket)
    refused("so are keys that were not given", b"aws_access_key_id", AWS_ACCESS_KEY_ID="")
    refused("so is a URL that cannot be read", b"s3://", STENO_BLOBS="http://x")
    refused("so is an unknown parameter", b"unknown parameter",
            STENO_BLOBS="s3://%s?endpoint=%s&colour=red" % (bucket, s3.endpoint))
    return store, data, refused
