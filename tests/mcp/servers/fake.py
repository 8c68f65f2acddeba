#!/usr/bin/env python3
"""An MCP server over stdio that can misbehave. Its first argument is how it opens:
legacy (knows no server/discover), silent (ignores what it does not know), fragile (dies of it),
modern (2026-07-28), stubborn (legacy, and never ends by itself), chatty (legacy, prints garbage)."""
import json, os, signal, subprocess, sys, time
sys.dont_write_bytecode = True
import large

mode = sys.argv[1] if len(sys.argv) > 1 else "legacy"
version = sys.argv[2] if len(sys.argv) > 2 else "2025-11-25"
MODERN = "2026-07-28"
pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def send(m):
    sys.stdout.write(json.dumps(dict(m, jsonrpc="2.0")) + "\n")
    sys.stdout.flush()


def result(ident, r):
    if mode == "modern":
        r["resultType"] = "complete"
    send({"id": ident, "result": r})


def text(s, **more):
    return dict({"content": [{"type": "text", "text": s}]}, **more)


NAMES = ["echo", "progress", "image", "mixed", "structured", "error", "refuse", "die", "hang", "huge",
         "environment", "family", "with.dot", "with dot", "x" * 100, "lines", "flood", "ping", "large"]
cancelled = []


def page(cursor):
    at = int(cursor or 0)
    tools = [{"name": n, "description": "does " + n, "inputSchema": {"type": "object"},
              "annotations": {"readOnlyHint": n == "echo"}} for n in NAMES[at:at + 5]]
    r = {"tools": tools}
    if at + 5 < len(NAMES):
        r["nextCursor"] = str(at + 5)
    if mode == "modern":
        r.update(ttlMs=0, cacheScope="private")
    return r


def call(ident, p):
    name, args = p["name"], p.get("arguments", {})
    token = p.get("_meta", {}).get("progressToken")
    if name == "echo":
        return result(ident, text(json.dumps(args, sort_keys=True)))
    if name == "progress":
        for i in range(1, 4):
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": i, "total": 3, "message": "step %d" % i}})
        return result(ident, text("done"))
    if name == "image":
        return result(ident, {"content": [{"type": "text", "text": "look:"},
                                          {"type": "image", "mimeType": "image/png", "data": pixel}]})
    if name == "mixed":
        return result(ident, {"content": [
            {"type": "audio", "mimeType": "audio/wav", "data": "QUJD"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "REVG"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "size": 7},
            {"type": "hologram", "x": 1}]})
    if name == "structured":
        same = args.get("same")
        return result(ident, dict(text('{ "a": [1, 2] }' if same else "words"), structuredContent={"a": [1, 2]}))
    if name == "error":
        return result(ident, text("no such file", isError=True))
    if name == "refuse":
        return send({"id": ident, "error": {"code": -32602, "message": "bad colour"}})
    if name == "die":
        sys.stderr.write("about to go\nout of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang":
        with open(os.environ["CANCELLED"] + ".asked", "a") as f:
            f.write(str(ident) + "\n")
        return None
    if name == "huge":
        return result(ident, text("h" * (11 << 20)))
    if name == "large":
        for piece in large.pieces(args, ident):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        sys.stdout.buffer.write(b"\n")
        return sys.stdout.buffer.flush()
    if name == "environment":
        fds = sorted(os.listdir("/proc/self/fd"))
        return result(ident, text(json.dumps({"env": dict(os.environ), "fds": fds})))
    if name == "family":
        # Not with setsid(1): until it has become sh, no command line contains the mark.
        subprocess.Popen(["sh", "-c", "sleep 70; : " + args["mark"]], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        return result(ident, text("born"))
    if name == "lines":
        sys.stdout.write("Debug: something\n\n{\"half\":\n[1,2,3]\n\xff\xfe\n{\"jsonrpc\":\"1.0\"}\n")
        sys.stdout.flush()
        return result(ident, text("after the noise"))
    if name == "flood":
        sys.stderr.write("e" * (1 << 20) + "\n")
        sys.stderr.flush()
        return result(ident, text("still here"))
    if name == "ping":
        send({"id": "p1", "method": "ping"})
        send({"id": "p2", "method": "sampling/createMessage", "params": {}})
        replies = [json.loads(sys.stdin.readline()) for _ in range(2)]
        return result(ident, text(json.dumps([("result" in r, "error" in r) for r in replies])))
    return send({"id": ident, "error": {"code": -32602, "message": "unknown tool " + name}})


def handle(m):
    method, ident, p = m.get("method"), m.get("id"), m.get("params", {})
    if method == "notifications/cancelled":
        cancelled.append(p["requestId"])
        with open(os.environ["CANCELLED"], "a") as f:
            f.write(str(p["requestId"]) + "\n")
        return
    if ident is None:
        return
    if mode == "modern":
        if p.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion") != MODERN:
            return send({"id": ident, "error": {"code": -32602, "message": "no version"}})
        if method == "server/discover":
            return result(ident, {"supportedVersions": [MODERN], "capabilities": {"tools": {}},
                                  "ttlMs": 0, "cacheScope": "private"})
    elif method == "server/discover":
        if mode == "silent":
            return
        if mode == "fragile":
            sys.exit(9)
    elif method == "initialize":
        return result(ident, {"protocolVersion": version, "capabilities": {"tools": {}},
                              "serverInfo": {"name": "fake", "version": "1"}})
    if method == "tools/list":
        return result(ident, page(p.get("cursor")))
    if method == "tools/call":
        return call(ident, p)
    send({"id": ident, "error": {"code": -32601, "message": "method not found"}})


if mode == "chatty":
    print("Welcome to the server!\nListening on nothing.")
for line in iter(sys.stdin.readline, ""):
    handle(json.loads(line))
while mode == "stubborn":
    time.sleep(1)
