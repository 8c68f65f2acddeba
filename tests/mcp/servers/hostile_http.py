#!/usr/bin/env python3
"""A hostile MCP server over streamable HTTP. It prints its port, then serves until its stdin ends. What it
does is in the path; the tool `seen` tells what it has got, `t` is where it is hostile:
  /asks      two hundred requests of its own before its answer, and it takes no answer to them
  /session   a session id, and the id of an event, that a header cannot hold
  /long      a session id of 200 KB
  /elsewhere redirects that lead to another address of the same server
  /progress  twenty thousand steps, some of them long
  /many      two thousand tools more than anybody takes
  /pages     lists of tools that never end, a page at a time"""
import http.server, json, sys, threading, time

seen = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def reply(self, status, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self, *texts):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for t in texts:
            self.wfile.write(t.encode("latin1"))
        self.close_connection = True

    def do_GET(self):
        seen.append({"get": self.path, "last": self.headers.get("Last-Event-ID")})
        self.reply(405)

    def do_DELETE(self):
        self.reply(405)

    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        kind, ident, method = self.path.strip("/"), m.get("id"), m.get("method")
        seen.append({"path": self.path, "method": method, "session": self.headers.get("Mcp-Session-Id"), "evil": self.headers.get("X-Evil")})
        ok = lambda r: {"jsonrpc": "2.0", "id": ident, "result": r}
        text = lambda t: ok({"content": [{"type": "text", "text": t}]})
        data = lambda o: "data: %s\n\n" % json.dumps(o)
        if method is None and kind == "asks":
            time.sleep(3600)
        if ident is None or method is None:
            return self.reply(202)
        if method == "initialize":
            more = {"Mcp_Session_Id": "abc\rX-Evil: 1"} if kind == "session" else {"Mcp_Session_Id": "fine"}
            if kind == "long":
                more = {"Mcp_Session_Id": "a" * 200000}
            return self.reply(200, ok({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                       "serverInfo": {"name": "h", "version": "1"}}), **more)
        if method == "tools/list":
            names = ["t", "seen"] + ["x%d" % i for i in range(4000 if kind == "many" else 0)]
            page = int(m.get("params", {}).get("cursor", 0))
            return self.reply(200, ok(dict({"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names[:None if page == 0 else 0]]},
                                           **({"nextCursor": str(page + 1)} if kind == "pages" else {}))))
        if method == "tools/call" and m["params"]["name"] == "seen":
            return self.reply(200, text(json.dumps(seen)))
        if method == "tools/call" and kind == "asks":
            return self.events(*[data({"jsonrpc": "2.0", "id": "q%d" % i, "method": "ping"}) for i in range(200)], data(text("answered")))
        if method == "tools/call" and kind == "session":
            return self.events("id: a\x01\x1b[31mb\nretry: 10\ndata:\n\n")
        if method == "tools/call" and kind == "elsewhere":
            return self.reply(307, Location="http://%s:%d/followed" % self.server.server_address)
        if method == "tools/call" and kind == "progress":
            token = m["params"]["_meta"]["progressToken"]
            step = lambda i: {"jsonrpc": "2.0", "method": "notifications/progress",
                              "params": {"progressToken": token, "progress": i, "message": "m" * (60000 if 300 <= i < 400 else 10)}}
            return self.events(*[data(step(i)) for i in range(20000)], data(text("done")))
        if method == "tools/call":
            return self.reply(200, text("answered"))
        self.reply(404, {"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "no"}})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
