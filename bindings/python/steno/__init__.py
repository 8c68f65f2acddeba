"""The verbatim record of conversations with tools, for Python: stores, conversations, views, outputs.

    import steno

    with steno.open("./record") as store:
        chat = store.conversation("support-42", create=True)
        chat.append({"role": "user", "content": "What failed?"}, idempotency_key="turn-1")
        print(chat.messages(format="anthropic", budget=8000))

It needs nothing but Python and libsteno, which is found as the system's loader finds it, or by the
environment variable STENO_LIBRARY. Calls release the interpreter's lock while they work, and handles
may be shared by threads. Failures are Error, with the word of steno.h in `code`.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import threading
from typing import Any, Dict, Iterator, List, Optional, Union

from ._library import (AppendOptions, Error, ForkOptions, ListOptions, OpenOptions, OutputOptions, Sink,
                       ViewOptions, call, library, options, text_of)

__all__ = ["Conversation", "Error", "Store", "check_history", "convert", "open", "version"]

Json = Union[Dict[str, Any], List[Any], str, bytes]

_OUTPUTS = {"default": 0, "stub": 1, "full": 2}
_RECORD, _EXPECT_SEQ, _KEEP_OUTPUTS, _ANEW = 1, 2, 4, 32


def _bytes(value: Optional[Json]) -> Optional[bytes]:
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    # A lone surrogate, which Python allows in a string, stays what JSON can say of it.
    return value.encode("utf-8", "surrogatepass")


def _id(value: Optional[str]) -> Optional[bytes]:
    if value is not None and "\0" in value:
        raise Error(-2, 0, "a NUL in an id")
    return None if value is None else value.encode()


def version() -> str:
    return library().steno_version().decode()


def open(url: str, *, existing: bool = False, seal_key: Optional[str] = None) -> "Store":
    """Opens a store; makes it on first use, unless `existing` is set."""
    opt = options(OpenOptions, flags=1 if existing else 0, seal_key=_id(seal_key))
    handle = ctypes.c_void_p()
    call("steno_open", os.fsencode(url), ctypes.byref(opt), ctypes.byref(handle))
    return Store(handle)


def convert(messages: Json, *, to: str, from_: Optional[str] = None) -> List[Any]:
    """A history from one format to another."""
    data = _bytes(messages)
    assert data is not None
    pieces = Sink()
    call("steno_convert", _id(from_), _id(to), data, len(data), pieces.function, None, None)
    return json.loads(pieces.taken())


def check_history(provider: str, messages: Json) -> List[Dict[str, Any]]:
    """What a provider would have against a history; empty when it is acceptable."""
    data = _bytes(messages)
    assert data is not None
    found = ctypes.c_void_p()
    call("steno_check_history", _id(provider), data, len(data), ctypes.byref(found))
    return json.loads(text_of(found))


class _Handle:
    """A handle of the library, closed once, and never while a call of another thread uses it."""

    _close = ""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._pointer: Optional[ctypes.c_void_p] = handle
        self._lock = threading.Condition()
        self._busy = 0

    @contextlib.contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        with self._lock:
            if self._pointer is None:
                raise Error(-2, 0, "it is closed")
            self._busy += 1
            pointer = self._pointer
        try:
            yield pointer
        finally:
            with self._lock:
                self._busy -= 1
                self._lock.notify_all()

    def close(self) -> None:
        with self._lock:
            pointer, self._pointer = self._pointer, None
            while self._busy:
                self._lock.wait()
        if pointer is not None:
            getattr(library(), self._close)(pointer)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # No call is at work: it would hold a reference.
        pointer = getattr(self, "_pointer", None)
        if pointer is not None:
            self._pointer = None
            getattr(library(), self._close)(pointer)


class Store(_Handle):
    _close = "steno_close"

    def create(self, id: Optional[str] = None, *, project: str = "default", **meta: Any) -> "Conversation":
        handle = ctypes.c_void_p()
        with self._use() as store:
            call("steno_conv_create", store, _id(project), _id(id), _bytes(meta or None), ctypes.byref(handle))
        return Conversation(handle)

    def conversation(self, id: str, *, project: str = "default", create: bool = False) -> "Conversation":
        handle = ctypes.c_void_p()
        for tries in range(3):
            try:
                with self._use() as store:
                    call("steno_conv_open", store, _id(project), _id(id), ctypes.byref(handle))
                return Conversation(handle)
            except Error as e:
                if not create or e.code != "not found":
                    raise
            try:
                return self.create(id, project=project)
            except Error as e:
                if e.code != "conflict" or tries == 2:  # somebody made it between the two
                    raise
        raise AssertionError("not reached")

    def list(self, *, project: Optional[str] = "default", limit: int = 20, cursor: Optional[str] = None,
             query: Optional[str] = None, complete: bool = False) -> Dict[str, Any]:
        """The newest first. The first list after a boot may say "catching_up": it answers from what
        was known before. `complete` waits instead until every conversation was looked at."""
        opt = options(ListOptions, limit=limit, cursor=_id(cursor), query=_id(query), complete=int(complete))
        text = ctypes.c_void_p()
        with self._use() as store:
            call("steno_list", store, _id(project), ctypes.byref(opt), ctypes.byref(text))
        return json.loads(text_of(text))

    def remove(self, id: str, *, project: str = "default") -> str:
        """To the trash; the trash id."""
        text = ctypes.c_void_p()
        with self._use() as store:
            call("steno_remove", store, _id(project), _id(id), ctypes.byref(text))
        return text_of(text).decode()


class Conversation(_Handle):
    _close = "steno_conv_close"

    @property
    def id(self) -> str:
        with self._use() as conv:
            return library().steno_conv_id(conv).decode()

    def append(self, messages: Json, *, format: Optional[str] = None, idempotency_key: Optional[str] = None,
               message_id: Optional[str] = None, expected_seq: Optional[int] = None, record: bool = False,
               keep_outputs: bool = False, anew: bool = False, durability: str = "full") -> Dict[str, Any]:
        """Appends a message, or a list of them at once or not at all; the receipt."""
        flags = (_RECORD if record else 0) | (_KEEP_OUTPUTS if keep_outputs else 0) | (_ANEW if anew else 0)
        flags |= _EXPECT_SEQ if expected_seq is not None else 0
        opt = options(AppendOptions, flags=flags, durability=1 if durability == "process" else 0,
                      expected_seq=expected_seq or 0, format=_id(format),
                      idempotency_key=_id(idempotency_key), message_id=_id(message_id))
        data = _bytes(messages)
        assert data is not None
        receipt = ctypes.c_void_p()
        with self._use() as conv:
            call("steno_append", conv, data, len(data), ctypes.byref(opt), ctypes.byref(receipt))
        return self._receipt(receipt)

    def amend(self, kind: str, target: str, value: Optional[Json] = None) -> Dict[str, Any]:
        """kind is "delete", "meta" or "supersede"."""
        data = _bytes(value)
        receipt = ctypes.c_void_p()
        with self._use() as conv:
            call("steno_amend", conv, _id(kind), _id(target), data, len(data or b""), None, ctypes.byref(receipt))
        return self._receipt(receipt)

    def delete(self, target: str) -> Dict[str, Any]:
        return self.amend("delete", target)

    @staticmethod
    def _receipt(receipt: ctypes.c_void_p) -> Dict[str, Any]:
        try:
            answer = json.loads(library().steno_receipt_json(receipt))
            answer["replayed"] = library().steno_receipt_replayed(receipt)
            return answer
        finally:
            library().steno_receipt_free(receipt)

    def view(self, *, format: str = "openai", edits: Optional[Json] = None, pin: Optional[str] = None,
             budget: int = 0, after: int = 0, before: int = 0, limit: int = 0, last: int = 0,
             outputs: str = "default", strict: bool = False, all_messages: bool = False,
             every_message: bool = False) -> bytes:
        """The messages in a format, as the JSON that the store gives."""
        if outputs not in _OUTPUTS:
            raise Error(-2, 0, 'outputs is "default", "stub" or "full"')
        opt = options(ViewOptions, format=_id(format), edit_strategies=_bytes(edits), pin=_id(pin),
                      budget=budget, after_seq=after, before_seq=before, limit=limit, last=last,
                      outputs=_OUTPUTS[outputs], strict=strict, all_messages=all_messages,
                      every_message=every_message)
        pieces = Sink()
        with self._use() as conv:
            call("steno_view", conv, ctypes.byref(opt), pieces.function, None, None)
        return pieces.taken()

    def messages(self, **how: Any) -> List[Dict[str, Any]]:
        return json.loads(self.view(**how))

    def last_seq(self) -> int:
        seq = ctypes.c_uint64()
        with self._use() as conv:
            call("steno_conv_last_seq", conv, ctypes.byref(seq))
        return seq.value

    def meta(self) -> Dict[str, Any]:
        text = ctypes.c_void_p()
        with self._use() as conv:
            call("steno_conv_meta", conv, ctypes.byref(text))
        return json.loads(text_of(text))

    def set_meta(self, **patch: Any) -> None:
        with self._use() as conv:
            call("steno_conv_set_meta", conv, _bytes(patch))

    def wait(self, after: int, milliseconds: int) -> bool:
        """True when there is a record behind `after`, False when the time is over."""
        with self._use() as conv:
            return call("steno_conv_wait", conv, ctypes.c_uint64(after), milliseconds) == 1

    def context(self, operation: str, **args: Any) -> Dict[str, Any]:
        """list, read, tail or grep over the large outputs."""
        data = _bytes(args)
        assert data is not None
        text = ctypes.c_void_p()
        with self._use() as conv:
            call("steno_context", conv, _id(operation), data, len(data), ctypes.byref(text))
        return json.loads(text_of(text))

    def bytes(self, ref: Union[str, Dict[str, Any]], *, offset: int = 0, length: int = 0) -> bytes:
        """The bytes of a large output, by its ref or the ref's id."""
        name = ref if isinstance(ref, str) else ref["id"]
        pieces = Sink()
        with self._use() as conv:
            call("steno_context_raw", conv, _id(name), ctypes.c_uint64(offset), ctypes.c_uint64(length),
                 pieces.function, None)
        return pieces.taken()

    def output(self, content: Union[str, bytes], *, tool: str, call_id: str, server: Optional[str] = None,
               terminal: bool = False, **fields: Any) -> Dict[str, Any]:
        """Stores a tool's output and the tool message for it: what a model would see, and its ref."""
        data = content.encode() if isinstance(content, str) else content
        opt = options(OutputOptions, tool=_id(tool), call_id=_id(call_id), server=_id(server), terminal=terminal)
        handle, text = ctypes.c_void_p(), ctypes.c_void_p()
        with self._use() as conv:
            call("steno_output_begin", conv, ctypes.byref(opt), ctypes.byref(handle))
            try:
                call("steno_output_write", handle, data, len(data))
                call("steno_output_finish", handle, _bytes(fields or None), ctypes.byref(text))
            finally:
                library().steno_output_free(handle)
        return json.loads(text_of(text))

    def fork(self, *, id: Optional[str] = None, project: Optional[str] = None, at: Optional[str] = None,
             before: Optional[str] = None, at_seq: int = 0) -> "Conversation":
        opt = options(ForkOptions, id=_id(id), project=_id(project), at=_id(at), before=_id(before), at_seq=at_seq)
        handle = ctypes.c_void_p()
        with self._use() as conv:
            call("steno_fork", conv, ctypes.byref(opt), ctypes.byref(handle))
        return Conversation(handle)
