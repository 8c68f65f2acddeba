#!/usr/bin/env python3
"""An MCP server over streamable HTTP. First argument: legacy (sessions) or modern. It prints its
port, then serves until its stdin ends. Tools: echo, stream (progress over SSE), headers, cut (a
stream that ends early), resume (one that goes on with a GET), slow, lose (forgets the session, then answers)."""
import http.server, json, sys, threading, time, base64
sys.dont_write_bytecode = True
import large

mode = sys.argv[1]
MODERN = "2026-07-28"
sessions, counter, cancelled, deleted, held = set(), [0], [], [], {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def reply(self, status, body=None, session=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if data:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.headers.get("Last-Event-ID") != "7" or self.headers.get("Mcp-Session-Id") not in sessions:
            return self.reply(405)
        held["gets"] = held.get("gets", 0) + 1
        if held["gets"] < 3:
            return self.events([], ident="7", retry=30)
        return self.events([held["answer"]])

    def events(self, messages, delay=0, ident=None, retry=None):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b": hello\n\n")
        if ident:
            self.wfile.write(("id: %s\nretry: %d\ndata:\n\n" % (ident, retry)).encode())
        for m in messages:
            text = json.dumps(m)
            self.wfile.write(("event: message\ndata: %s\ndata: %s\n\n" % (text[:1], text[1:])).encode())
            self.wfile.flush()
            time.sleep(delay)
        self.close_connection = True

    def do_DELETE(self):
        deleted.append(self.headers.get("Mcp-Session-Id"))
        self.reply(200)

    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ident, method, p = m.get("id"), m.get("method"), m.get("params", {})
        ok = lambda r: {"jsonrpc": "2.0", "id": ident, "result": dict(r, resultType="complete")}
        bad = lambda c, t: {"jsonrpc": "2.0", "id": ident, "error": {"code": c, "message": t}}
        session = self.headers.get("Mcp-Session-Id")
        if "text/event-stream" not in self.headers.get("Accept", ""):
            return self.reply(406, bad(-32000, "not acceptable"))
        if mode == "modern":
            h = self.headers
            agree = h.get("Mcp-Method") == method and h.get("MCP-Protocol-Version") == MODERN
            name = h.get("Mcp-Name")
            if name and name.startswith("=?base64?"):
                name = base64.b64decode(name[9:-2]).decode()
            if method == "tools/call":
                agree = agree and name == p["name"]
            if not agree:
                return self.reply(400, bad(-32020, "header mismatch"))
            if method == "server/discover":
                return self.reply(200, ok({"supportedVersions": [MODERN], "capabilities": {}}))
        else:
            if method == "initialize":
                counter[0] += 1
                session = "session-%d" % counter[0]
                sessions.add(session)
                return self.reply(200, ok({"protocolVersion": "2025-06-18", "capabilities": {},
                                           "serverInfo": {"name": "f", "version": "1"}}), session)
            if not session:
                return self.reply(400, {"jsonrpc": "2.0", "id": None,
                                        "error": {"code": -32000, "message": "no session"}})
            if session not in sessions:
                return self.reply(404, bad(-32001, "session not found"))
            if self.headers.get("MCP-Protocol-Version") != "2025-06-18":
                return self.reply(400, bad(-32000, "bad version header"))
        if method == "notifications/cancelled":
            cancelled.append(p["requestId"])
        if ident is None or "result" in m:
            return self.reply(202)
        if method == "tools/list":
            names = ["echo", "stream", "headers", "cut", "slow", "lose", "\u00fcmlaut", "state", "resume", "large"]
            return self.reply(200, ok({"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names]}))
        name = p.get("name")
        text = lambda s: ok({"content": [{"type": "text", "text": s}]})
        if name in ("echo", "\u00fcmlaut"):
            return self.reply(200, text(json.dumps(p["arguments"])))
        if name == "stream":
            token = p["_meta"]["progressToken"]
            steps = [{"jsonrpc": "2.0", "method": "notifications/progress",
                      "params": {"progressToken": token, "progress": i / 4, "total": 1}} for i in (1, 2, 3)]
            return self.events(steps + [text("streamed")], 0.01)
        if name == "cut":
            return self.events([])
        if name == "resume":
            held["answer"] = text("resumed")
            return self.events([], ident="7", retry=30)
        if name == "slow":
            time.sleep(600)
            return self.reply(200, text("late"))
        if name == "lose":
            if counter[0] == 1:
                sessions.clear()
                return self.reply(404, bad(-32001, "session not found"))
            return self.reply(200, text("found again in " + session))
        if name == "large":
            stream = p["arguments"].get("sse")
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            if stream:
                self.wfile.write(b"id: 7\ndata: ")
            for piece in large.pieces(p["arguments"], ident):
                self.wfile.write(piece)
            if stream:
                self.wfile.write(b"\n\n")
            self.close_connection = True
            return
        if name == "headers":
            return self.reply(200, text(self.headers.get("Authorization", "none")))
        if name == "state":
            return self.reply(200, text(json.dumps({"cancelled": len(cancelled)})))
        self.reply(404 if mode == "modern" else 200, bad(-32602, "unknown tool"))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
