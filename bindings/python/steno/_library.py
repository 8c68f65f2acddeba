"""libsteno through ctypes: the option structs of steno.h, member for member, and one way to call.

tests/bindings/python.test compares the structs with the header, so that they cannot drift.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any, List, Type, TypeVar


class Error(Exception):
    """A call that failed. `code` is a word ("conflict", "not found"), `number` that of enum
    steno_code, `errno` the system's, or 0."""

    def __init__(self, number: int, errno: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.errno = errno
        self.code = library().steno_code_name(number).decode()


class _ErrorStruct(ctypes.Structure):
    _fields_ = [("code", c_int), ("sys", c_int), ("msg", c_char * 240)]


class OpenOptions(ctypes.Structure):
    c_name = "steno_open_options"
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("progress", c_void_p), ("progress_ctx", c_void_p),
                ("warning", c_void_p), ("warning_ctx", c_void_p), ("seal_key", c_char_p)]


class ListOptions(ctypes.Structure):
    c_name = "steno_list_options"
    _fields_ = [("size", c_size_t), ("limit", c_uint32), ("cursor", c_char_p), ("query", c_char_p),
                ("complete", c_int)]


class AppendOptions(ctypes.Structure):
    c_name = "steno_append_options"
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("durability", c_int), ("expected_seq", c_uint64),
                ("format", c_char_p), ("idempotency_key", c_char_p), ("profile", c_char_p),
                ("max_inline_chars", c_uint64), ("max_inline_bytes", c_uint64), ("message_id", c_char_p),
                ("via", c_char_p), ("of_seq", c_uint64), ("after_seq", c_uint64),
                ("run", c_void_p), ("deletes", c_char_p)]


class ViewOptions(ctypes.Structure):
    c_name = "steno_view_options"
    _fields_ = [("size", c_size_t), ("format", c_char_p), ("edit_strategies", c_char_p), ("pin", c_char_p),
                ("budget", c_uint64), ("after_seq", c_uint64), ("before_seq", c_uint64), ("limit", c_uint64),
                ("last", c_uint64), ("outputs", c_int), ("count_tokens", c_bool), ("all_messages", c_bool),
                ("no_ids", c_bool), ("strict", c_bool), ("own_bytes", c_bool), ("via", c_char_p),
                ("every_message", c_bool)]


class OutputOptions(ctypes.Structure):
    c_name = "steno_output_options"
    _fields_ = [("size", c_size_t), ("tool", c_char_p), ("call_id", c_char_p), ("server", c_char_p),
                ("terminal", c_bool), ("flags", c_uint32), ("profile", c_char_p),
                ("max_inline_chars", c_uint64), ("max_inline_bytes", c_uint64), ("context_tools", c_bool),
                ("on_ref", c_void_p), ("on_ref_ctx", c_void_p)]


class ForkOptions(ctypes.Structure):
    c_name = "steno_fork_options"
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("at_seq", c_uint64), ("at", c_char_p),
                ("before", c_char_p), ("id", c_char_p), ("project", c_char_p)]


T = TypeVar("T", bound=ctypes.Structure)


def options(kind: Type[T], **members: Any) -> T:
    value = kind(**members)
    value.size = ctypes.sizeof(kind)  # type: ignore[attr-defined]
    return value


SINK = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


class Sink:
    """Gathers the pieces of a streamed answer. An exception in a callback cannot cross C, so it is
    kept and raised afterwards."""

    def __init__(self) -> None:
        self._pieces: List[bytes] = []
        self._failure: BaseException | None = None
        self.function = SINK(self._take)

    def _take(self, _: Any, p: int, n: int) -> int:
        try:
            self._pieces.append(ctypes.string_at(p, n))
            return 0
        except BaseException as e:  # pylint: disable=broad-except
            self._failure = e
            return 1

    def taken(self) -> bytes:
        if self._failure is not None:
            raise self._failure
        return b"".join(self._pieces)


# Calls that can fail, with the types of what stands before the error, which is always last.
_CALLS = {
    "steno_open": [c_char_p, POINTER(OpenOptions), POINTER(c_void_p)],
    "steno_conv_create": [c_void_p, c_char_p, c_char_p, c_char_p, POINTER(c_void_p)],
    "steno_conv_open": [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)],
    "steno_list": [c_void_p, c_char_p, POINTER(ListOptions), POINTER(c_void_p)],
    "steno_remove": [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)],
    "steno_append": [c_void_p, c_char_p, c_size_t, POINTER(AppendOptions), POINTER(c_void_p)],
    "steno_amend": [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t, POINTER(AppendOptions), POINTER(c_void_p)],
    "steno_view": [c_void_p, POINTER(ViewOptions), SINK, c_void_p, POINTER(c_void_p)],
    "steno_conv_last_seq": [c_void_p, POINTER(c_uint64)],
    "steno_conv_meta": [c_void_p, POINTER(c_void_p)],
    "steno_conv_set_meta": [c_void_p, c_char_p],
    "steno_conv_wait": [c_void_p, c_uint64, c_int],
    "steno_context": [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p)],
    "steno_context_raw": [c_void_p, c_char_p, c_uint64, c_uint64, SINK, c_void_p],
    "steno_output_begin": [c_void_p, POINTER(OutputOptions), POINTER(c_void_p)],
    "steno_output_write": [c_void_p, c_char_p, c_size_t],
    "steno_output_finish": [c_void_p, c_char_p, POINTER(c_void_p)],
    "steno_fork": [c_void_p, POINTER(ForkOptions), POINTER(c_void_p)],
    "steno_convert": [c_char_p, c_char_p, c_char_p, c_size_t, SINK, c_void_p, POINTER(c_void_p)],
    "steno_check_history": [c_char_p, c_char_p, c_size_t, POINTER(c_void_p)],
}
# The others: what they give, and what they take.
_PLAIN = {
    "steno_version": (c_char_p, []),
    "steno_code_name": (c_char_p, [c_int]),
    "steno_free": (None, [c_void_p]),
    "steno_close": (None, [c_void_p]),
    "steno_conv_close": (None, [c_void_p]),
    "steno_conv_id": (c_char_p, [c_void_p]),
    "steno_receipt_json": (c_char_p, [c_void_p]),
    "steno_receipt_replayed": (c_bool, [c_void_p]),
    "steno_receipt_free": (None, [c_void_p]),
    "steno_output_free": (None, [c_void_p]),
}


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    name = os.environ.get("STENO_LIBRARY") or ctypes.util.find_library("steno") or "libsteno.so.0"
    lib = ctypes.CDLL(name)
    for call_name, types in _CALLS.items():
        function = getattr(lib, call_name)
        function.argtypes = [*types, POINTER(_ErrorStruct)]
        function.restype = c_int
    for call_name, (result, types) in _PLAIN.items():
        function = getattr(lib, call_name)
        function.argtypes = types
        function.restype = result
    return lib


def call(name: str, *args: Any) -> int:
    """Calls a function that can fail; raises Error when it does."""
    err = _ErrorStruct()
    rc = getattr(library(), name)(*args, ctypes.byref(err))
    if rc < 0:
        raise Error(rc, err.sys, err.msg.decode("utf-8", "replace"))
    return rc


def text_of(pointer: c_void_p) -> bytes:
    """A text that the library gave away, which is freed here."""
    try:
        return ctypes.string_at(pointer)
    finally:
        library().steno_free(pointer)
