"""A checkpointer for LangGraph that keeps threads in a store.

    from steno.langgraph import StenoSaver
    graph = builder.compile(checkpointer=StenoSaver.open("./record"))

A thread is a conversation of the project "langgraph". A checkpoint is a record of it, and so are the
writes of a task: both are durable when put() and put_writes() have returned. The records are those
that the checkpointer for Node.js writes. Where LangGraph is not installed the class still works with
anything that serializes as LangGraph does, which is how the tests use it.
"""
from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from typing import Any, AsyncIterator, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import Error, Store
from . import open as open_store

try:
    from langgraph.checkpoint.base import (WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple,
                                           get_checkpoint_id, get_checkpoint_metadata)
except ImportError:
    WRITES_IDX_MAP = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}

    class BaseCheckpointSaver:  # type: ignore[no-redef]
        def __init__(self, *, serde: Any = None) -> None:
            self.serde = serde

    class CheckpointTuple(NamedTuple):  # type: ignore[no-redef]
        config: Dict[str, Any]
        checkpoint: Dict[str, Any]
        metadata: Dict[str, Any]
        parent_config: Optional[Dict[str, Any]] = None
        pending_writes: Optional[List[Tuple[str, str, Any]]] = None

    def get_checkpoint_id(config: Dict[str, Any]) -> Optional[str]:
        return config["configurable"].get("checkpoint_id")

    def get_checkpoint_metadata(config: Dict[str, Any], metadata: Dict[str, Any]) -> Dict[str, Any]:
        return dict(metadata)

CHECKPOINT = "langgraph.checkpoint"
WRITES = "langgraph.writes"


def _conversation(thread: str) -> str:
    """An id of a conversation has at most 256 bytes and no control characters; a thread's may."""
    if len(thread.encode()) <= 256 and not re.search(r"[\x00-\x1f\x7f]", thread):
        return thread
    return "thread-" + hashlib.sha256(thread.encode()).hexdigest()


def _place(config: Dict[str, Any]) -> Tuple[str, str]:
    where = config["configurable"]
    return str(where["thread_id"]), where.get("checkpoint_ns", "")


class _Thread:
    """What the records of a thread say."""

    def __init__(self, name: str, records: Sequence[Dict[str, Any]]) -> None:
        self.name = name
        self.checkpoints: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self.writes: Dict[Tuple[str, str], Dict[Tuple[str, int], Tuple[str, str, Any]]] = {}
        self.values: Dict[Tuple[str, str, str], Any] = {}
        for m in (r.get("m") or {} for r in records):
            at = (m.get("ns", ""), m.get("checkpoint_id", ""))
            if m.get("type") == CHECKPOINT:
                self.checkpoints[at] = m
                for channel, version, value in m["values"]:
                    self.values[(at[0], channel, json.dumps(version))] = value
            elif m.get("type") == WRITES:
                there = self.writes.setdefault(at, {})
                for index, channel, value in m["writes"]:
                    # Ordinary writes stay as they were first; errors and interrupts are replaced.
                    if index < 0 or (m["task"], index) not in there:
                        there[(m["task"], index)] = (m["task"], channel, value)

    def newest(self, ns: Optional[str]) -> List[Tuple[str, str]]:
        """Checkpoints, newest first: their ids are in order of time."""
        return sorted((at for at in self.checkpoints if ns is None or at[0] == ns),
                      key=lambda at: at[1], reverse=True)


class StenoSaver(BaseCheckpointSaver):  # type: ignore[misc]
    def __init__(self, store: Store, *, project: str = "langgraph", serde: Any = None) -> None:
        super().__init__(serde=serde)
        self.store = store
        self.project = project

    @classmethod
    def open(cls, url: str, **more: Any) -> "StenoSaver":
        return cls(open_store(url), **more)

    def close(self) -> None:
        self.store.close()

    # ---- values ----

    def _dump(self, value: Any) -> List[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, data.decode() if kind == "json" else base64.b64encode(data).decode()]

    def _load(self, value: Sequence[str]) -> Any:
        kind, text = value
        return self.serde.loads_typed((kind, text.encode() if kind == "json" else base64.b64decode(text)))

    # ---- records ----

    def _read(self, name: str) -> _Thread:
        try:
            with self.store.conversation(_conversation(name), project=self.project) as conv:
                return _Thread(name, conv.messages(format="stored"))
        except Error as e:
            if e.code != "not found":
                raise
            return _Thread(name, [])

    def _append(self, name: str, record: Dict[str, Any]) -> None:
        with self.store.conversation(_conversation(name), project=self.project, create=True) as conv:
            conv.append([record], format="responses", record=True)

    def _tuple(self, thread: _Thread, at: Tuple[str, str]) -> CheckpointTuple:
        ns, saved = at[0], thread.checkpoints[at]
        checkpoint = self._load(saved["checkpoint"])
        values = {channel: value for channel, _, value in saved["values"]}
        for channel, version in (checkpoint.get("channel_versions") or {}).items():
            found = thread.values.get((ns, channel, json.dumps(version)))
            if found is not None:
                values.setdefault(channel, found)
        checkpoint["channel_values"] = {channel: self._load(value) for channel, value in values.items()}
        config = {"configurable": {"thread_id": thread.name, "checkpoint_ns": ns, "checkpoint_id": at[1]}}
        parent = saved.get("parent")
        return CheckpointTuple(
            config, checkpoint, self._load(saved["metadata"]),
            {"configurable": {**config["configurable"], "checkpoint_id": parent}} if parent else None,
            [(task, channel, self._load(value)) for task, channel, value in thread.writes.get(at, {}).values()])

    # ---- LangGraph's interface ----

    def get_tuple(self, config: Dict[str, Any]) -> Optional[CheckpointTuple]:
        name, ns = _place(config)
        thread = self._read(name)
        id = get_checkpoint_id(config)
        found = [(ns, id)] if id else thread.newest(ns)[:1]
        return self._tuple(thread, found[0]) if found and found[0] in thread.checkpoints else None

    def _names(self) -> Iterator[str]:
        cursor = None
        while True:
            page = self.store.list(project=self.project, limit=1000, cursor=cursor, complete=True)
            for item in page["items"]:
                yield item["id"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def list(self, config: Optional[Dict[str, Any]], *, filter: Optional[Dict[str, Any]] = None,
             before: Optional[Dict[str, Any]] = None, limit: Optional[int] = None) -> Iterator[CheckpointTuple]:
        where = config["configurable"] if config else {}
        bound = get_checkpoint_id(before) if before else None
        for name in [str(where["thread_id"])] if "thread_id" in where else self._names():
            thread = self._read(name)
            for at in thread.newest(where.get("checkpoint_ns")):
                if (where.get("checkpoint_id") or at[1]) != at[1] or (bound and at[1] >= bound):
                    continue
                found = self._tuple(thread, at)
                if filter and any(found.metadata.get(key) != value for key, value in filter.items()):
                    continue
                if limit is not None:
                    if limit <= 0:
                        return
                    limit -= 1
                yield found

    def put(self, config: Dict[str, Any], checkpoint: Dict[str, Any], metadata: Dict[str, Any],
            new_versions: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        name, ns = _place(config)
        rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        values = checkpoint.get("channel_values") or {}
        changed = checkpoint.get("channel_versions", {}) if new_versions is None else new_versions
        self._append(name, {
            "type": CHECKPOINT, "ns": ns, "checkpoint_id": checkpoint["id"],
            "parent": get_checkpoint_id(config), "checkpoint": self._dump(rest),
            "metadata": self._dump(get_checkpoint_metadata(config, metadata)),
            "values": [[channel, version, self._dump(values[channel])]
                       for channel, version in changed.items() if channel in values]})
        return {"configurable": {"thread_id": name, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    def put_writes(self, config: Dict[str, Any], writes: Sequence[Tuple[str, Any]], task_id: str,
                   task_path: str = "") -> None:
        name, ns = _place(config)
        self._append(name, {
            "type": WRITES, "ns": ns, "checkpoint_id": config["configurable"]["checkpoint_id"], "task": task_id,
            "writes": [[WRITES_IDX_MAP.get(channel, index), channel, self._dump(value)]
                       for index, (channel, value) in enumerate(writes)]})

    def delete_thread(self, thread_id: str) -> None:
        try:
            self.store.remove(_conversation(str(thread_id)), project=self.project)
        except Error as e:
            if e.code != "not found":
                raise

    async def aget_tuple(self, config: Dict[str, Any]) -> Optional[CheckpointTuple]:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: Optional[Dict[str, Any]], **how: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: [*self.list(config, **how)]):
            yield found

    async def aput(self, *args: Any) -> Dict[str, Any]:
        return await asyncio.to_thread(self.put, *args)

    async def aput_writes(self, *args: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)
