"""Events of OpenHands up to 1.0: actions, and the observations that they cause.

Kinds and keys follow openhands/core/schema and openhands/events/serialization (github.com/All-Hands-AI/OpenHands); the
messages made from events follow openhands/memory/conversation_memory.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.messages import Message, Outcome, ToolCall, compact_json
from ...log.records import Approval, MessageRecord
from ...log.texts import strings_in
from ...providers.openai_chat import PROVIDER
from ..answers import ImportedAnswer, add_answer, add_configuration
from ..drafting import Drafting
from ..json_values import items, mapping, without, word
from ..messages import read_message
from ..repeats import texts_of, without_repeats
from .condensation import Sight

_ENDINGS = frozenset({"finish", "reject"})
"""Actions that end the run. Without a call, they contain the agent's last message."""

_STATE_ACTIONS = frozenset(
    {"null", "recall", "change_agent_state", "condensation_request", "pause", "resume", "start", "stop"}
    | {"loop_recovery", "push", "send_pr"}
)
_STATE_OBSERVATIONS = frozenset({"null", "recall", "agent_state_changed", "loop_detection", "download"})
"""Events outside the conversation: no model caused them, and they are not results of calls."""

_RECORDED = ("id", "timestamp", "source", "tool_call_metadata")
_RECORDED_OF_ACTION = (*_RECORDED, "action", "args")
_RECORDED_OF_OBSERVATION = (*_RECORDED, "observation", "content", "extras")
"""Keys of an event that are recorded elsewhere, so notes leave them out."""

_LONG = 40
"""A text shorter than this (characters) may be part of another text by chance."""


def is_event(value: Any) -> bool:
    """Whether a JSON value is an event."""
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("action", "observation"))


def event_id(value: Any) -> str:
    """The id of an event as text; "" if the value is not an id."""
    return str(value) if isinstance(value, (int, str)) else ""


class OpenHandsEvents:
    """Drafts events one by one. `place` is a prefix for the sources of messages; `model` and `settings` are those of
    the requests, if the file contains them. `responses` are the ids of responses whose usage was recorded."""

    def __init__(self, log: Drafting, place: str = "", model: Any = "", settings: Any = None) -> None:
        self.log = log
        self.place = place
        self.model = model
        self.settings = settings
        self.sight = Sight(log)
        self.responses: set[str] = set()
        self._newest: Message | None = None
        self._answers: dict[str, ImportedAnswer] = {}
        self._calls: dict[str, str] = {}
        self._texts_by_call: dict[str, list[str]] = {}
        self._condensed: list[str] = []

    def take(self, event: Mapping[str, Any]) -> None:
        """Record one event."""
        self.log.at(event.get("timestamp"))
        own_id = event_id(event.get("id"))
        if isinstance(event.get("action"), str):
            self._action(event, event["action"], own_id)
        elif isinstance(event.get("observation"), str):
            self._observation(event, event["observation"], own_id)
        else:
            self.log.note("unknown", dict(event))

    def _action(self, event: Mapping[str, Any], kind: str, own_id: str) -> None:
        args = event["args"] if isinstance(event.get("args"), dict) else {"args": event.get("args")}
        metadata = mapping(event.get("tool_call_metadata"))
        if kind == "system":
            self._system(event, args, own_id)
        elif kind == "condensation":
            self._condensation(event, args, own_id)
        elif kind in _STATE_ACTIONS:
            self._noted(event, kind)
        elif metadata:
            self._called(event, args, metadata, own_id)
        elif kind == "message" or kind in _ENDINGS or event.get("source") != "agent":
            self._message(event, args, own_id)
        else:
            self._own_call(event, args, {"tool_call_id": f"event-{own_id}", "function_name": kind}, own_id)

    def _system(self, event: Mapping[str, Any], args: Mapping[str, Any], own_id: str) -> None:
        """Draft the system prompt, and the tools that the model was given with it."""
        tools = args.get("tools")
        taken = add_configuration(self.model, self.settings, tools, self.log).tools
        texts = self._say({"role": "system", "content": args.get("content")}, own_id)
        self._rest(event, without(args, ("content", "tools")) if taken else without(args, ("content",)), texts)

    def _message(self, event: Mapping[str, Any], args: Mapping[str, Any], own_id: str) -> None:
        """Draft a message of the user or the agent, or a manual action of the user."""
        role = "assistant" if event.get("source") == "agent" else "user"
        texts = [args.get(key) for key in ("content", "thought", "final_thought", "command", "code")]
        text = next((text for text in [*texts, event.get("message")] if isinstance(text, str) and text), "")
        urls = [url for url in items(args.get("image_urls")) if isinstance(url, str)]
        if not text and not urls:
            left = {**without(event, _RECORDED_OF_ACTION), **args}
            self.log.left_unread(0, self._source(own_id), left, is_empty=True)
            self._noted(event, str(event.get("action")))
            return
        by_program = event.get("source") == "environment"
        message_texts = self._say({"role": role, "content": _content(text, urls)}, own_id, by_program=by_program)
        recorded = [key for key, value in args.items() if value == text or (key == "image_urls" and value == urls)]
        self._rest(event, without(args, recorded), message_texts)

    def _say(self, wire: Mapping[str, Any], own_id: str, *, by_program: bool = False) -> list[str]:
        """Record a message that has the shape of requests; returns its texts."""
        message = read_message(PROVIDER, wire, self.log)
        if message is None:
            return []
        message = replace(message, by_program=by_program)
        self._shown(self.log.add(MessageRecord(message=message, source=self._source(own_id))), message, own_id)
        return texts_of(message)

    def _shown(self, number: int, message: Message, own_id: str) -> None:
        self.sight.show(number, message, own_id)
        self._newest = message

    def _source(self, own_id: str) -> str:
        return f"{self.place}event {own_id}"

    def _called(
        self, event: Mapping[str, Any], args: Mapping[str, Any], metadata: Mapping[str, Any], own_id: str
    ) -> None:
        """Draft an action that the model called."""
        call_id = event_id(metadata.get("tool_call_id"))
        answer = self._answer(metadata, own_id)
        call = _call_of(answer, call_id)
        if answer is None or call is None:
            self._own_call(event, args, metadata, own_id)
            return
        self._calls[own_id] = call_id
        given = mapping(call.arguments)
        texts = texts_of(answer.message)
        self._texts_by_call[call_id] = texts
        rest = {key: value for key, value in args.items() if key not in given or given[key] != value}
        self._rest(event, rest, texts)

    def _answer(self, metadata: Mapping[str, Any], own_id: str) -> ImportedAnswer | None:
        """The answer in the response in `metadata`, recorded with its first call. The events of its other calls repeat
        the response."""
        response = mapping(metadata.get("model_response"))
        key = event_id(response.get("id")) or f"call {event_id(metadata.get('tool_call_id'))}"
        if key not in self._answers:
            answer = add_answer(response, self._source(own_id), self.log)
            if answer is None:
                return None
            self._answers[key] = answer
            self.responses |= {answer.response_id} - {""}
            self._shown(answer.number, answer.message, own_id)
        self.sight.join(self._answers[key].number, own_id)
        return self._answers[key]

    def _own_call(
        self, event: Mapping[str, Any], args: Mapping[str, Any], metadata: Mapping[str, Any], own_id: str
    ) -> None:
        """Draft a call of which only the action is known; the action supplies the arguments."""
        call_id = event_id(metadata.get("tool_call_id")) or f"event-{own_id}"
        name = metadata.get("function_name")
        thought = args.get("thought")
        if not isinstance(event.get("args"), dict):
            left = without(event, (*_RECORDED_OF_ACTION, "message"))
            self.log.left_unread(0, self._source(own_id), left, is_empty=True, of="a tool call")
        function = {
            "name": name if isinstance(name, str) else str(event.get("action")),
            "arguments": compact_json(without(args, ("thought",))),
        }
        wire = {
            "role": "assistant",
            "content": word(thought) or None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
        self._calls[own_id] = call_id
        self._texts_by_call[call_id] = self._say(wire, own_id)
        rest = {} if isinstance(thought, str) else {"thought": thought}
        if metadata.get("model_response"):
            rest["model_response"] = metadata["model_response"]
        self._rest(event, rest, self._texts_by_call[call_id])

    def _observation(self, event: Mapping[str, Any], kind: str, own_id: str) -> None:
        metadata = mapping(event.get("tool_call_metadata"))
        call_id = event_id(metadata.get("tool_call_id")) or self._calls.get(event_id(event.get("cause")), "")
        if call_id:
            if metadata.get("model_response") and not self.log.call_record(call_id):
                self._answer(metadata, own_id)
            self._result(event, kind, call_id, own_id)
            return
        content = event.get("content")
        if kind in _STATE_OBSERVATIONS or not isinstance(content, str) or not content:
            self._noted(event, kind)
            return
        # No call caused it: it is an error about an answer without a call, or a command of the user.
        texts = self._say({"role": "user", "content": content}, own_id)
        self._rest(event, mapping(event.get("extras")), texts)

    def _result(self, event: Mapping[str, Any], kind: str, call_id: str, own_id: str) -> None:
        extras = mapping(event.get("extras"))
        content = event.get("content")
        shot = word(extras.get("screenshot"))
        shots = [shot] if shot.startswith("data:image/") else []
        wire = {"role": "tool", "tool_call_id": call_id, "content": _content(word(content), shots)}
        message = read_message(PROVIDER, wire, self.log)
        if message is None:
            return
        if "content" not in event:
            left = without(event, (*_RECORDED_OF_OBSERVATION, "message"))
            self.log.left_unread(0, self._source(own_id), left, is_empty=True, of="a tool result")
        outcome = _outcome(event, kind, extras)
        if kind == "user_rejected":
            record = self.log.call_record(call_id)
            self.log.add(Approval(call_id=call_id, state="denied", call_record=record, by="user"))
        message = self.log.with_results(message, lambda result: replace(result, outcome=outcome))
        self._shown(self.log.add(MessageRecord(message=message, source=self._source(own_id))), message, own_id)
        texts = [*self._texts_by_call.get(call_id, ()), *texts_of(message)]
        rest = {} if isinstance(content, str) else {"content": content}
        self._rest(event, {**rest, **without(extras, ("screenshot" if shots else "",))}, texts)

    def _condensation(self, event: Mapping[str, Any], args: dict[str, Any], own_id: str) -> None:
        """Record which events were forgotten: given by their ids, or by the first and last id."""
        forgotten = [event_id(identifier) for identifier in items(args.get("forgotten_event_ids"))]
        start, end = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
        if isinstance(start, int) and isinstance(end, int):
            forgotten += [
                identifier
                for identifier in self.sight.events()
                if identifier.isdecimal() and start <= int(identifier) <= end
            ]
        if isinstance(args.get("summary"), str):
            # Requests show only the newest summary.
            forgotten += [f"summary {identifier}" for identifier in self._condensed]
        self._condensed.append(own_id)
        detail = {"event": event.get("id"), **without(args, ("summary",))}
        if not self.sight.forget(forgotten, args.get("summary"), f"summary {own_id}", detail):
            self._noted(event, "condensation")

    def _noted(self, event: Mapping[str, Any], kind: str) -> None:
        """Note an event outside the conversation. A recall repeats the message that caused it."""
        texts = texts_of(self._newest)
        fields = without_repeats(without(event, ("id", "timestamp")), texts, self.log.blobs)
        self.log.note(kind, {"event": event.get("id"), **(fields or {})})

    def _rest(self, event: Mapping[str, Any], values: Mapping[str, Any], texts: Sequence[str]) -> None:
        """Note what an event contains beyond its message."""
        is_action = isinstance(event.get("action"), str)
        around = without(event, _RECORDED_OF_ACTION if is_action else _RECORDED_OF_OBSERVATION)
        summary = event.get("message")
        if isinstance(summary, str) and any(text in summary for text in texts if len(text) >= _LONG):
            del around["message"]  # for example "Running command: ..."
        rest = without_repeats({**around, **values}, [*texts, *strings_in(event.get("content"))], self.log.blobs)
        if rest is not None and rest.keys() != {"cause"}:
            self.log.note(event["action" if is_action else "observation"], {"event": event.get("id"), **rest})


def _content(text: str, urls: list[str]) -> Any:
    """The content of a message with a text and images."""
    if not urls:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": text}, *pictures] if text else pictures


def _call_of(answer: ImportedAnswer | None, call_id: str) -> ToolCall | None:
    parts = answer.message.parts if answer is not None else ()
    return next((part for part in parts if isinstance(part, ToolCall) and part.id == call_id), None)


def _outcome(event: Mapping[str, Any], kind: str, extras: Mapping[str, Any]) -> Outcome:
    """The outcome of a call, from its observation. Exit code -1 means that the command had not ended."""
    if kind == "user_rejected":
        return "canceled"
    metadata = mapping(extras.get("metadata"))
    code = metadata.get("exit_code", extras.get("exit_code"))
    if code == -1 and "has no new output after" in str(metadata.get("suffix")) + str(event.get("content")):
        return "timeout"
    if code == -1 and "timed out after" in str(metadata.get("suffix")):
        return "timeout"
    content = event.get("content")
    is_error_text = isinstance(content, str) and content.startswith("ERROR:") and kind in ("edit", "read", "write")
    if kind == "error" or is_error_text or event.get("success") is False or extras.get("error") is True:
        return "failed"
    return "failed" if isinstance(code, int) and code not in (0, -1) else "ok"
