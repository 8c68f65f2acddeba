"""What newer versions show otherwise on purpose, and how they may differ from the golden answers.

Views are compared with what the old program answered, and each difference must be allowed by a
Change below. A Change names the golden cases and the questions that it is about, says why, and has
a rule that looks at one difference at a time: where it stands, what was there, what is there now.
A Change that no difference needs makes old.test fail, so that the list stays true.

There is no Change for the core: records (seq, id, time, format, kind, tokens), what was sent, the
bytes of artifacts, titles, and events of runs are compared without looking here.

    CHANGES = [
        Change("Steno's own members do not go to a provider",
               cases=["loop/default/*"], questions=["messages --format openai *"],
               rule=left_out("exitCode", "signal", "timedOut")),
    ]
"""
import base64
import fnmatch
import re

MISSING = type("Missing", (), {"__repr__": lambda self: "nothing"})()


class Difference:
    """`path` is a tuple of keys and indexes; `old` or `new` may be MISSING. `read(ref)` answers the
    bytes of an artifact of the conversation that was asked about."""

    def __init__(self, path, old, new, read=None):
        self.path, self.old, self.new, self.read = path, old, new, read
        self.case = None  # store/project/conversation, for rules that remember
        self.stored = []  # [(id, message)] of the conversation, as the old program listed them

    def __str__(self):
        def short(v):
            text = repr(v)
            return text if len(text) < 160 else text[:120] + "... (%d)" % len(text)
        return "%s: %s became %s" % ("/".join(map(str, self.path)) or "all", short(self.old),
                                     short(self.new))


def differences(old, new, path=(), read=None):
    """The smallest places in which two JSON values differ; a list of another length is one place."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in list(old) + [k for k in new if k not in old]:
            found += differences(old.get(key, MISSING), new.get(key, MISSING), path + (key,), read)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, (a, b) in enumerate(zip(old, new))
                for d in differences(a, b, path + (i,), read)]
    same = type(old) is type(new) and old == new and not isinstance(old, (dict, list))
    return [] if same else [Difference(path, old, new, read)]


class Change:
    def __init__(self, why, cases, questions, rule):
        self.why, self.cases, self.questions, self.rule = why, cases, questions, rule
        self.used = False

    def allows(self, case, question, difference):
        """`case` is store/project/conversation; `question` has no conversation in it."""
        difference.case = case
        if not (any(fnmatch.fnmatchcase(case, c) for c in self.cases)
                and any(fnmatch.fnmatchcase(question, q) for q in self.questions)
                and self.rule(difference)):
            return False
        self.used = True
        return True


# ---- rules ----

def left_out(*names):
    """A member of one of these names is not in the message any more."""
    return lambda d: (d.new is MISSING and len(d.path) > 1 and d.path[-1] in names
                      and isinstance(d.path[-2], int))


def added(*names):
    """A member of one of these names is there now, where there was none."""
    return lambda d: d.old is MISSING and d.path[-1:] and d.path[-1] in names


def call_ids(old, new):
    """An id that matches the pattern `old` became one that matches `new`, in the same way everywhere in
    its conversation, and no two ids became the same."""
    there, back = {}, {}

    def rule(d):
        if not (isinstance(d.old, str) and isinstance(d.new, str)
                and re.fullmatch(old, d.old) and re.fullmatch(new, d.new)):
            return False
        return (there.setdefault((d.case, d.old), d.new) == d.new
                and back.setdefault((d.case, d.new), d.old) == d.old)
    return rule


def materialized(smallest=2048):
    """A text of more than `smallest` bytes became a shorter stub, and the ref that the stub names
    reads back exactly that text."""
    def rule(d):
        if not (isinstance(d.old, str) and isinstance(d.new, str)):
            return False
        data = d.old.encode("utf-8", "surrogatepass")
        ref = re.search(r"ctx_[0-9A-Za-z_]+", d.new)
        return (len(data) > smallest and len(d.new) * 2 < len(d.old) and ref is not None
                and d.read is not None and d.read(ref.group()) == data)
    return rule


def joined(*texts_of):
    """A list of messages became a shorter list with the same values under these names, in the same
    order: pieces of one message were joined."""
    def values(node):
        if isinstance(node, dict):
            return [v for key, value in node.items()
                    for v in ([value] if key in texts_of and not isinstance(value, (dict, list))
                              else values(value))]
        return [v for n in node for v in values(n)] if isinstance(node, list) else []

    def rule(d):
        return (isinstance(d.old, list) and isinstance(d.new, list) and len(d.new) < len(d.old)
                and values(d.old) == values(d.new))
    return rule


def grown(but=r"(?!)"):
    """A list has other elements, and every text that was in it is still there, alone or as a part of
    another text, except texts that match `but`."""
    def texts(node):
        if isinstance(node, dict):
            return [t for v in node.values() for t in texts(v)]
        if isinstance(node, list):
            return [t for n in node for t in texts(n)]
        return [node] if isinstance(node, str) else []

    def rule(d):
        if not (isinstance(d.old, list) and isinstance(d.new, list)):
            return False
        whole = "\0".join(texts(d.new))
        return all(t in whole or re.fullmatch(but, t) for t in texts(d.old))
    return rule


def reported(*names):
    """What the report has under these names: about losses, repairs and tokens, not about messages."""
    return lambda d: d.path[:1] == ("data",) and d.path[1:2] and d.path[1] in names or (
        d.path[:1] and d.path[0] in names and (len(d.path) > 1 or not isinstance(d.old, str)))


def respelled():
    """The same values; a string has other escapes."""
    return lambda d: d.path == ("tokens",) and isinstance(d.old, str)


def became(*pairs):
    """One value became another, both of them named here."""
    return lambda d: (d.path[-1:] and isinstance(d.path[-1], str)
                      and (d.path[-1], d.old, d.new) in pairs)


def swapped(*names):
    """Two members with these names have changed places."""
    return lambda d: d.old in names and d.new in names


def renamed():
    """The name of a tool has other characters where the provider does not accept its own, and a hash
    where it would be the name of another tool."""
    def rule(d):
        return (d.path[-1:] == ("name",) and isinstance(d.old, str) and isinstance(d.new, str)
                and re.fullmatch(re.sub(r"[^A-Za-z0-9_-]", "_", d.old) + "(_[0-9a-f]{8})?", d.new)
                and not re.fullmatch(r"[A-Za-z0-9_-]+", d.old))
    return rule


def surrogates():
    """Half of a surrogate pair became U+FFFD, and nothing else changed."""
    return lambda d: (isinstance(d.old, str) and d.old != d.new
                      and re.sub("[\ud800-\udfff]", "\ufffd", d.old) == d.new)


def image_types():
    """The same image, with the type that its bytes have."""
    def rule(d):
        return (isinstance(d.old, str) and isinstance(d.new, str)
                and d.old.startswith("data:application/octet-stream;base64,iVBORw0KGgo")
                and d.new == d.old.replace("application/octet-stream", "image/png", 1))
    return rule


_NOTE = r"\[A (file|sound) of type [a-z/]+ is not shown here: the provider does not take it\.\]"


def noted(*media):
    """One of these values, which a provider does not accept, became a text that says so."""
    types = (("document", "text"), ("file", "text"), ("input_file", "input_text"),
             ("input_audio", "input_text"))

    def rule(d):
        if len(d.path) < 2 or not isinstance(d.path[-2], int):
            return False
        if d.path[-1] == "type":
            return (d.old, d.new) in types
        if d.old is MISSING:
            return d.path[-1] == "text" and re.fullmatch(_NOTE, str(d.new))
        return d.new is MISSING and d.old in media
    return rule


def message_by_message(rule, *gone):
    """A list lacks the messages for which `gone` is true, and `rule` allows each difference of the
    others."""
    def whole(d):
        if not (isinstance(d.old, list) and isinstance(d.new, list)
                and all(isinstance(m, dict) for m in d.old)):
            return False
        left = [m for i, m in enumerate(d.old)
                if not any(g(m, d.old[i + 1:i + 2]) for g in gone)]
        return (len(left) == len(d.new) < len(d.old)
                and all(rule(x) for x in differences(left, d.new, d.path)))
    return whole


def is_empty(message, _):
    """An assistant's message that has no text, call or refusal."""
    content = message.get("content")
    said = [p.get("text") or p.get("refusal") for p in content] if isinstance(content, list) else [content]
    return message.get("role") == "assistant" and not any(said) and not any(
        v for k, v in message.items() if k not in ("role", "type", "content"))


def is_lone_reasoning(message, following):
    """Reasoning of Responses that nothing of the assistant follows."""
    return message.get("type") == "reasoning" and not any(
        m.get("type") == "function_call" or m.get("role") == "assistant" for m in following)


def is_reference(message, _):
    """An item of Responses that refers to an item which the endpoint should have kept."""
    return message.get("type") == "item_reference"


def given_back():
    """Every item is a message as it was stored, and none that was stored is missing."""
    def bare(item):
        # Acontext's own shape has members of the route around the message's.
        return {k: item[k] for k in ("role", "parts")} if "session_id" in item else item

    def rule(d):
        if d.path != ("data", "items") or not isinstance(d.new, list):
            return False
        new = [bare(n) for n in d.new]
        kept = [{k: m[k] for k in ("role", "parts")} if new and "parts" in new[0] and "parts" in m
                and "session_id" in d.new[0] else m for _, m in d.stored]
        same = [o.get("id") for o in d.new if o in d.old]  # such as one with the address of an asset
        return (all(n in kept or o in d.old for n, o in zip(new, d.new))
                and all(m in new or i in same for (i, _), m in zip(d.stored, kept)))
    return rule


def listed_beside(*metas):
    """The ids and metas beside such items: of every message, and of no invented one; `metas` belong to
    messages that were not shown."""
    def rule(d):
        if d.path == ("data", "ids"):
            known = [i for i, _ in d.stored]
            return (all(i in d.old or i in known for i in d.new)
                    and all(i in d.new or re.fullmatch(r"syn_\d+_\d+", i) for i in d.old))
        if d.path != ("data", "metas"):
            return False
        old, new = [without_nulls(m) for m in d.old], [without_nulls(m) for m in d.new]
        return all(m in old or m in metas for m in new) and all(m in new for m in old)
    return rule


_STANDIN = (r"\[(Thinking|Thinking that only its provider can read|A part that this format does not have|"
            r"A file that this format does not have|A result of the call \".*?\", which is not there|"
            r"A second result of the call \".*?\"|An empty message)\]")


_AROUND = ("type", "role", "id", "name", "session_id", "parent_id", "session_task_process_status",
           "created_at", "updated_at")


def stood_in():
    """A list has additional texts, each of which replaces something that the format cannot express.
    Everything that was in the list is still there, except what other changes are about; an empty message
    is replaced by such a text."""
    def texts(node):
        if isinstance(node, dict):
            return [t for k, v in node.items() if k not in _AROUND for t in texts(v)]
        if isinstance(node, list):
            return [t for n in node for t in texts(n)]
        return [node] if isinstance(node, str) and node else []

    def rule(d):
        if not (isinstance(d.old, list) and isinstance(d.new, list)):
            return d.old in ("", None, []) and re.match(_STANDIN, str(d.new)) is not None
        old, new = texts(d.old), texts(d.new)
        more = [t for t in new if t not in old]
        others = [t for t in more if not re.match(_STANDIN, t)]
        return (len(others) < len(more) and all(t in new or re.fullmatch(r"call_made_1_\d+|gs://a/b|c2ln", t) for t in old)
                and all(re.fullmatch(r"call_made_\d+_\d+|" + _NOTE, t) for t in others))
    return rule


def without_nulls(meta):
    """A member that was patched with null is deleted now; it was kept as null."""
    return {k: v for k, v in meta.items() if v is not None}


def any_of(*rules):
    return lambda d: any(rule(d) for rule in rules)


OPENAI = ["messages --format openai *"]
ACONTEXT_OPENAI = ["GET /api/v1/session/:id/messages*format=openai"]
PROVIDERS = ["messages --format openai *", "messages --format responses *",
             "messages --format anthropic *", "messages --format gemini *",
             "GET /api/v1/session/:id/messages*format=openai",
             "GET /api/v1/session/:id/messages*format=anthropic",
             "GET /api/v1/session/:id/messages*format=gemini"]
MENDED = ["*/default/*-openai", "*/default/*-gemini", "*/default/*-chat", "*/default/*-anthropic",
          "formats/default/edges", "formats/default/mixed", "formats/default/pieces",
          "http_server/default/own", "http_server/default/15689451-d782-4bd5-8620-e017c895e0e9",
          "http_server/default/9e42600f-ffe6-4f99-900a-0c7691f91d1e",
          "http_server/default/d2688bdb-d043-4783-8d81-6351ce5297e5"]
MENDS = any_of(renamed(), surrogates(), image_types(),
               noted("gs://a/b", {"file_data": "gs://a/b"}, {"type": "url", "url": "gs://a/b"},
                     {"data": "AAAA", "format": "wav"}))
CUSTOM = any_of(became(("type", "function_call", "custom_tool_call"),
                       ("type", "function_call_output", "custom_tool_call_output"),
                       ("arguments", "*** Begin", MISSING), ("input", MISSING, "*** Begin")),
                left_out("status"))

def item_members():
    """In Responses, what the model said has an id and a status, and an image has a detail."""
    return added("id", "status", "detail")


def escaped():
    """A line with invalid bytes was base64, or had replacement characters; now these bytes are
    escapes."""
    def rule(d):
        if d.path[-1] == "encoding":
            return (d.old, d.new) == ("base64", "escaped")
        if (d.path[-1] == "content" and isinstance(d.new, str) and isinstance(d.old, str) and len(d.old) % 4 == 0
                and re.fullmatch(r"[A-Za-z0-9+/]+=*", d.old) and d.new.isascii()):
            shown = re.sub(r"\\x([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), d.new)
            return base64.b64decode(d.old) == shown.encode("latin-1")
        return (d.path[0] == "matches" and isinstance(d.old, str) and isinstance(d.new, str)
                and re.search(r"\\x[0-9A-F]{2}", d.new) is not None)
    return rule


CHANGES = [
    Change("A search shows stray bytes as escapes, so that one of them does not make a line unreadable.",
           cases=["library/default/streams", "outputs/default/kinds", "runtime/default/output"], questions=["context grep*", "context read*", "context tail*"],
           rule=escaped()),
    Change("A call without a result says what the run's journal knows of it, and whose it is.",
           cases=["loop/default/*"], questions=["messages --format chat *"],
           rule=any_of(added("runId"), became(("state", "pending", "not_dispatched")))),
    Change("A call of which nothing more is known is called unrecorded, as its repair is.",
           cases=["formats/default/*", "http_server/default/*", "library/default/*",
                  "outputs/default/unfinished"],
           questions=["messages --format chat *", "GET /api/chat-sessions/:id/messages*"],
           rule=became(("state", "pending", "unrecorded"))),
    Change("A result that stands in the entry of its call belongs to that call, also where another one of"
           " the same name is open.",
           cases=["formats/default/strange-legacy"], questions=["messages --format *"],
           rule=swapped("call_made_1_0", "call_made_1_1", "syn_1_0", "syn_1_1", "complete", "pending",
                        "unrecorded", "b", MISSING)),
    Change("Members that Steno sets itself do not go to a provider, and strict endpoints refuse them.",
           cases=["demo/default/*", "loop/default/*", "runtime/default/exec", "outputs/default/kinds",
                  "library/default/streams", "formats/default/*-openai",
                  "http_server/default/approved",
                  "http_server/default/conv_bb4c44b2af8383f97e271e581c",
                  "http_server/default/15689451-d782-4bd5-8620-e017c895e0e9"],
           questions=OPENAI, rule=left_out("exitCode", "signal", "timedOut")),
    Change("A call id that is used again in a message that was joined of several items is made of the "
           "seq of the call's own record, not of the first one's.",
           cases=["formats/default/strange-responses",
                  "http_server/default/conv_01M7FYSE77MRXMFRTJTYE9W9KY"],
           questions=["messages --format anthropic *",
                      "GET /api/v1/session/:id/messages*format=anthropic"],
           rule=call_ids(r"call_0_\d+_\d+", r"call_0_\d+_\d+")),
    Change("Custom, mcp, shell and other calls of Responses are calls and results in every view; "
           "the report says which shape was lost.",
           cases=["*/default/*-responses", "*/default/*-responses-*", "formats/default/mixed",
                  "formats/default/*-openai", "library/default/kept",
                  "http_server/default/own", "http_server/default/conv_*",
                  "http_server/default/15689451-d782-4bd5-8620-e017c895e0e9"],
           questions=["messages *", "GET /api/*"],
           rule=any_of(grown(but=r"call_0_\d+_\d+|refusal|pending"), reported("losses", "repairs", "tokens", "this_time_tokens"))),
    Change("OpenAI's custom call is one in Responses and the items of Conversations, too.",
           cases=["http_server/default/15689451-d782-4bd5-8620-e017c895e0e9",
                  "formats/default/*-openai"],
           questions=["GET /v1/conversations/:id/items*", "messages --format responses *"],
           rule=CUSTOM),
    Change("Spellings of an id that mean the same are left as they stand.",
           cases=["formats/default/*-openai", "http_server/default/*"],
           questions=["messages *", "GET /api/v1/session/:id/messages*"], rule=respelled()),
    Change("The display members of a call are shown by chat and the older form, "
           "and the report names them alike in every format.",
           cases=["*/default/*toolmessage*", "formats/default/mixed", "library/default/kept",
                  "http_server/default/own", "formats/default/strange-chat"],
           questions=["messages *", "GET /api/chat-sessions/:id/messages*"],
           rule=any_of(added("display", "displayName", "description"), reported("losses"))),
    Change("A call without an id is given back without one in the format that it came in, as it "
           "stands, and so is its message.",
           cases=["http_server/default/2373c7be-4be2-4867-8c51-dce2c1a24262",
                  "http_server/default/conv_01M7FYSE77MRXMFRTJTYE9W9KY", "formats/default/strange-*"],
           questions=["messages --format acontext *", "messages --format chat *",
                      "messages --format toolmessage2 *",
                      "GET /api/v1/session/:id/messages*format=acontext",
                      "GET /v1/conversations/:id/items*"],
           rule=lambda d: d.new is MISSING and d.path[-1] in ("id", "call_id")
           and str(d.old).startswith(("call_made_", "msg_"))),
    Change("Members of Anthropic's replies do not go to a provider.",
           cases=["*/default/*-anthropic", "formats/default/mixed", "formats/default/pieces",
                  "http_server/default/own",
                  "http_server/default/d2688bdb-d043-4783-8d81-6351ce5297e5"],
           questions=["messages --format anthropic *",
                      "GET /api/v1/session/:id/messages*format=anthropic"],
           rule=any_of(left_out("id", "type", "model", "stop_reason", "usage"),
                       reported("losses"))),
    Change("Names, halves of surrogate pairs, types of images and files that a provider refuses are "
           "mended or noted.",
           cases=MENDED, questions=PROVIDERS, rule=any_of(MENDS, reported("losses"))),
    Change("Empty messages of the assistant do not go to a provider, and the others are as they were.",
           cases=MENDED, questions=PROVIDERS,
           rule=message_by_message(any_of(MENDS, CUSTOM, item_members(), left_out("exitCode"),
                                          became(("content", [], ""))), is_empty)),
    Change("Reasoning does not go to Responses without what the model said after it.",
           cases=["formats/default/mixed"], questions=["messages --format responses *"],
           rule=message_by_message(any_of(MENDS, item_members()), is_lone_reasoning)),
    Change("A view is the whole history: it refers Responses to no item that it should have kept.",
           cases=["library/default/amended-responses", "formats/default/*-responses"],
           questions=["messages --format responses *"],
           rule=message_by_message(any_of(CUSTOM, item_members()), is_reference)),
    Change("A client of Acontext gets back what it stored, with every member, and the results that "
           "answer no call as well.",
           cases=["http_server/default/15689451-d782-4bd5-8620-e017c895e0e9",
                  "http_server/default/2373c7be-4be2-4867-8c51-dce2c1a24262",
                  "http_server/default/9e42600f-ffe6-4f99-900a-0c7691f91d1e",
                  "http_server/default/d2688bdb-d043-4783-8d81-6351ce5297e5"],
           questions=["GET /api/v1/session/:id/messages*"],
           rule=any_of(given_back(), listed_beside({"seen": True}))),
    Change("On a page with messages of several formats a message of the format that is asked for stands "
           "as it came, and the others are written one by one: nothing is repaired.",
           cases=["http_server/default/own"], questions=["GET /api/v1/session/:id/messages*"],
           rule=any_of(grown(r"\[No result was recorded.*|call_1_\d+_0"),
                       lambda d: d.path[-1] == "ids" and set(d.new) <= set(d.old))),
    Change("What Acontext's route stored is in its view in every format: a text stands for what the format "
           "has no place for, and for a result without a call. The report is beside it.",
           cases=["http_server/default/*"],
           questions=["GET /api/v1/session/:id/messages*", "GET /v1/conversations/:id/items*"],
           rule=any_of(stood_in(), lambda d: d.old is MISSING and d.path in (("data", "losses"), ("data", "repairs")),
                       lambda d: d.path == ("data", "this_time_tokens") and d.new > d.old)),
    Change("OpenAI's types have no place for Gemini's signature of a call.",
           cases=["*/default/*-gemini", "formats/default/mixed", "http_server/default/*"], questions=PROVIDERS,
           rule=any_of(lambda d: d.path[-1] == "extra_content" and d.new is MISSING
                       and d.old == {"google": {"thought_signature": "c2ln"}}, reported("losses"))),
    *[Change("Call ids are as long as each provider takes them: " + why,
             cases=["outputs/default/call-ids"], questions=["messages --format %s *" % f],
             rule=any_of(call_ids(old, new), reported("repairs")))
      for f, old, new, why in (
          ("openai", r"x{200}", r"x{35}_11_0", "40 characters for chat."),
          ("responses", r"x{200}", r"x{59}_11_0", "64 for Responses."),
          ("anthropic", r"x{64}_11_0", r"x{200}", "Anthropic names no limit."))],
    Change("Responses refuses what the model said without id and status, and an image without detail.",
           cases=["*"], questions=["messages --format responses *"],
           rule=any_of(item_members(), reported("tokens"))),
    Change("A call without an id has the same one among the items of Conversations as in every view: "
           "that of its own record. Its result has it, too.",
           cases=["http_server/default/15689451-d782-4bd5-8620-e017c895e0e9",
                  "http_server/default/2373c7be-4be2-4867-8c51-dce2c1a24262",
                  "http_server/default/9e42600f-ffe6-4f99-900a-0c7691f91d1e",
                  "http_server/default/d2688bdb-d043-4783-8d81-6351ce5297e5",
                  "http_server/default/own"],
           questions=["GET /v1/conversations/:id/items*"],
           rule=lambda d: d.path[-1] == "call_id" and isinstance(d.old, str)
           and re.fullmatch(r"call_made_1_\d+|", d.old) and isinstance(d.new, str)
           and re.fullmatch(r"call_made_\d+_\d+", d.new)),
    Change("Anthropic refuses a failure that says nothing.",
           cases=["loop/default/exec"], questions=["messages --format anthropic *"],
           rule=any_of(became(("content", "", "[The tool failed and said nothing.]")),
                       reported("losses"))),
    Change("What is reported of a moved image says so in the usual words.",
           cases=["*"], questions=["messages --format *"],
           rule=became(("why", "moved into a user message behind it",
                        "moved into a user message after it"))),
    Change("Reports of losses and repairs say so in the usual words.",
           cases=["*"], questions=["messages --format *"],
           rule=became(("why", "members of the inner object",
                        "the format has no place for members of the inner object"),
                       ("text", "a call got another id: its own stands twice, or is none that the "
                        "provider takes",
                        "a call got another id: its own occurs twice, or the provider does not "
                        "accept it"))),
]
