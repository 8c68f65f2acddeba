"""What the tests of the command line share: sentences, a store of their own, the program.

A test is a function with @test("a sentence about behaviour"). It gets a fresh Store and fails by
an assertion; what the last command answered is printed beside it.
"""
import json
import os
import subprocess
import sys
import tempfile
import traceback

STENO = os.environ.get("STENO", "build/steno")
# Seconds. No machine is this slow: waiting longer means waiting for something that never happens.
PATIENCE = int(os.environ.get("STENO_TEST_PATIENCE") or 300)
TMP = os.environ.get("STENO_TEST_TMP") or tempfile.mkdtemp(prefix="steno-cli-")
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}

_tests = []


def test(sentence):
    def add(function):
        _tests.append((sentence, function))
        return function
    return add


class Answer:
    def __init__(self, process, out, err):
        self.code = process.returncode
        self.raw = out or b""
        self.out = self.raw.decode("utf-8", "replace")
        self.err = (err or b"").decode("utf-8", "replace")

    def json(self):
        return json.loads(self.raw)

    def lines(self):
        return [json.loads(line) for line in self.raw.splitlines()]

    def __repr__(self):
        return "exit %s\nstdout: %s\nstderr: %s" % (self.code, self.out[:1500], self.err[:1500])


class Store:
    """A store in a folder of its own; calling it runs the program on it."""

    def __init__(self, name):
        self.path = os.path.join(TMP, name)
        self.last = None

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("STENO_")}
        env.update(STENO_STORE=self.path, TERM="dumb", PAGER="cat")
        env.update(more)
        return env

    def __call__(self, *args, stdin=b"", code=0, env=None, **more):
        if isinstance(stdin, str):
            stdin = stdin.encode()
        elif not isinstance(stdin, bytes):
            stdin = json.dumps(stdin).encode()
        process = subprocess.Popen([STENO, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env(**(env or {})), **more)
        out, err = process.communicate(stdin, timeout=PATIENCE)
        self.last = Answer(process, out, err)
        if code is not None:
            assert self.last.code == code, "%s: exit %d expected\n%r" % (
                " ".join(args), code, self.last)
        return self.last

    def new(self, conv="c", *messages):
        self("new", "--id", conv)
        if messages:
            self("append", conv, stdin=list(messages))
        return conv

    def messages(self, conv="c", *args):
        return self("messages", conv, *args).json()


def one_line(answer, *words):
    """Exactly one line on standard error that begins as errors do and holds these words."""
    assert answer.err.startswith("steno: ") and answer.err.count("\n") == 1, repr(answer)
    for word in words:
        assert word in answer.err, "%r is not in: %s" % (word, answer.err)


class Skip(Exception):
    """Why a test cannot be made here."""


def run():
    failed = 0
    print("1..%d" % len(_tests))
    for number, (sentence, function) in enumerate(_tests, 1):
        store = Store("store-%d" % number)
        try:
            function(store)
            print("ok %d - %s" % (number, sentence))
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (number, sentence, why))
        except Exception:  # every kind of failure is this test's own
            failed += 1
            print("not ok %d - %s" % (number, sentence))
            for line in traceback.format_exc().splitlines()[-12:]:
                print("# " + line)
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
