"""What makes and tests golden stores share: packing a store, asking a program about it, tokens.

A golden store is a folder that an earlier version wrote, packed as VERSION/NAME.tar.xz. Beside it
stands VERSION/NAME.json.xz:

    {"version": "83a6b1e", "store": NAME, "about": a sentence,
     "sent":    {"project/conversation": {seq: the message's text as it was given to append}},
     "tokens":  {"kept": [text ...], "removed": [text ...]},
     "flags":   {"project/conversation": ["dead run", "damaged", ...]},
     "answers": {question: answer}}

The answers are what the program of that version said when it was asked (`ask`). A question is a
command line without the program, such as `messages default/c --format openai --outputs stub`, or
a request of the server, such as `GET default /api/chat-sessions/c`; an answer is
{"code", "out", "err"?}. The times and ids in them are those of the store. The store's own path is
written as $STORE, and what is counted while asking is left out.
"""
import concurrent.futures
import functools
import hashlib
import io
import json
import lzma
import os
import re
import signal
import subprocess
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FORMATS = ("openai", "responses", "anthropic", "gemini", "acontext", "toolmessage2", "toolmessage",
           "chat", "legacy")
DERIVED = re.compile(
    r"(^|/)(ids\.idx|\.idx/.*|index\.db(-wal|-shm)?|recent|recent\.old|figures\.json"
    r"|runs/\.claim|runs/\.seen)$")
WORKERS = 3
# The page size in requests to the server; larger than any golden conversation.
HTTP_LIMIT = 100


# ---- JSON, token by token ----

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[^" \t\r\n]+|"', re.S)
_decode = json.JSONDecoder(strict=False).raw_decode


def tokens(text):
    """The text without the white space between its tokens; every token as it is spelled."""
    return "".join(_TOKENS.findall(text))


def members(text):
    """The members of the object that `text` is, in order: [(key, raw text of the value)]."""
    found, at = [], _skip(text, _skip(text, 0, "{"))
    while text[at] != "}":
        key, at = _decode(text, at)
        at = _skip(text, _skip(text, at, ":"))
        _, end = _decode(text, at)
        found.append((key, text[at:end]))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def elements(text):
    """The raw texts of the elements of the array that `text` is."""
    found, at = [], _skip(text, _skip(text, 0, "["))
    while text[at] != "]":
        _, end = _decode(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text, at, expected=None):
    while text[at:at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    if expected is None:
        return at
    if text[at] != expected:
        raise ValueError("%r expected at %d of %r" % (expected, at, text[:80]))
    return at + 1


# ---- packing ----

def pack(folder, path):
    """The folder as a tar.xz whose bytes depend on nothing but the folder's."""
    with lzma.open(path, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        def plain(info):
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            return info
        for name in sorted(os.listdir(folder)):
            tar.add(os.path.join(folder, name), arcname=name, filter=plain)


@functools.lru_cache(maxsize=1)
def _packed(path):
    """[(info, bytes)] of a tar, which is unpacked several times in a row."""
    with lzma.open(path) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        return [(info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar]


def unpack(path, folder):
    os.makedirs(folder)
    for info, data in _packed(path):
        target = os.path.normpath(os.path.join(folder, info.name))
        if not target.startswith(folder + os.sep):
            raise ValueError("%s leads out of the folder" % info.name)
        if info.isdir():
            os.makedirs(target, mode=0o700, exist_ok=True)
            os.chmod(target, info.mode)
        elif info.issym():
            os.symlink(info.linkname, target)
        else:
            with open(target, "wb") as out:
                out.write(data)
            os.chmod(target, info.mode)
            os.utime(target, (info.mtime, info.mtime))


def save(path, value):
    with lzma.open(path, "wt", encoding="utf-8", preset=9) as out:
        json.dump(value, out, indent=0, sort_keys=True)


def load(path):
    with lzma.open(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def golden_stores():
    """(version, name, path of the tar, path of the answers) of every store there is."""
    found = []
    for version in sorted(os.listdir(HERE)):
        folder = os.path.join(HERE, version)
        if not os.path.isdir(folder) or version.startswith(("_", ".")):
            continue
        for name in sorted(os.listdir(folder)):
            if name.endswith(".tar.xz"):
                name = name[:-len(".tar.xz")]
                found.append((version, name, os.path.join(folder, name + ".tar.xz"),
                              os.path.join(folder, name + ".json.xz")))
    return found


def hashes(folder, derived=False):
    """{path: SHA-256} of the files in a folder, except those that Steno may rebuild."""
    found = {}
    for top, dirs, names in os.walk(folder):
        for name in names + [d for d in dirs if os.path.islink(os.path.join(top, d))]:
            path = os.path.join(top, name)
            short = os.path.relpath(path, folder)
            if DERIVED.search(short) and not derived:
                continue
            if os.path.islink(path):
                found[short] = "-> " + os.readlink(path)
                continue
            with open(path, "rb") as f:
                found[short] = hashlib.sha256(f.read()).hexdigest()
    return found


# ---- asking ----

class Program:
    """A steno program and the store that it is asked about."""

    def __init__(self, path, store, scratch):
        self.path = os.path.abspath(path)
        self.store = store
        self.config = os.path.join(scratch, "config")
        os.makedirs(self.config, exist_ok=True)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("STENO", "XDG_", "OPENAI_", "LC_", "COLUMNS", "http_proxy"))}
        env.update(TZ="UTC", LC_ALL="C.UTF-8", TERM="dumb", PAGER="cat", NO_COLOR="1",
                   XDG_CONFIG_HOME=self.config, XDG_STATE_HOME=self.config,
                   XDG_DATA_HOME=self.config, OPENAI_API_KEY="none")
        env.update(more)
        return env

    def run(self, *args, stdin=b"", cwd=None, timeout=300):
        """(exit code, standard output, standard error), both as bytes."""
        done = subprocess.run([self.path, "--store", self.store, *args], input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                              env=self.environment(), timeout=timeout)
        return done.returncode, done.stdout, done.stderr

    def tidy(self, data):
        return data.decode("utf-8", "surrogateescape").replace(self.store, "$STORE")

    def answer(self, *args, err=False):
        code, out, said = self.run(*args)
        answer = {"code": code, "out": self.tidy(out)}
        if err or code:
            answer["err"] = self.tidy(said)
        return answer

    def raw(self, *args):
        """For bytes only their hash is kept."""
        code, out, said = self.run(*args)
        answer = {"code": code, "bytes": len(out), "sha256": hashlib.sha256(out).hexdigest()}
        if code:
            answer["err"] = self.tidy(said)
        return answer


def conversations(program):
    """[(project, id)] of what `ls` lists, oldest id first."""
    code, out, said = program.run("ls", "--all", "--json", "-n", "1000")
    if code:
        raise RuntimeError("ls: %s" % said.decode("utf-8", "replace"))
    items = json.loads(out)["items"]
    return sorted((i["project"], i["id"]) for i in items)


def _refs(listed):
    return [i["id"] for i in json.loads(listed["out"])["items"]] if listed["code"] == 0 else []


def runs(store):
    """[(project, run id)] of every journal, from its first line."""
    found = []
    for top, _, names in os.walk(os.path.join(store, "projects")):
        if os.path.basename(top) != "runs":
            continue
        for name in names:
            if name.startswith("."):
                continue
            with open(os.path.join(top, name), encoding="utf-8", errors="replace") as f:
                try:
                    data = json.loads(f.readline())["data"]
                except (ValueError, KeyError):
                    continue
            found.append((data["project"], data["id"]))
    return sorted(found)


def dead(store):
    """{folder: "project/conversation"} of those with a run that has no end: whoever reads one first
    completes the run."""
    found = {}
    for top, _, names in os.walk(os.path.join(store, "projects")):
        if os.path.basename(top) != "runs":
            continue
        for name in names:
            with open(os.path.join(top, name), encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
            if any('"type":"run_finished"' in line for line in lines):
                continue
            try:
                data = json.loads(lines[0])["data"]
            except (IndexError, ValueError, KeyError):
                continue
            found[os.path.relpath(os.path.dirname(top), store)] = "%s/%s" % (
                data["project"], data["conversation"])
    return found


def ask_store(program):
    """What is asked about the whole store. `stats` comes first, because it counts reads."""
    answers = {}
    stats = program.answer("stats", "--json")
    answers["stats --json"] = stats
    answers["ls --all --json"] = program.answer("ls", "--all", "--json", "-n", "1000")
    answers["trash --json"] = program.answer("trash", "--json")
    answers["token ls --json"] = program.answer("token", "ls", "--json")
    answers["check --json"] = program.answer("check", "--json")
    return answers


def ask_core(program, project, conv):
    """What may never change: the records, and the bytes of every artifact."""
    at = ("--project", project)
    name = "%s/%s" % (project, conv)
    answers = {"log %s --json" % name: program.answer("log", *at, "--json", "--", conv)}
    listed = program.answer("context", "list", *at, "--json", "-n", "1000", "--", conv)
    answers["context list %s" % name] = listed
    for ref in _refs(listed):
        answers["context read %s %s --all" % (name, ref)] = program.raw(
            "context", "read", *at, "--all", "--", conv, ref)
    return answers


def ask_views(program, project, conv):
    at = ("--project", project)
    name = "%s/%s" % (project, conv)
    answers = {"log %s" % name: program.answer("log", *at, "--no-pager", "--", conv),
               "log %s --full" % name: program.answer("log", *at, "--no-pager", "--full", "--", conv)}
    for f in FORMATS:
        for outputs in ("stub", "full"):
            question = "messages %s --format %s --outputs %s" % (name, f, outputs)
            answers[question] = program.answer("messages", *at, "--format", f, "--outputs", outputs,
                                               "--report", "--", conv, err=True)
    answers["messages %s --format chat --all" % name] = program.answer(
        "messages", *at, "--format", "chat", "--all", "--report", "--", conv, err=True)
    listed = program.answer("context", "list", *at, "--json", "-n", "1000", "--", conv)
    for ref in _refs(listed):
        here = "%s %s" % (name, ref)
        answers["context read %s" % here] = program.answer(
            "context", "read", *at, "--json", "--", conv, ref)
        answers["context read %s --line 2 --count 3" % here] = program.answer(
            "context", "read", *at, "--json", "--line", "2", "--count", "3", "--", conv, ref)
        answers["context tail %s -n 5" % here] = program.answer(
            "context", "tail", *at, "--json", "-n", "5", "--", conv, ref)
        answers["context grep %s" % here] = program.answer(
            "context", "grep", *at, "--json", "-C", "1", "-m", "5", "--", conv, ref,
            "error|fail|7")
    return answers


def ask_runs(program):
    """The events of every run. They are asked for last, because watching a dead run ends it."""
    return {"watch %s/%s" % (project, run): program.answer(
        "watch", "--project", project, "--json", "--", run)
            for project, run in runs(program.store)}


def together(jobs):
    """Calls the jobs, a few at a time, and merges the answers."""
    answers = {}
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for got in pool.map(lambda job: job(), jobs):
            answers.update(got)
    return answers


def ask(program, views=True):
    """Every question; if `views` is false, only those of the core."""
    answers = ask_store(program)
    jobs = []
    for project, conv in conversations(program):
        jobs.append(lambda p=project, c=conv: ask_core(program, p, c))
        if views:
            jobs.append(lambda p=project, c=conv: ask_views(program, p, c))
    answers.update(together(jobs))
    return answers


# ---- the server ----

class Server:
    """`steno serve` on a free port of the loopback, as a context."""

    def __init__(self, program, *args, env=None):
        self.program = program
        self.args = args
        self.env = env or {}

    def __enter__(self):
        p = self.program
        self.log = open(os.path.join(p.config, "serve.log"), "ab")
        self.process = subprocess.Popen(
            [p.path, "--store", p.store, "serve", "--listen", "127.0.0.1:0", "--json",
             *(self.args or ("--no-tools",))],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, cwd=p.config,
            env=p.environment(**self.env))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("serve said nothing and ended with %s" % self.process.wait())
        said = json.loads(line)
        self.url = "http://127.0.0.1:%d" % said["port"]
        self.token = said["address"].split("#token=")[1]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def request(self, method, path, body=None, token=None, headers=None, timeout=300):
        """(status, bytes)."""
        headers = dict(headers or {})
        headers["Authorization"] = "Bearer " + (token or self.token)
        if body is not None and not isinstance(body, bytes):
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        wanted = urllib.request.Request(self.url + path, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(wanted, timeout=timeout) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()


# Ids of requests, the port, and the end of the validity of addresses that are signed now.
_VOLATILE = re.compile(r'("(?:request_id|expire_at)":")[^"]*|([?&](?:exp|sig)=)[0-9A-Za-z_-]+'
                       r'|(http://127\.0\.0\.1:)\d+')


def ask_server(program, tokens_of):
    """{question: answer} of the server's reading routes. `tokens_of` is {project: token}."""
    answers = {}
    known = conversations(program)
    last = [b""]
    with Server(program) as server:
        def get_assets(project, conv):
            urls = json.loads(last[0]).get("data", {}).get("public_urls") or {}
            for key, asset in urls.items():
                status, body = server.request("GET", asset["url"].partition(server.url)[2])
                answers["asset %s/%s %s" % (project, conv, key)] = {
                    "code": status, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}

        def get(project, path):
            status, body = server.request("GET", path, token=tokens_of[project])
            last[0] = body
            text = program.tidy(body)
            answers["GET %s %s" % (project, path)] = {"code": status,
                                                      "out": _VOLATILE.sub(r"\1\2\3-", text)}
        for project, conv in known:
            if project not in tokens_of:
                continue
            q = urllib.parse.quote(conv, safe="")
            page = "limit=%d" % HTTP_LIMIT
            get(project, "/api/chat-sessions/" + q)
            for outputs in ("stub", "full"):
                get(project, "/api/chat-sessions/%s/messages?%s&outputs=%s&facts=1" % (
                    q, page, outputs))
            get(project, "/api/chat-sessions/%s/context" % q)
            get(project, "/v1/conversations/" + q)
            get(project, "/v1/conversations/%s/items?%s&order=asc" % (q, page))
            get(project, "/api/v1/session/%s/configs" % q)
            for f in ("acontext", "openai", "anthropic", "gemini"):
                get(project, "/api/v1/session/%s/messages?%s&format=%s" % (q, page, f))
                if f == "acontext":
                    get_assets(project, conv)
        for project in sorted(tokens_of):
            get(project, "/api/chat-sessions?limit=100")
    return answers


# ---- after a repair, and after an append ----

def ask_after(path, tar, scratch):
    """What the program answers after `check --repair`, and whether each conversation accepts a message;
    each on a fresh copy of the store."""
    answers = {}
    repaired = Program(path, os.path.join(scratch, "repaired"), scratch)
    unpack(tar, repaired.store)
    answers["repair: check --repair --json"] = repaired.answer("check", "--repair", "--json")
    answers["repair: check --json"] = repaired.answer("check", "--json")
    for project, conv in conversations(repaired):
        for question, answer in ask_core(repaired, project, conv).items():
            answers["repair: " + question] = answer
    appended = Program(path, os.path.join(scratch, "appended"), scratch)
    unpack(tar, appended.store)
    for project, conv in conversations(appended):
        code, out, said = append_one(appended, project, conv)
        answers["append %s/%s" % (project, conv)] = {
            "code": code, "seq": json.loads(out)["first_seq"] if code == 0 else None,
            "err": appended.tidy(said) if code else ""}
    return answers


APPENDED = '{"role":"user","content":"appended by another version"}'


def append_one(program, project, conv):
    return program.run("append", "--project", project, "--", conv, stdin=APPENDED.encode())
