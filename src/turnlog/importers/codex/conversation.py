"""Convert the lines of a Codex rollout into drafts: items, contexts, compactions. Events are in `events`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ...log.messages import Message, Outcome, ToolResult, text_of
from ...log.records import Configuration, MessageRecord
from ...log.texts import strings_in
from ...providers.openai_responses import PROVIDER
from ...view.program_prefaces import is_preface
from ..drafting import Drafting, as_utc
from ..edits import edits_in, record_edits
from ..json_values import items, within, without, word
from ..messages import parse
from ..repeats import result_text
from .events import CodexEvents


class RolloutLine(Struct, frozen=True):
    """A line of a rollout: its kind and its payload."""

    line: int
    time: Any
    kind: str
    payload: dict[str, Any]


class RolloutFacts(Struct, frozen=True):
    """Session facts in the rollout; "" for a fact that it does not contain."""

    session: str
    parent: str
    title: str


_NO_ITEMS = frozenset({"ghost_snapshot", "other"})
"""Items that Codex stores but never sends."""

_BURST = timedelta(milliseconds=250)
"""The longest gap between two lines of a copied history, which Codex writes at once. The gap between a prompt and the
usage of its answer is longer: it contains a request to the model."""

_SOURCES = {"cli": "interactive", "vscode": "interactive", "exec": "non-interactive", "mcp": "mcp"}
"""Values of `source` (protocol.rs: SessionSource). `mcp` is Codex as a server inside another program. For a subagent,
`source` contains its parent instead."""


def draft_rollout(entries: list[RolloutLine], log: Drafting) -> RolloutFacts:
    """Add the drafts of a rollout to `log`; returns the facts of the session."""
    return _Rollout(entries, log).run()


class _Rollout:
    """One pass over the lines, with its state."""

    def __init__(self, entries: list[RolloutLine], log: Drafting) -> None:
        self.entries = entries
        self.log = log
        patched = (entry.payload for entry in entries if entry.payload.get("type") == "patch_apply_end")
        self.events = CodexEvents(log, _texts_of_items(entries), {str(payload.get("call_id")) for payload in patched})
        self.session = self.parent = self.model = ""
        self.instructions: str | None = None
        self.configuration: Configuration | None = None
        self.system_texts: set[str] = set()
        self.user_messages: list[int] = []
        self.compacted = 0

    def run(self) -> RolloutFacts:
        """Draft every line; returns the facts of the session."""
        handlers = {
            "session_meta": self._meta,
            "turn_context": self._context,
            "response_item": self._item,
            "compacted": self._compacted,
            "event_msg": self._event,
        }
        copied = _copied_lines(self.entries)
        for number, entry in enumerate(self.entries):
            self.log.at(entry.time)
            self.events.is_copy = number < copied
            handler = handlers.get(entry.kind)
            if handler is None:
                self.log.left_unread(entry.line, "", entry.payload, is_empty=False, of=f"a line of type {entry.kind!r}")
                self.log.note(entry.kind, entry.payload)
            else:
                handler(entry)
        return RolloutFacts(session=self.session, parent=self.parent, title=self.events.title)

    def _meta(self, entry: RolloutLine) -> None:
        meta = entry.payload
        self.log.files.work_in(meta.get("cwd"))
        session_id = meta.get("id") or meta.get("session_id")
        if not self.session and isinstance(session_id, str):
            self.session = session_id
            parent = _parent_of(meta)
            self.parent = parent if parent != session_id else ""
            self.log.opened(meta.get("source"), _SOURCES)
        if text := word(within(meta, "base_instructions", "text")):
            meta = without(meta, ("base_instructions",))
            self._system(text, entry)
        self.log.note("session_meta", meta)

    def _system(self, text: str, entry: RolloutLine) -> None:
        """Add the system prompt once: the file of a fork repeats the prompt of its origin."""
        if text == self.instructions:
            return
        self.instructions = text
        for message in parse(PROVIDER, {"instructions": text, "input": []}, self.log):
            self.log.add(MessageRecord(message=message, source=f"line {entry.line}"))

    def _context(self, entry: RolloutLine) -> None:
        context = entry.payload
        self.log.files.work_in(context.get("cwd"))
        model = context.get("model")
        self.model = model if isinstance(model, str) else self.model
        fields = {key: context.get(key) for key in ("effort", "summary")}
        reasoning = {key: value for key, value in fields.items() if isinstance(value, str) and value != "none"}
        settings = {"reasoning": reasoning} if reasoning else {}
        body = Configuration(provider=PROVIDER.name, model=self.model, settings=settings)
        if body != self.configuration:
            self.configuration = body
            self.log.add(body)
        self.log.note_changes("turn_context", without(context, ("turn_id",)))

    def _item(self, entry: RolloutLine) -> None:
        item = entry.payload
        kind = word(item.get("type"))
        if kind in _NO_ITEMS:
            self.log.note(kind, item)
            return
        messages = parse(PROVIDER, {"input": [item]}, self.log) if kind else ()
        if not messages:
            self.log.unreadable(entry.line, f"an item of type {kind or None}", item, "entry")
        for message in messages:
            if message.role == "user":
                message = self.log.with_results(message, lambda result: replace(result, outcome=self._outcome(result)))
            model = self.model if message.role == "assistant" else ""
            number = self.log.add(MessageRecord(message=message, model=model, source=f"line {entry.line}"))
            self._patches(message)
            if message.role == "system":
                self.system_texts.add(text_of(message))
            if _is_prompt(message):
                self.user_messages.append(number)

    def _patches(self, message: Message) -> None:
        """Record what applied patches changed, if no event contains it."""
        for part in message.parts:
            if isinstance(part, ToolResult) and part.call_id not in self.events.patched and _is_applied(part):
                call = self.log.call(part.call_id)
                edits = edits_in(call) if call is not None else []
                record_edits(edits, self.log.files, self.log.call_record(part.call_id))

    def _outcome(self, result: ToolResult) -> Outcome:
        if result.outcome != "ok":
            return result.outcome
        return _outcome_in_text(result_text(result.parts)) or self.events.outcomes.get(result.call_id, "ok")

    def _compacted(self, entry: RolloutLine) -> None:
        """From here on the model saw `replacement_history` instead of everything before. Older versions wrote only the
        summary, as `message`."""
        last = self.log.last
        replacing = items(entry.payload.get("replacement_history"))
        shown = [message for item in replacing for message in self._replacing(item, entry.line)]
        detail = without(entry.payload, ("replacement_history",))
        summary = word(entry.payload.get("message"))
        if not (shown or summary):
            self.log.left_unread(entry.line, "", entry.payload, is_empty=True, of="a compaction")
        if last <= self.compacted or not (shown or summary):
            self.log.note("compacted", entry.payload)
            return
        # This decision also covers the previous compaction, whose replacement it replaces.
        first = max(1, self.compacted)
        if shown:
            self.compacted = self.log.compacted(first, last, "Codex compacted", detail, shown)
            return
        detail |= {"message": None, "summary": self.log.last + 2}
        self.compacted = self.log.compacted(first, last, "Codex compacted", detail)
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}
        for message in parse(PROVIDER, {"input": [item]}, self.log):
            self.log.add(MessageRecord(message=replace(message, by_program=True), source=f"line {entry.line}"))

    def _replacing(self, item: Any, line: int) -> tuple[Message, ...]:
        """The messages of an item of a replacement history. System text that the log already contains is left out,
        because a compaction does not hide system messages."""
        kind = word(within(item, "type"))
        if not isinstance(item, dict) or kind in _NO_ITEMS:
            return ()
        messages = parse(PROVIDER, {"input": [item]}, self.log) if kind else ()
        if not messages:
            self.log.unreadable(line, "an item of a replacement history", item)
        return tuple(
            message for message in messages if message.role != "system" or text_of(message) not in self.system_texts
        )

    def _event(self, entry: RolloutLine) -> None:
        payload = entry.payload
        if payload.get("type") == "thread_rolled_back":
            self._rolled_back(payload)
        else:
            self.events.take(payload, entry.line, self.model)

    def _rolled_back(self, payload: Mapping[str, Any]) -> None:
        """Record that the user went back by `num_turns` prompts: these prompts and everything after them are taken
        back."""
        turns = payload.get("num_turns")
        turns = turns if isinstance(turns, int) and turns > 0 else 1
        if not self.user_messages:
            self.log.note("thread_rolled_back", payload)
            return
        first = self.user_messages[max(0, len(self.user_messages) - turns)]
        del self.user_messages[-turns:]
        self.log.rewound(first, f"{turns} turns rolled back")


_EXIT = lazy_pattern(r"^Process exited with code (-?\d+)$", re.MULTILINE)
_HEAD = 400
"""The number of first characters of a result in which Codex says how the command ended. The command's output follows
and may contain any text."""


def _copied_lines(entries: list[RolloutLine]) -> int:
    """The number of lines at the beginning of a fork's or a subagent's rollout that Codex may have copied from its
    parent: those from before it began, and those written at once when it began. Older versions kept the times of the
    parent's lines, newer ones write all with the time of the fork (codex-rs, core/src/agent/control/spawn.rs)."""
    metas = [entry.payload for entry in entries[:1] if entry.kind == "session_meta"]
    if not any(_parent_of(meta) for meta in metas):
        return 0
    last = ""
    for number, entry in enumerate(entries):
        time = as_utc(entry.time)
        if time and last and datetime.fromisoformat(time) - datetime.fromisoformat(last) > _BURST:
            return number
        last = max(last, time)
    return len(entries)


def _parent_of(meta: Mapping[str, Any]) -> str:
    """The id of the session that a rollout was forked from, or whose subagent it is."""
    spawned = within(meta, "source", "subagent", "thread_spawn", "parent_thread_id")
    return word(meta.get("forked_from_id") or meta.get("parent_thread_id") or spawned)


def _outcome_in_text(text: str) -> Outcome | None:
    """The outcome that Codex wrote into a result's text, None if there is none."""
    head = text[:_HEAD]
    if head.startswith("aborted by user"):
        return "aborted"
    if head.startswith("command timed out after"):
        return "timeout"
    code: Any = None
    if head.startswith('{"output":'):
        try:
            code = within(json.loads(text), "metadata", "exit_code")
        except (ValueError, RecursionError):
            return None
    else:
        exit_line = _EXIT.search(head.partition("\nOutput:")[0])
        code = int(exit_line[1]) if exit_line else None
    if not isinstance(code, int):
        return None
    return "ok" if code == 0 else "timeout" if code == 124 else "failed"


def _is_applied(result: ToolResult) -> bool:
    """Whether a result says that Codex applied a patch (codex-rs/apply-patch/src/lib.rs)."""
    return result.outcome == "ok" and "Success. Updated the following files:" in result_text(result.parts)


def _is_prompt(message: Message) -> bool:
    """Whether the user wrote this message; Codex writes others in the user's role."""
    if message.role != "user" or any(isinstance(part, ToolResult) for part in message.parts):
        return False
    return not is_preface(message)


def _texts_of_items(entries: list[RolloutLine]) -> dict[str, list[str]]:
    """The texts of the items by call id; those of messages and reasoning have the key ""."""
    texts_by_call: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind == "response_item":
            texts_by_call.setdefault(word(entry.payload.get("call_id")), []).extend(strings_in(entry.payload))
    return texts_by_call
