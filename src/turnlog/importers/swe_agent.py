"""SWE-agent trajectories and demonstrations: `*.traj`.

`{"environment", "trajectory", "history", "info", "replay_config"}`. `history` holds the messages,
in the shape of Chat Completions with keys of SWE-agent's own; actions are calls (function calling) or
text. `trajectory` holds each step once more, with times and the state after it. Keys as in
sweagent/types.py (github.com/SWE-agent/SWE-agent).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..errors import FormatError, ImportFailed
from ..log.messages import Message, ToolCall, sha256_hex
from ..log.records import MessageRecord, ToolFinished
from ..providers import anthropic
from ..providers.openai_chat import PROVIDER
from .answers import add_configuration, task_title, texts_of
from .drafting import Drafting, is_empty, without_repeats
from .lines import json_document
from .protocol import Imported, Origin, contents, origin_name, session_id_of
from .wire_message import read_message

_FORMAT = "swe-agent-traj"

_HISTORY = re.compile(rb'"history"\s*:\s*\[')
_STEPS = re.compile(rb'"trajectory"\s*:\s*\[')
_STEP_KEYS = (re.compile(rb'"observation"\s*:'), re.compile(rb'"action"\s*:'), re.compile(rb'"response"\s*:'))
_MESSAGE_KEYS = (re.compile(rb'"role"\s*:\s*"'), re.compile(rb'"(agent|message_type)"\s*:\s*"'))

_ROLES = ("system", "developer", "user", "assistant", "tool")
_CHAT = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "reasoning_content"})
_IMPLIED = {"system": "system_prompt", "user": "observation", "tool": "observation", "assistant": "action"}
"""The `message_type` that a role has if nothing is special about the message."""


class SweAgent:
    """Imports SWE-agent trajectories."""

    name = "swe-agent"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """Steps with action and observation, or a history of messages that name their agent."""
        if head.lstrip()[:1] != b"{":
            return 0
        if _STEPS.search(head) and all(key.search(head) for key in _STEP_KEYS):
            return 85
        return 80 if _HISTORY.search(head) and all(key.search(head) for key in _MESSAGE_KEYS) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The one session of the trajectory."""
        data, file = contents(origin), origin_name(origin)
        try:
            document = json_document(data)
        except ValueError as error:
            raise ImportFailed(
                f"{file}: no whole JSON ({error}), which a SWE-agent trajectory is; copy the file again"
            ) from error
        run = document if isinstance(document, dict) else {}
        history = run.get("history")
        if not isinstance(history, list) or not any(_is_message(wire) for wire in history):
            raise ImportFailed(
                f"{file}: no messages in it; give the .traj that SWE-agent wrote, a list `history` inside"
            )
        log = Drafting(file)
        title = _Run(run, history, log).draft()
        return [
            Imported(
                session_id=session_id_of(_own_id(run) or f"swe-agent-{sha256_hex(data)[:16]}"),
                format=_FORMAT,
                title=title,
                drafts=log.finished(),
                blobs=log.blobs,
                warnings=tuple(log.warnings),
                files=(file,),
            )
        ]


IMPORTER = SweAgent()


def _is_message(wire: Any) -> bool:
    return isinstance(wire, dict) and wire.get("role") in _ROLES


def _replay(run: Mapping[str, Any]) -> dict[str, Any]:
    """What the run was started with; newer versions write it as a text of JSON."""
    config = run.get("replay_config")
    if isinstance(config, str):
        try:
            config = json_document(config.encode("utf-8", "surrogatepass"))
        except ValueError:
            return {}
    return config if isinstance(config, dict) else {}


def _within(value: Any, *path: str) -> Any:
    """What stands in nested objects, None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _own_id(run: Mapping[str, Any]) -> str:
    own = _within(_replay(run), "problem_statement", "id")
    return own if isinstance(own, str) else ""


class _Run:
    """One pass over the history, with the steps beside it."""

    def __init__(self, run: Mapping[str, Any], history: list[Any], log: Drafting) -> None:
        self.run = run
        self.history = history
        self.log = log
        steps = run.get("trajectory")
        self.steps: list[Any] = steps if isinstance(steps, list) else []
        self.step = 0
        self.said = [json.dumps(wire, sort_keys=True) for wire in history]

    def draft(self) -> str:
        """Draft everything; returns the title."""
        config = _replay(self.run)
        about = {key: value for key, value in self.run.items() if key not in ("history", "trajectory", "info")}
        if about:
            self.log.note("run", {**about, "replay_config": config} if config else about)
        model = _within(config, "agent", "model")
        add_configuration(_within(model, "name"), model, None, self.log)
        messages = [message for index in range(len(self.history)) if (message := self._message(index)) is not None]
        self._left_out(len(self.steps))
        if "info" in self.run:
            self.log.note("info", self.run["info"])
        return task_title(messages)

    def _message(self, index: int) -> Message | None:
        wire = self.history[index]
        if not _is_message(wire):
            self.log.note("unknown", wire, f"history[{index}]")
            return None
        step = self._step_of(wire)
        source = self._source(index, wire)
        seen = {key: wire[key] for key in wire if key in _CHAT and not (key == "tool_calls" and not wire[key])}
        rest = {
            key: value for key, value in wire.items() if key not in _CHAT and key not in ("message_type", "is_demo")
        }
        self.log.note_changes("agent", {"agent": rest.pop("agent", "")})
        answered = rest.get("tool_call_ids")
        if wire["role"] == "tool" and isinstance(answered, list) and answered and "tool_call_id" not in seen:
            seen["tool_call_id"], *others = answered
            rest["tool_call_ids"] = others
        message = read_message(PROVIDER, seen, self.log, 0)
        if message is not None:
            message = self._with_thinking(message, rest)
            self.log.add(MessageRecord(message=message, source=source))
        said = [] if message is None else texts_of(message)
        kept = _unsaid(rest, said)
        if kept:
            self.log.note("message", {"source": source, **kept})
        if step is not None:
            self._step(step, [*said, *_texts_after(self.history, index), *map(str, kept.values())], message)
        return message

    def _source(self, index: int, wire: Mapping[str, Any]) -> str:
        """The place, and what is special about the message."""
        kind = wire.get("message_type")
        special = [] if kind is None or kind == _IMPLIED.get(wire["role"]) else [str(kind)]
        if wire.get("is_demo"):
            special.append("is_demo")
        return " ".join([f"history[{index}]", *special])

    def _with_thinking(self, message: Message, rest: dict[str, Any]) -> Message:
        """The message with its thinking, which SWE-agent keeps as Anthropic's blocks."""
        blocks = rest.get("thinking_blocks")
        if message.role != "assistant" or not isinstance(blocks, list) or not blocks:
            return message
        try:
            parsed = anthropic.PROVIDER.parse({"messages": [{"role": "assistant", "content": blocks}]})
        except FormatError:
            return message
        del rest["thinking_blocks"]
        return replace(message, parts=(*parsed.messages[0].parts, *message.parts))

    def _step_of(self, wire: Mapping[str, Any]) -> dict[str, Any] | None:
        """The step that an answer made: the next with its text, else the next with its action.

        Steps passed over are those whose answer is not in the history; they become notes.
        """
        if wire["role"] != "assistant" or wire.get("is_demo"):
            return None
        left = range(self.step, len(self.steps))
        found = next((k for k in left if _within(self.steps[k], "response") == wire.get("content")), -1)
        if found < 0 and left and wire.get("action") and _within(self.steps[self.step], "action") == wire["action"]:
            found = self.step
        if found < 0:
            return None
        self._left_out(found)
        self.step = found + 1
        step: dict[str, Any] = self.steps[found]
        return step

    def _left_out(self, until: int) -> None:
        """Keep the steps before `until` that no message came of."""
        for step in self.steps[self.step : until]:
            self._step(step, [], None)
        self.step = max(self.step, until)

    def _step(self, step: Any, said: list[str], message: Message | None) -> None:
        """Keep what a step says beyond the messages, and how long its tool ran."""
        if not isinstance(step, dict):
            self.log.note("step", step)
            return
        query = step.get("query")
        rest = dict(step)
        if isinstance(query, list):
            # Each step repeats the request it came from: what stands in the history is left out.
            rest["query"] = [wire for wire in query if json.dumps(wire, sort_keys=True) not in self.said]
        calls = [part for part in message.parts if isinstance(part, ToolCall)] if message is not None else []
        seconds = rest.get("execution_time")
        if len(calls) == 1 and isinstance(seconds, float):
            call_id, number = calls[0].id, self.log.call_record(calls[0].id)
            self.log.add(ToolFinished(call_id=call_id, call_record=number, outcome="ok", seconds=seconds))
            del rest["execution_time"]
        kept = _unsaid(rest, said)
        if kept:
            self.log.note("step", kept)


def _texts_after(history: list[Any], index: int) -> list[str]:
    """The texts of the message that answers the one at `index`."""
    after = history[index + 1] if index + 1 < len(history) else None
    content = _within(after, "content")
    if isinstance(content, list):
        return [text for part in content if isinstance(text := _within(part, "text"), str)]
    return [content] if isinstance(content, str) else []


def _unsaid(values: Mapping[str, Any], said: list[str]) -> dict[str, Any]:
    """Those of `values` that say something that `said` does not."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, str):
            value = None if any(value.strip() in text for text in said) else value
        else:
            value = without_repeats(value, said, {})
        if not is_empty(value):
            kept[key] = value
    return kept
