"""Histories as other tools write them down.

A history is a list of steps: what the user said, what the model said and called, what came back.
Each function writes one in the shape of a tool below a folder and returns the file that is to be
imported. The texts are our own; only names of members and their places are the tools'.
"""
import json
import os
import random
import shutil
import sqlite3
import subprocess
from datetime import datetime, timezone

START = 1794700000000


def iso(ms):
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (ms % 1000)


WORDS = "stone river paper lamp garden window copper thread maple harbour \u00fcber \u96ea \U0001f680".split()


def text(rng, n):
    return " ".join(rng.choice(WORDS) for _ in range(n))


def history(seed, turns=3, large=True):
    """Steps of a session: parallel calls, an error, an exit code, a large output."""
    rng = random.Random(seed)
    steps, ms, n = [], START + seed * 1000000, 0

    def add(**step):
        nonlocal ms
        ms += rng.randrange(5, 4000)
        steps.append(dict(step, ms=ms, id="%s-%d-%d" % (step["t"], seed, len(steps))))

    for turn in range(turns):
        add(t="user", text="Turn %d: %s" % (turn, text(rng, 5)))
        for _ in range(rng.randrange(1, 3)):
            calls = []
            for _ in range(rng.randrange(1, 4)):
                n += 1
                calls.append({"id": "call_%d_%d" % (seed, n), "name": rng.choice(["bash", "read"]),
                              "args": {"command": text(rng, 2), "n": n}})
            add(t="say", text=rng.choice(["", text(rng, 6)]), think=rng.choice(["", text(rng, 4)]),
                calls=calls)
            for c in calls:
                whole = None
                exit_code = rng.choice([0, 0, 3])
                out = "output of %s: %s" % (c["id"], text(rng, 4))
                if large and rng.random() < .3:
                    whole = "\n".join("line %05d of %s" % (i, c["id"]) for i in range(3000)) + "\n"
                    exit_code = 0
                add(t="res", call=c["id"], name=c["name"], text=out, whole=whole, exit=exit_code)
        add(t="say", text="Done with turn %d. %s" % (turn, text(rng, 3)), think="", calls=[])
    return steps


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def lines(path, entries):
    return write(path, "".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) + "\n" for e in entries))


def document(path, value):
    return write(path, json.dumps(value, ensure_ascii=False, indent=1))


def said(step):
    """Content blocks in the form of Anthropic's."""
    blocks = []
    if step["think"]:
        blocks.append({"type": "thinking", "thinking": step["think"], "signature": "sig"})
    if step["text"]:
        blocks.append({"type": "text", "text": step["text"]})
    for c in step["calls"]:
        blocks.append({"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]})
    return blocks


# ---- lines ----

def codex(h, root, session="0a1b-codex"):
    out = [{"timestamp": iso(START), "ordinal": 0, "type": "session_meta", "payload": {
        "id": session, "session_id": session, "cwd": "/home/user/p", "cli_version": "0.166.0",
        "base_instructions": {"text": "You are a careful helper. \u00fc"}}},
           {"timestamp": iso(START), "type": "turn_context", "payload": {"turn_id": "t", "model": "m-1"}}]

    def item(ms, payload):
        out.append({"timestamp": iso(ms), "ordinal": len(out), "type": "response_item", "payload": payload})

    def event(ms, payload):
        out.append({"timestamp": iso(ms), "ordinal": len(out), "type": "event_msg", "payload": payload})

    for s in h:
        if s["t"] == "user":
            item(s["ms"], {"type": "message", "id": s["id"], "role": "user",
                           "content": [{"type": "input_text", "text": s["text"]}]})
            event(s["ms"], {"type": "item_completed", "item": {"type": "UserMessage", "id": "u"}})
        elif s["t"] == "say":
            if s["think"]:
                item(s["ms"], {"type": "reasoning", "id": "rs_" + s["id"], "encrypted_content": "E",
                               "summary": [{"type": "summary_text", "text": s["think"]}]})
            if s["text"]:
                event(s["ms"], {"type": "item_completed", "item": {"type": "AgentMessage", "id": s["id"]}})
                item(s["ms"], {"type": "message", "id": s["id"], "role": "assistant", "status": "completed",
                               "content": [{"type": "output_text", "text": s["text"], "annotations": []}]})
            for c in s["calls"]:
                item(s["ms"], {"type": "function_call", "id": "fc_" + c["id"], "name": c["name"],
                               "arguments": json.dumps(c["args"]), "call_id": c["id"], "status": "completed"})
            event(s["ms"], {"type": "token_count", "info": {}})
        else:
            event(s["ms"], {"type": "item_completed", "turn_id": "t", "started_at_ms": s["ms"] - 5,
                            "completed_at_ms": s["ms"], "item": {
                                "type": "CommandExecution", "id": s["call"], "exit_code": s["exit"],
                                "aggregated_output": s["whole"] or s["text"]}})
            if not s.get("killed"):
                item(s["ms"], {"type": "function_call_output", "id": "fco_" + s["id"], "call_id": s["call"],
                               "output": "Process exited with code %d\nOutput:\n%s" % (s["exit"], s["text"])})
    return lines(os.path.join(root, ".codex/sessions/2026/11/15/rollout-x-%s.jsonl" % session), out)


def codex_zst(h, root, session="0a1b-codexzst"):
    path = codex(h, root, session)
    subprocess.run(["zstd", "-q", "-f", "--rm", path], check=True)
    return path + ".zst"


def claude(h, root, session="0a1b-claude"):
    out = [{"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}]
    base = os.path.join(root, ".claude/projects/-home-user-p")
    parent = None
    for s in h:
        line = {"parentUuid": parent, "isSidechain": False, "sessionId": session, "version": "2.1.0",
                "cwd": "/home/user/p", "uuid": s["id"], "timestamp": iso(s["ms"])}
        parent = s["id"]
        if s["t"] == "user":
            out.append(dict(line, type="user", message={"role": "user", "content": s["text"]}))
        elif s["t"] == "say":
            # One response in pieces: each block is a line of its own, with the same message id.
            for i, block in enumerate(said(s)):
                out.append(dict(line, type="assistant", uuid="%s.%d" % (s["id"], i), requestId="r", message={
                    "id": "msg_" + s["id"], "type": "message", "role": "assistant", "model": "m-1",
                    "content": [block], "stop_reason": None, "usage": {"output_tokens": i}}))
        else:
            shown = s["text"]
            if s["whole"]:
                name = "%s/tool-results/%s.txt" % (session, s["id"])
                write(os.path.join(base, name), s["whole"])
                shown = "<persisted-output>\nFull output saved to: /elsewhere/%s\n%s</persisted-output>" % (
                    name, s["text"])
            out.append(dict(line, type="user", toolUseResult={}, message={"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": s["call"], "content": shown, "is_error": s["exit"] != 0}]}))
    out.append({"type": "summary", "summary": "A session about stones", "leafUuid": parent})
    return lines(os.path.join(base, session + ".jsonl"), out)


def qwen(h, root, session="0a1b-qwen"):
    out, base = [], os.path.join(root, ".qwen")
    for s in h:
        line = {"uuid": s["id"], "parentUuid": None, "sessionId": session, "timestamp": iso(s["ms"]),
                "cwd": "/home/user/p", "version": "0.24.4", "provenance": "x"}
        if s["t"] == "user":
            out.append(dict(line, type="user", message={"role": "user", "parts": [{"text": s["text"]}]}))
        elif s["t"] == "say":
            parts = [{"text": s["think"], "thought": True}] if s["think"] else []
            parts += [{"text": s["text"]}] if s["text"] else []
            parts += [{"functionCall": {"id": c["id"], "name": c["name"], "args": c["args"]}} for c in s["calls"]]
            out.append(dict(line, type="assistant", model="m-1", message={"role": "model", "parts": parts}))
            out.append(dict(line, uuid="t" + s["id"], type="system", subtype="ui_telemetry", systemPayload={}))
        else:
            display = {"type": "shell_result", "exitCode": s["exit"], "outputFiles": []}
            shown = s["text"]
            if s["whole"]:
                name = "tmp/abc/%s.output" % s["id"]
                write(os.path.join(base, name), s["whole"])
                display["outputFiles"] = ["/home/user/.qwen/" + name]
                shown = "truncated. The full output has been saved to: /home/user/.qwen/%s\n%s" % (name, s["text"])
            out.append(dict(line, type="tool_result", message={"role": "user", "parts": [
                {"functionResponse": {"id": s["call"], "name": s["name"], "response": {"output": shown}}}]},
                toolCallResult={"callId": s["call"], "status": "success", "resultDisplay": display}))
    return lines(os.path.join(base, "projects/-home-user-p/chats/%s.jsonl" % session), out)


def gemini(h, root, session="0a1b-gemini"):
    base = os.path.join(root, ".gemini/tmp/p")
    out = [{"sessionId": session, "projectHash": "f" * 64, "startTime": iso(START), "lastUpdated": iso(START),
            "kind": "main"}]
    i = 0
    while i < len(h):
        s = h[i]
        i += 1
        if s["t"] == "user":
            out.append({"id": s["id"], "timestamp": iso(s["ms"]), "type": "user", "content": [{"text": s["text"]}]})
            out.append({"$set": {"lastUpdated": iso(s["ms"])}})
            continue
        message = {"id": s["id"], "timestamp": iso(s["ms"]), "type": "gemini", "content": s["text"], "model": "m-1",
                   "thoughts": [{"subject": "S", "description": s["think"]}] if s["think"] else [], "tokens": {}}
        out.append(message)
        calls, responses = [], []
        for c in s["calls"]:
            r = h[i] if i < len(h) and h[i]["t"] == "res" and h[i]["call"] == c["id"] else None
            call = {"id": c["id"], "name": c["name"], "args": c["args"], "status": "success",
                    "timestamp": iso(s["ms"])}
            if r:
                i += 1
                shown = r["text"] + ("\nExit Code: %d" % r["exit"] if r["exit"] else "")
                if r["whole"]:
                    name = "tool-outputs/session-%s/%s.txt" % (session, c["id"])
                    write(os.path.join(base, name), r["whole"])
                    shown = "Output too large.\nFor full output see: /home/user/.gemini/tmp/p/%s\n%s" % (name, r["text"])
                answer = {"functionResponse": {"id": c["id"], "name": c["name"], "response": {"output": shown}}}
                call["result"] = [answer]
                call["timestamp"] = iso(r["ms"])
                responses.append(answer)
            calls.append(call)
        if calls:
            out.append(dict(message, toolCalls=calls))
            out.append({"id": "r" + s["id"], "timestamp": iso(s["ms"]), "type": "user", "content": responses})
    return lines(os.path.join(base, "chats/session-2026-11-15T14-35-0a1b.jsonl"), out)


def gemini_old(h, root, session="0a1b-geminiold"):
    new = gemini(h, os.path.join(root, "aside"), session)
    last = {}
    for line in open(new, encoding="utf-8"):
        e = json.loads(line)
        if "type" in e:
            last[e["id"]] = e
    return document(os.path.join(root, ".gemini/tmp/p/chats/session-old.json"), {
        "sessionId": session, "projectHash": "f" * 64, "messages": list(last.values())})


def pi(h, root, session="0a1b-pi"):
    out = [{"type": "session", "version": 3, "id": session, "timestamp": iso(START), "cwd": "/home/user/p"},
           {"type": "model_change", "id": "mc", "parentId": None, "timestamp": iso(START), "modelId": "m-1"}]
    for s in h:
        line = {"type": "message", "id": s["id"], "parentId": None, "timestamp": iso(s["ms"])}
        if s["t"] == "user":
            m = {"role": "user", "content": [{"type": "text", "text": s["text"]}]}
        elif s["t"] == "say":
            content = [{"type": "thinking", "thinking": s["think"]}] if s["think"] else []
            content += [{"type": "text", "text": s["text"]}] if s["text"] else []
            content += [{"type": "toolCall", "id": c["id"], "name": c["name"], "arguments": c["args"]} for c in s["calls"]]
            m = {"role": "assistant", "content": content, "model": "m-1", "stopReason": "stop"}
        else:
            shown = s["text"] + ("\n\nCommand exited with code %d" % s["exit"] if s["exit"] else "")
            m = {"role": "toolResult", "toolCallId": s["call"], "toolName": s["name"], "isError": s["exit"] != 0,
                 "content": [{"type": "text", "text": shown}]}
            if s["whole"]:
                name = "pi-bash-%x.log" % (s["ms"] % 0xffffff)
                write(os.path.join(root, "tmp", name), s["whole"])
                m["details"] = {"fullOutputPath": "/tmp/" + name}
        out.append(dict(line, message=m))
    return lines(os.path.join(root, ".pi/agent/sessions/--home-user-p--/x_%s.jsonl" % session), out)


def neovate(h, root, session="0a1b2c3d"):
    out = [{"type": "config", "config": {"model": "m-1"}}]
    for s in h:
        line = {"type": "message", "uuid": s["id"], "parentUuid": None, "timestamp": iso(s["ms"]), "sessionId": session}
        if s["t"] == "user":
            out.append(dict(line, role="user", content=s["text"]))
        elif s["t"] == "say":
            content = [{"type": "reasoning", "text": s["think"]}] if s["think"] else []
            content += [b for b in said(dict(s, think=""))]
            out.append(dict(line, role="assistant", content=content, model="m-1"))
        elif s["ms"] % 2:
            out.append(dict(line, role="user", content=[{"type": "tool_result", "id": s["call"], "name": s["name"],
                "result": {"llmContent": s["text"], "isError": s["exit"] != 0}}]))
        else:
            out.append(dict(line, role="tool", content=[{"type": "tool-result", "toolCallId": s["call"],
                "toolName": s["name"], "result": {"llmContent": s["text"], "isError": s["exit"] != 0}}]))
    return lines(os.path.join(root, ".neovate/projects/-home-user-p/%s.jsonl" % session), out)


def goose_content(s):
    if s["t"] == "user":
        return "user", [{"type": "text", "text": s["text"]}]
    if s["t"] == "res":
        value = {"status": "success", "value": {"content": [{"type": "text", "text": s["text"]}]}}
        if s["exit"]:
            value = {"status": "error", "error": s["text"]}
        return "user", [{"type": "toolResponse", "id": s["call"], "toolResult": value}]
    content = [{"type": "thinking", "thinking": s["think"]}] if s["think"] else []
    content += [{"type": "text", "text": s["text"]}] if s["text"] else []
    return "assistant", content + [{"type": "toolRequest", "id": c["id"], "toolCall": {
        "status": "success", "value": {"name": c["name"], "arguments": c["args"]}}} for c in s["calls"]]


def goose_lines(h, root, session="20261115_1"):
    out = [{"working_dir": "/home/user/p", "description": "About stones", "message_count": len(h)}]
    for s in h:
        role, content = goose_content(s)
        out.append({"id": s["id"], "role": role, "created": s["ms"] // 1000, "content": content})
    return lines(os.path.join(root, ".local/share/goose/sessions/%s.jsonl" % session), out)


def goose(h, root, session="20261115_2"):
    path = os.path.join(root, ".local/share/goose/sessions/sessions.db")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE IF NOT EXISTS sessions(id TEXT PRIMARY KEY, name TEXT, working_dir TEXT);"
                     "CREATE TABLE IF NOT EXISTS messages(id TEXT, session_id TEXT, role TEXT, content_json TEXT,"
                     " created_timestamp INTEGER, metadata_json TEXT);")
    db.execute("DELETE FROM messages")
    db.execute("INSERT OR REPLACE INTO sessions VALUES(?,?,?)", (session, "About stones", "/home/user/p"))
    for i, s in enumerate(h):
        role, content = goose_content(s)
        db.execute("INSERT INTO messages VALUES(?,?,?,?,?,?)", (
            s["id"], session, role, json.dumps(content), s["ms"], "{}"))
    db.commit()
    db.close()
    return path


# ---- documents ----

def cline(h, root, session="1794700000000_abcde"):
    folder = os.path.join(root, ".cline/data/sessions", session)
    messages = []
    for s in h:
        if s["t"] == "res":
            content = [{"type": "tool_result", "tool_use_id": s["call"], "name": s["name"], "content": [
                {"query": "q", "result": s["text"], "success": s["exit"] == 0}]}]
        else:
            content = said(s) if s["t"] == "say" else [{"type": "text", "text": s["text"]}]
        messages.append({"id": s["id"], "role": "assistant" if s["t"] == "say" else "user", "content": content,
                         "ts": s["ms"]})
    document(os.path.join(folder, session + ".json"), {
        "version": 1, "session_id": session, "prompt": "the prompt", "model": "m-1", "messages_path": "x",
        "started_at": iso(START), "metadata": {"title": "A session about stones"}})
    return document(os.path.join(folder, session + ".messages.json"), {
        "version": 1, "agent": "lead", "sessionId": session, "messages": messages, "system_prompt": "s"})


def roo(h, root, session="task-1"):
    messages = []
    for s in h:
        content = said(s) if s["t"] == "say" else s["text"]
        if s["t"] == "res":
            content = [{"type": "tool_result", "tool_use_id": s["call"], "content": s["text"],
                        "is_error": s["exit"] != 0}]
        messages.append({"role": "assistant" if s["t"] == "say" else "user", "content": content, "ts": s["ms"]})
    folder = os.path.join(root, "rooveterinaryinc.roo-cline/tasks", session)
    document(os.path.join(folder, "history_item.json"), {"id": session, "task": "A session about stones"})
    return document(os.path.join(folder, "api_conversation_history.json"), messages)


def continue_(h, root, session="0a1b-continue"):
    steps = []
    for s in h:
        if s["t"] == "user":
            steps.append({"message": {"role": "user", "content": s["text"]}, "contextItems": []})
        elif s["t"] == "say":
            calls = [{"id": c["id"], "type": "function", "function": {
                "name": c["name"], "arguments": json.dumps(c["args"])}} for c in s["calls"]]
            steps.append({"message": {"role": "assistant", "content": s["text"], "toolCalls": calls,
                                      "usage": {"model": "m-1"}}, "toolCallStates": []})
        else:
            steps[-1]["toolCallStates"].append({
                "toolCallId": s["call"], "status": "errored" if s["exit"] else "done",
                "toolCall": {"id": s["call"], "function": {"name": s["name"]}}, "output": [{"content": s["text"]}]})
    return document(os.path.join(root, ".continue/sessions/%s.json" % session), {
        "sessionId": session, "title": "About stones", "workspaceDirectory": "/home/user/p", "history": steps})


def opencode_parts(h):
    """[(info, [part])]; results are in the parts of their calls."""
    results = {s["call"]: s for s in h if s["t"] == "res"}
    for s in h:
        if s["t"] == "res":
            continue
        info = {"role": "user" if s["t"] == "user" else "assistant", "time": {"created": s["ms"]}, "modelID": "m-1"}
        if s["t"] == "user":
            yield s, info, [{"type": "text", "text": s["text"]}]
            continue
        parts = [{"type": "step-start"}]
        parts += [{"type": "reasoning", "text": s["think"]}] if s["think"] else []
        parts += [{"type": "text", "text": s["text"]}] if s["text"] else []
        for c in s["calls"]:
            r = results.get(c["id"])
            state = {"status": "running", "input": c["args"], "time": {"start": s["ms"]}}
            if r:
                state.update(status="completed", output=r["text"], metadata={"exit": r["exit"]},
                             time={"start": s["ms"], "end": r["ms"]})
                if r["whole"]:
                    state["metadata"]["outputPath"] = "/elsewhere/tool-output/" + r["id"]
            parts.append({"type": "tool", "tool": c["name"], "callID": c["id"], "state": state})
        parts.append({"type": "step-finish"})
        yield s, info, parts


def opencode(h, root, session="ses_0a1b"):
    folder = os.path.join(root, ".local/share/opencode")
    os.makedirs(folder, exist_ok=True)
    for s in h:
        if s["t"] == "res" and s["whole"]:
            write(os.path.join(folder, "tool-output", s["id"]), s["whole"])
    path = os.path.join(folder, "opencode.db")
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE IF NOT EXISTS session(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,"
        " version TEXT, time_created INTEGER);"
        "CREATE TABLE IF NOT EXISTS message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE IF NOT EXISTS part(id TEXT PRIMARY KEY, message_id TEXT, data TEXT);"
        "DELETE FROM message; DELETE FROM part;")
    db.execute("INSERT OR REPLACE INTO session VALUES(?,?,?,?,?,?)",
               (session, None, "/home/user/p", "A session about stones", "1.18", START))
    for s, info, parts in opencode_parts(h):
        db.execute("INSERT INTO message VALUES(?,?,?,?)", (s["id"], session, s["ms"], json.dumps(info)))
        for i, part in enumerate(parts):
            db.execute("INSERT INTO part VALUES(?,?,?)", ("prt_%s_%03d" % (s["id"], i), s["id"], json.dumps(part)))
    db.commit()
    db.close()
    return path


def opencode_folder(h, root, session="ses_0a1d"):
    folder = os.path.join(root, ".local/share/opencode")
    shutil.rmtree(os.path.join(folder, "storage"), ignore_errors=True)
    for s in h:
        if s["t"] == "res" and s["whole"]:
            write(os.path.join(folder, "tool-output", s["id"]), s["whole"])
    for n, (s, info, parts) in enumerate(opencode_parts(h)):
        # Ids sort by time.
        name = "msg_%04d_%s" % (n, s["id"])
        write(os.path.join(folder, "storage/message", session, name + ".json"),
              json.dumps(dict(info, id=s["id"], sessionID=session), indent=2))
        for i, part in enumerate(parts):
            write(os.path.join(folder, "storage/part", name, "prt_%03d.json" % i),
                  json.dumps(dict(part, id="prt_%s_%d" % (s["id"], i), messageID=s["id"]), indent=2))
    return document(os.path.join(folder, "storage/session/0f0f", session + ".json"), {
        "id": session, "projectID": "0f0f", "directory": "/home/user/p", "title": "About stones", "version": "0.9",
        "time": {"created": START, "updated": START}})


def opencode_export(h, root, session="ses_0a1c"):
    return document(os.path.join(root, "export.json"), {
        "info": {"id": session, "title": "About stones", "directory": "/home/user/p"},
        "messages": [{"info": dict(info, id=s["id"]), "parts": [
            dict(p, id="prt_%s_%d" % (s["id"], i)) for i, p in enumerate(parts)]} for s, info, parts in opencode_parts(h)]})


def openai(h, **more):
    out = []
    for s in h:
        if s["t"] == "user":
            m = {"role": "user", "content": s["text"]}
        elif s["t"] == "say":
            m = {"role": "assistant", "content": s["text"] or None}
            if s["calls"]:
                m["tool_calls"] = [{"id": c["id"], "type": "function", "function": {
                    "name": c["name"], "arguments": json.dumps(c["args"])}} for c in s["calls"]]
        else:
            m = {"role": "tool", "tool_call_id": s["call"], "content": s["text"]}
        out.append(m)
    return out


def crewagent(h, root, session="conv-7"):
    project = os.path.join(root, "projects/p1")
    messages = openai(h)
    for s, m in zip(h, messages):
        m.update(id=s["id"], createdAt=iso(s["ms"]), runId="r1", partType="content")
        if s["t"] == "res":
            m["toolName"] = s["name"]
            if s["exit"]:
                m["isError"] = True
            if s["whole"]:
                tail = "logs/tool-results/%s/%s.json" % (session, s["id"])
                write(os.path.join(project, "state", tail), s["whole"])
                m["content"] = s["text"] + "\n\n[Full output: @state/%s]" % tail
                m["fullOutputPath"] = "@state/" + tail
    return document(os.path.join(project, "conversations", session, "messages.json"), messages)


def deepchat(h, root, session="thread-1"):
    path = os.path.join(root, ".config/DeepChat/app_db/chat.db")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE IF NOT EXISTS deepchat_messages(id TEXT, session_id TEXT, order_seq INTEGER,"
                     " role TEXT, content TEXT, status TEXT, created_at INTEGER); DELETE FROM deepchat_messages;")
    results = {s["call"]: s for s in h if s["t"] == "res"}
    for i, s in enumerate(h):
        if s["t"] == "res":
            continue
        content = {"text": s["text"], "files": []}
        if s["t"] == "say":
            content = [{"type": "reasoning_content", "content": s["think"]}] if s["think"] else []
            content += [{"type": "content", "content": s["text"]}] if s["text"] else []
            for c in s["calls"]:
                call = {"id": c["id"], "name": c["name"], "params": json.dumps(c["args"])}
                r = results.get(c["id"])
                if r:
                    call["response"] = r["text"]
                content.append({"type": "tool_call", "tool_call": call,
                                "status": "error" if r and r["exit"] else "success"})
        db.execute("INSERT INTO deepchat_messages VALUES(?,?,?,?,?,?,?)",
                   (s["id"], session, i, s["t"], json.dumps(content), "sent", s["ms"]))
    db.commit()
    db.close()
    return path


def deepchat_export(h, root, session="thread-2"):
    results = {s["call"]: s for s in h if s["t"] == "res"}
    messages, meta = [], []
    for s in h:
        if s["t"] == "res":
            continue
        if s["t"] == "say" and s["calls"]:
            meta.append({"index": len(messages), "tool_calls": [
                {"name": c["name"], "params": json.dumps(c["args"]), "response": results[c["id"]]["text"]}
                for c in s["calls"] if c["id"] in results]})
        messages.append({"role": "assistant" if s["t"] == "say" else "user", "content": s["text"]})
    return document(os.path.join(root, "deepchat.json"), {
        "thread_id": session, "source": "deepchat", "messages": messages, "metadata": {"message_metadata": meta}})


def acontext(h, root, session="0a1b-acontext"):
    out = []
    for s in h:
        if s["t"] == "user":
            parts = [{"type": "text", "text": s["text"]}]
        elif s["t"] == "say":
            parts = [{"type": "text", "text": s["text"]}] if s["text"] else []
            parts += [{"type": "tool-call", "meta": {"id": c["id"], "name": c["name"],
                                                     "arguments": json.dumps(c["args"])}} for c in s["calls"]]
        else:
            parts = [{"type": "tool-result", "text": s["text"], "meta": {"tool_call_id": s["call"]}}]
        out.append({"id": s["id"], "session_id": session, "parent_id": None, "meta": {}, "parts": parts,
                    "role": "assistant" if s["t"] == "say" else "user", "created_at": iso(s["ms"])})
    return document(os.path.join(root, "acontext.json"), {"items": out})


def langchain(h, root, session=None, wrap=0):
    out = []
    for s in h:
        if s["t"] == "res":
            kind, m = "tool", {"content": s["text"], "tool_call_id": s["call"], "name": s["name"],
                               "status": "error" if s["exit"] else "success"}
        else:
            kind, m = ("human" if s["t"] == "user" else "ai"), {"content": s["text"]}
            if s["t"] == "say":
                m["tool_calls"] = [{"id": c["id"], "name": c["name"], "args": c["args"], "type": "tool_call"}
                                   for c in s["calls"]]
        m["id"] = s["id"]
        if wrap == 0:
            out.append(dict(m, type=kind))
        elif wrap == 1:
            out.append({"type": kind, "data": m})
        else:
            name = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}[kind]
            out.append({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", name], "kwargs": m})
    return document(os.path.join(root, "langchain-%d.json" % wrap), {"values": {"messages": out}} if wrap == 0 else out)


def langchain_data(h, root):
    return langchain(h, root, wrap=1)


def langchain_lc(h, root):
    return langchain(h, root, wrap=2)


def sharegpt(h, root):
    turns = []
    for s in h:
        if s["t"] == "user":
            turns.append({"from": "human", "value": s["text"]})
        elif s["t"] == "say":
            if s["text"]:
                turns.append({"from": "gpt", "value": s["text"]})
            turns += [{"from": "function_call", "value": json.dumps({"name": c["name"], "arguments": c["args"]})}
                      for c in s["calls"]]
        else:
            turns.append({"from": "observation", "value": s["text"]})
    return document(os.path.join(root, "sharegpt.json"), [{"conversations": turns, "system": "Be brief."}])


def list_openai(h, root):
    return document(os.path.join(root, "openai.json"), openai(h))


def list_anthropic(h, root):
    out = []
    for s in h:
        if s["t"] == "res":
            block = {"type": "tool_result", "tool_use_id": s["call"], "content": s["text"]}
            if out and out[-1]["role"] == "user" and isinstance(out[-1]["content"], list):
                out[-1]["content"].append(block)
            else:
                out.append({"role": "user", "content": [block]})
        else:
            out.append({"role": "assistant" if s["t"] == "say" else "user",
                        "content": said(s) if s["t"] == "say" else s["text"]})
    return document(os.path.join(root, "anthropic.json"), {"messages": out})


def list_gemini(h, root):
    out = []
    for s in h:
        if s["t"] == "res":
            out.append({"role": "user", "parts": [{"functionResponse": {
                "id": s["call"], "name": s["name"], "response": {"output": s["text"]}}}]})
        else:
            parts = [{"text": s["text"]}] if s["text"] else []
            parts += [{"functionCall": {"id": c["id"], "name": c["name"], "args": c["args"]}}
                      for c in s.get("calls", [])]
            out.append({"role": "model" if s["t"] == "say" else "user", "parts": parts})
    return document(os.path.join(root, "gemini.json"), {"contents": out})


class Shape:
    def __init__(self, make, tool, **facts):
        self.make, self.tool, self.name = make, tool, make.__name__.strip("_")
        self.times = facts.get("times", True)      # entries have times
        self.ids = facts.get("ids", True)          # and ids
        self.thinks = facts.get("thinks", True)    # thinking is kept
        self.errors = facts.get("errors", True)    # failures are marked
        self.whole = facts.get("whole", False)     # whole outputs are kept aside
        self.calls = facts.get("calls", True)      # calls keep their ids
        self.lines = facts.get("lines", False)     # a file of lines


SHAPES = [
    Shape(codex, "codex", whole=True, lines=True),
    Shape(codex_zst, "codex", whole=True),
    Shape(claude, "claude", whole=True, lines=True),
    Shape(qwen, "qwen", whole=True, lines=True),
    Shape(gemini, "gemini", whole=True, lines=True),
    Shape(gemini_old, "gemini"),
    Shape(pi, "pi", whole=True, lines=True),
    Shape(neovate, "neovate", lines=True),
    Shape(goose, "goose"),
    Shape(goose_lines, "goose", lines=True, times=False),
    Shape(cline, "cline"),
    Shape(roo, "roo", ids=False),
    Shape(continue_, "continue", times=False, ids=False, thinks=False),
    Shape(opencode, "opencode", whole=True),
    Shape(opencode_folder, "opencode", whole=True),
    Shape(opencode_export, "opencode"),
    Shape(crewagent, "crewagent", whole=True, thinks=False),
    Shape(deepchat, "deepchat"),
    Shape(deepchat_export, "deepchat", times=False, ids=False, thinks=False, errors=False, calls=False),
    Shape(acontext, "acontext", thinks=False, errors=False),
    Shape(langchain, "langchain", times=False, thinks=False),
    Shape(langchain_data, "langchain", times=False, thinks=False),
    Shape(langchain_lc, "langchain", times=False, thinks=False),
    Shape(sharegpt, "sharegpt", times=False, ids=False, thinks=False, errors=False, calls=False),
    Shape(list_openai, "messages", times=False, ids=False, thinks=False, errors=False),
    Shape(list_anthropic, "messages", times=False, ids=False, errors=False),
    Shape(list_gemini, "messages", times=False, ids=False, thinks=False, errors=False),
]
