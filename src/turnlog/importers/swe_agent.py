"""SWE-agent trajectories and demonstrations: `*.traj`.

`{"environment", "trajectory", "history", "info", "replay_config"}`. `history` contains the messages, in the shape of
Chat Completions with additional keys; actions are calls (function calling) or text. `trajectory` repeats each step,
with times and the state after it. Keys as in sweagent/types.py (github.com/SWE-agent/SWE-agent).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ..log.messages import Message, ToolCall
from ..log.records import MessageRecord, ToolFinished
from ..providers import anthropic
from ..providers.openai_chat import PROVIDER
from .answers import add_configuration
from .drafting import Drafting
from .json_values import items, mapping, within, without, word
from .messages import read_message, with_thinking
from .protocol import Imported, Origin
from .repeats import is_empty, texts_of, without_repeats
from .transcript import Transcript, json_document

_FORMAT = "swe-agent-traj"


_ROLES = ("system", "developer", "user", "assistant", "tool")
_CHAT = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "reasoning_content"})
_IMPLIED = {"system": "system_prompt", "user": "observation", "tool": "observation", "assistant": "action"}
"""The usual `message_type` of each role."""


def read(origin: Origin) -> list[Imported]:
    """The one session of the trajectory."""
    file = Transcript(origin)
    run = mapping(file.whole_document("SWE-agent trajectory"))
    if not any(map(_is_message, items(run.get("history")))):
        raise file.refused("messages", "give the .traj that SWE-agent wrote, a list `history` inside")
    log = Drafting(file)
    _Run(run, log).draft()
    session_id = word(within(_replay(run), "problem_statement", "id")) or f"swe-agent-{file.digest}"
    return [log.imported(session_id, _FORMAT)]


def _is_message(wire: Any) -> bool:
    return isinstance(wire, dict) and wire.get("role") in _ROLES


def _replay(run: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the run; newer versions write it as JSON text."""
    config = run.get("replay_config")
    if isinstance(config, str):
        try:
            config = json_document(config.encode("utf-8", "surrogatepass"))
        except ValueError:
            return {}
    return mapping(config)


class _Run:
    """One pass over the history, with the steps beside it."""

    def __init__(self, run: Mapping[str, Any], log: Drafting) -> None:
        self.run = run
        self.history = items(run.get("history"))
        self.log = log
        self.steps = items(run.get("trajectory"))
        self.step = 0
        self.answered = False  # whether the agent said something beyond demonstrations
        self.history_json = [json.dumps(wire, sort_keys=True) for wire in self.history]

    def draft(self) -> None:
        """Draft all messages and steps."""
        config = _replay(self.run)
        about = without(self.run, ("history", "trajectory", "info"))
        if about:
            self.log.note("run", {**about, "replay_config": config} if config else about)
        model = within(config, "agent", "model")
        add_configuration(within(model, "name"), model, None, self.log)
        for index in range(len(self.history)):
            self._message(index)
        self._left_out(len(self.steps))
        if "info" in self.run:
            self.log.note("info", self.run["info"])

    def _message(self, index: int) -> None:
        wire = self.history[index]
        if not _is_message(wire):
            of = f"a message of role {within(wire, 'role')!r}"
            self.log.left_unread(0, f"history[{index}]", mapping(wire), is_empty=True, of=of)
            self.log.note("unknown", wire, f"history[{index}]")
            return
        step = self._step_of(wire)
        seen = {key: wire[key] for key in wire if key in _CHAT and not (key == "tool_calls" and not wire[key])}
        rest = without(wire, (*_CHAT, "message_type", "is_demo"))
        self.log.note_changes("agent", {"agent": rest.pop("agent", "")})
        answered = items(rest.get("tool_call_ids"))
        if wire["role"] == "tool" and answered and "tool_call_id" not in seen:
            seen["tool_call_id"], *rest["tool_call_ids"] = answered
        source = self._source(index, wire)
        message = read_message(PROVIDER, seen, self.log)
        if message is not None:
            thought = with_thinking(message, anthropic.PROVIDER, rest.get("thinking_blocks"), self.log)
            if thought is not None:
                del rest["thinking_blocks"]
            message = thought or message
            self.answered = self.answered or (wire["role"] == "assistant" and not wire.get("is_demo"))
            observed = self.answered and wire.get("message_type") == "observation"  # the task is called so as well
            if message.role == "user" and wire["role"] == "user" and (observed or wire.get("is_demo")):
                message = replace(message, by_program=True)
            self.log.add(MessageRecord(message=message, source=source))
        texts = texts_of(message)
        unrepeated = _not_in_texts(rest, texts)
        if unrepeated:
            self.log.left_unread(0, source, unrepeated, is_empty="content" not in wire)
            self.log.note("message", {"source": source, **unrepeated})
        if step is not None:
            self._step(step, [*texts, *_texts_after(self.history, index), *map(str, unrepeated.values())], message)

    def _source(self, index: int, wire: Mapping[str, Any]) -> str:
        """The position of the message and its special properties."""
        kind = wire.get("message_type")
        special = [] if kind is None or kind == _IMPLIED.get(wire["role"]) else [str(kind)]
        if wire.get("is_demo"):
            special.append("is_demo")
        return " ".join([f"history[{index}]", *special])

    def _step_of(self, wire: Mapping[str, Any]) -> dict[str, Any] | None:
        """The step that produced an answer: the next step with its text, else the next step if it has its action.

        The answers of skipped steps are not in the history; these steps become notes.
        """
        if wire["role"] != "assistant" or wire.get("is_demo"):
            return None
        left = range(self.step, len(self.steps))
        index = next((k for k in left if within(self.steps[k], "response") == wire.get("content")), -1)
        if index < 0 and left and wire.get("action") and within(self.steps[self.step], "action") == wire["action"]:
            index = self.step
        if index < 0:
            return None
        self._left_out(index)
        self.step = index + 1
        step: dict[str, Any] = self.steps[index]
        return step

    def _left_out(self, until: int) -> None:
        """Record the steps before `until` that produced no message."""
        for step in self.steps[self.step : until]:
            self._step(step, [], None)
        self.step = max(self.step, until)

    def _step(self, step: Any, texts: list[str], message: Message | None) -> None:
        """Record what a step contains beyond the messages, and how long its tool ran."""
        if not isinstance(step, dict):
            self.log.note("step", step)
            return
        query = step.get("query")
        rest = dict(step)
        if isinstance(query, list):
            # Each step repeats its request: messages of the history are left out.
            rest["query"] = [wire for wire in query if json.dumps(wire, sort_keys=True) not in self.history_json]
        calls = [part for part in message.parts if isinstance(part, ToolCall)] if message is not None else []
        seconds = rest.get("execution_time")
        if len(calls) == 1 and isinstance(seconds, float):
            call_id, number = calls[0].id, self.log.call_record(calls[0].id)
            self.log.add(ToolFinished(call_id=call_id, call_record=number, outcome="ok", seconds=seconds))
            del rest["execution_time"]
        unrepeated = _not_in_texts(rest, texts)
        if unrepeated:
            self.log.note("step", unrepeated)


def _texts_after(history: list[Any], index: int) -> list[str]:
    """The texts of the message after the one at `index`."""
    after = history[index + 1] if index + 1 < len(history) else None
    content = within(after, "content")
    texts = [within(part, "text") for part in content] if isinstance(content, list) else [content]
    return [text for text in texts if isinstance(text, str)]


def _not_in_texts(values: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    """The part of `values` that none of `texts` contains."""
    unrepeated: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, str):
            value = None if any(value.strip() in text for text in texts) else value
        else:
            value = without_repeats(value, texts, {})
        if not is_empty(value):
            unrepeated[key] = value
    return unrepeated
