"""Writers that send their messages one after the other, each until it has its receipt, whatever
becomes of the database meanwhile; and what must hold of the store then."""
import json
import os
import subprocess
import threading
import time

STENO = os.environ.get("STENO", "build/steno")
PATIENCE = int(os.environ.get("STENO_TEST_PATIENCE") or 300)
CONVERSATIONS = 4

# How long an append waits for the standby where it is there.
AS_LONG_AS_IT_TAKES = 2 * PATIENCE * 1000


def environment(url, commit_ms):
    env = {k: v for k, v in os.environ.items() if not k.startswith("STENO_")}
    return dict(env, STENO_STORE=url, STENO_PG_COMMIT_MS=str(commit_ms))


def start(url, *args, commit_ms=AS_LONG_AS_IT_TAKES):
    return subprocess.Popen([STENO, *args], env=environment(url, commit_ms), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def steno(url, *args, stdin=b"", commit_ms=AS_LONG_AS_IT_TAKES):
    p = start(url, *args, commit_ms=commit_ms)
    out, err = p.communicate(stdin, timeout=PATIENCE)
    return subprocess.CompletedProcess(args, p.returncode, out, err)


def message(name):
    return json.dumps({"id": name, "role": "user", "content": "this is " + name}).encode() + b"\n"


def wait_for(look, what):
    end = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def stored(url, conversation):
    """[(seq, id)] of what a reader sees."""
    run = steno(url, "log", conversation, "--json")
    return [(r["seq"], r["id"]) for r in map(json.loads, run.stdout.splitlines())]


class Writer(threading.Thread):
    def __init__(self, url, n, ending):
        super().__init__(daemon=True)
        self.url, self.n, self.ending = url, n, ending
        self.conversation = "c%d" % (n % CONVERSATIONS)
        self.receipts = {}
        self.doubts = 0
        self.strange = []

    def run(self):
        i, process = 0, None
        while not self.ending.is_set() or process is None:
            process = process or start(self.url, "append", self.conversation, commit_ms=10000)
            name = "w%d-%d" % (self.n, i)
            try:
                process.stdin.write(message(name))
                process.stdin.flush()
            except BrokenPipeError:
                pass
            line = process.stdout.readline()
            if line:
                self.receipts[name] = json.loads(line)["first_seq"]
                i += 1
                continue
            err = process.stderr.read()
            if process.wait(PATIENCE) != 5:
                self.strange.append(err)
                return
            self.doubts += b"in doubt" in err
            process = None
        process.stdin.close()
        process.wait(PATIENCE)


class Writers:
    """As many as `count`, to a few conversations of the store."""

    def __init__(self, url, count):
        self.url = url
        self.ending = threading.Event()
        for k in range(CONVERSATIONS):
            steno(url, "new", "--id", "c%d" % k)
        self.all = [Writer(url, n, self.ending) for n in range(count)]
        for w in self.all:
            w.start()

    def wait_on(self, what="every writer goes on"):
        """Until each has another receipt."""
        seen = [len(w.receipts) for w in self.all]
        wait_for(lambda: all(len(w.receipts) > n or w.strange for w, n in zip(self.all, seen)), what)

    def end(self):
        self.ending.set()
        for w in self.all:
            w.join(PATIENCE)

    def judge(self, what, check):
        """When they have ended."""
        strange = [s for w in self.all for s in w.strange]
        check("%d writers go on by themselves over %s" % (len(self.all), what), not strange, strange)
        lost, twice, moved, gaps, total = [], [], [], [], 0
        for k in range(CONVERSATIONS):
            there = stored(self.url, "c%d" % k)
            seqs = [seq for seq, _ in there]
            names = {name: seq for seq, name in there}
            total += len(there)
            if len(names) != len(there):
                twice.append(k)
            if seqs != list(range(1, len(seqs) + 1)):
                gaps.append(k)
            for w in self.all:
                if w.conversation != "c%d" % k:
                    continue
                lost += [n for n in w.receipts if n not in names]
                moved += [n for n, seq in w.receipts.items() if names.get(n, seq) != seq]
        print("# %d messages, %d ends in doubt" % (total, sum(w.doubts for w in self.all)))
        check("no acknowledged message is lost", not lost, lost)
        check("none is there twice", not twice, twice)
        check("each has the seq of its receipt", not moved, moved)
        check("no seq is missing", not gaps, gaps)
        run = steno(self.url, "check")
        check("and the store is in order", run.returncode == 0, run)
