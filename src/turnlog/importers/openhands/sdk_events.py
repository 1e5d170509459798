"""Events of OpenHands' software agent SDK (1.0 and later), distinguished by `kind`.

Kinds and keys follow openhands-sdk/openhands/sdk/event (github.com/OpenHands/software-agent-sdk).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.messages import Message, Outcome, compact_json
from ...log.records import Approval, MessageRecord, UsageRecord
from ...log.usage import Usage, tokens_billed
from ...providers import anthropic, openai_responses
from ...providers.openai_chat import PROVIDER
from ..answers import add_configuration
from ..drafting import Drafting
from ..json_values import items, mapping, within, without, word
from ..messages import parse, read_message, with_thinking
from ..repeats import texts_of
from ..transcript import Line
from .condensation import Sight

COUNTS = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cached": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}
"""The SDK's keys for the fields of `Usage`. Its prompt tokens include cached tokens."""

_ENVELOPE = frozenset({"id", "timestamp", "kind", "source"})
_SAID = frozenset({"thought", "tool_call", "tool_name", "tool_call_id", "llm_response_id"})
_CALL = frozenset({"id", "type", "name", "origin"})
_THINKING = frozenset({"reasoning_content", "thinking_blocks", "responses_reasoning_item"})


def is_sdk_event(value: Any) -> bool:
    """Whether a JSON value is an event of the SDK."""
    return isinstance(value, dict) and isinstance(value.get("kind"), str) and isinstance(value.get("source"), str)


class SdkEvents:
    """Drafts a list of events."""

    def __init__(self, log: Drafting) -> None:
        self.log = log
        self.sight = Sight(log)
        self._batches: dict[str, list[Mapping[str, Any]]] = {}
        self._drafted: dict[str, int] = {}
        self._texts_by_call: dict[str, list[str]] = {}
        self._totals: dict[str, dict[str, int]] = {}

    def draft(self, lines: Sequence[Line]) -> None:
        """Record all events."""
        handlers = {
            "SystemPromptEvent": self._system,
            "MessageEvent": self._message,
            "ActionEvent": self._action,
            "ObservationEvent": self._observation,
            "AgentErrorEvent": self._observation,
            "UserRejectObservation": self._observation,
            "Condensation": self._condensation,
            "ConversationStateUpdateEvent": self._state,
        }
        for line in lines:
            if line.value["kind"] == "ActionEvent":
                self._batches.setdefault(_batch(line), []).append(line.value)
        for line in lines:
            self.log.at(line.value.get("timestamp"))
            handlers.get(line.value["kind"], self._unknown)(line)

    def _say(self, message: Message | None, line: Line, response_id: Any = "") -> int:
        """Record a message; returns its number, 0 if there is no message."""
        if message is None:
            return 0
        typed = line.value["kind"] != "MessageEvent" or line.value["source"] not in ("environment", "hook")
        if message.role == "user" and not typed:
            message = replace(message, by_program=True)
        event_id = word(line.value.get("id"))
        source = f"line {line.number} event {event_id}"
        number = self.log.add(MessageRecord(message=message, response_id=word(response_id), source=source))
        self.sight.show(number, message, event_id)
        return number

    def _system(self, line: Line) -> None:
        event = line.value
        taken = add_configuration(None, None, event.get("tools"), self.log).tools
        texts = [event.get("system_prompt"), event.get("dynamic_context")]
        content = _content([part for text in texts for part in _parts(text)])
        message = read_message(PROVIDER, {"role": "system", "content": content}, self.log, line.number)
        self._say(message, line)
        self._rest(line, {"tools": None} if taken else {}, texts_of(message))

    def _message(self, line: Line) -> None:
        event = line.value
        llm_message = mapping(event.get("llm_message"))
        extended = event.get("extended_content")
        content = [*_parts(llm_message.get("content")), *_parts(extended)]
        wire: dict[str, Any] = {"role": llm_message.get("role"), "content": _content(content)}
        calls = [_call(call, {}) for call in items(llm_message.get("tool_calls"))]
        if calls:
            wire["tool_calls"] = calls
        for key in ("tool_call_id", "name"):
            if isinstance(llm_message.get(key), str):
                wire[key] = llm_message[key]
        message = self._with_thinking(read_message(PROVIDER, wire, self.log, line.number), llm_message)
        self._say(message, line, event.get("llm_response_id"))
        if not content and not calls:
            left_out = {**without(event, (*_ENVELOPE, "llm_message")), **without(llm_message, (*wire, *_THINKING))}
            self.log.left_unread(line.number, "", left_out, is_empty=True)
        texts = texts_of(message)
        left = without(llm_message, (*wire, *_THINKING))
        self._rest(line, {"llm_message": left, "role": None}, texts)

    def _action(self, line: Line) -> None:
        """Draft an answer with all its calls; each call is a separate event."""
        event = line.value
        event_id, key = word(event.get("id")), _batch(line)
        if key in self._drafted:
            self.sight.join(self._drafted[key], event_id)
        else:
            batch = self._batches[key]
            wire = {
                "role": "assistant",
                "content": _content([part for action in batch for part in _parts(action.get("thought"))]) or None,
                "tool_calls": [_call(action.get("tool_call"), action) for action in batch],
            }
            message = self._with_thinking(read_message(PROVIDER, wire, self.log, line.number), event)
            self._drafted[key] = self._say(message, line, event.get("llm_response_id"))
            for action in batch:
                self._report_unread_call(action, line)
                self._texts_by_call[word(action.get("tool_call_id"))] = texts_of(message)
        texts = self._texts_by_call.get(word(event.get("tool_call_id")), [])
        # If the model's answer could not be read, all of the event is kept.
        self._rest(line, dict.fromkeys(_SAID | _THINKING) if texts else {}, texts)

    def _report_unread_call(self, event: Mapping[str, Any], line: Line) -> None:
        """Report a call whose arguments are neither in its `tool_call` nor in its action."""
        fields = mapping(event.get("tool_call"))
        function = mapping(fields.get("function")) or fields
        if not isinstance(function.get("arguments"), str) and "action" not in event:
            left = {**without(function, _CALL), **without(event, _ENVELOPE | _SAID | _THINKING)}
            self.log.left_unread(line.number, "", left, is_empty=True, of="a tool call")

    def _with_thinking(self, message: Message | None, event: Mapping[str, Any]) -> Message | None:
        """The message with its thinking put first, signed or encrypted as the provider returned it."""
        if message is None or message.role != "assistant":
            return message
        blocks, item = event.get("thinking_blocks"), mapping(event.get("responses_reasoning_item"))
        text = word(event.get("reasoning_content"))
        if blocks and isinstance(blocks, list):
            thought = with_thinking(message, anthropic.PROVIDER, blocks, self.log)
        elif item:
            item = {"type": "reasoning", **{key: value for key, value in item.items() if value is not None}}
            summary = [{"type": "summary_text", "text": text} for text in _strings(item.get("summary"))]
            parsed = parse(openai_responses.PROVIDER, {"input": [{**item, "summary": summary}]}, self.log)
            thought = replace(message, parts=(*parsed[0].parts, *message.parts)) if parsed else None
        elif text:
            body = {"role": "assistant", "content": "", "reasoning_content": text}
            parsed = parse(PROVIDER, {"messages": [body]}, self.log)
            thought = replace(message, parts=(*parsed[0].parts[:1], *message.parts))
        else:
            thought = message
        if thought is None:
            self.log.note("thinking", {key: event.get(key) for key in sorted(_THINKING)})
        return thought or message

    def _observation(self, line: Line) -> None:
        """Draft the result of a call: an observation, an error, or the user's refusal."""
        event = line.value
        seen = event.get("observation")
        fields = mapping(seen)
        call_id = word(event.get("tool_call_id"))
        content: Any = _content(_parts(fields.get("content")))
        for other in (event.get("error"), event.get("rejection_reason"), fields.get("output")):
            if not content and isinstance(other, str):
                content = other
        if not content and seen is not None:
            content = compact_json(seen)
        if not content:
            self.log.left_unread(line.number, "", without(event, _ENVELOPE), is_empty=True, of="a tool result")
        wire = {"role": "tool", "tool_call_id": call_id, "content": content or ""}
        message = read_message(PROVIDER, wire, self.log, line.number)
        if message is not None:
            outcome = _outcome(event, fields)
            if event["kind"] == "UserRejectObservation":
                record = self.log.call_record(call_id)
                self.log.add(Approval(call_id=call_id, state="denied", call_record=record, by="user"))
            name = word(event.get("tool_name"))
            message = self.log.with_results(
                message, lambda result: replace(result, outcome=outcome, name=result.name or name)
            )
            self._say(message, line)
        texts = [*self._texts_by_call.get(call_id, ()), *texts_of(message)]
        self._rest(line, {"tool_name": None, "tool_call_id": None}, texts)

    def _condensation(self, line: Line) -> None:
        event = line.value
        ids = [word(event_id) for event_id in items(event.get("forgotten_event_ids"))]
        detail = without(event, ("timestamp", "summary", "kind"))
        if not self.sight.forget(ids, event.get("summary"), f"{word(event.get('id'))}-summary", detail):
            self._noted(line)

    def _state(self, line: Line) -> None:
        """Note a change of state. Its statistics contain the total usage so far: the difference to the last total is
        recorded."""
        self._noted(line)
        event, value = line.value, line.value.get("value")
        if event.get("key") == "full_state":
            value = within(value, "stats")
        elif event.get("key") != "stats":
            return
        for usage_id, metrics in mapping(within(value, "usage_to_metrics")).items():
            total = mapping(within(metrics, "accumulated_token_usage"))
            counts = {name: tokens_billed(total.get(key)) for name, key in COUNTS.items()}
            before = self._totals.get(usage_id, dict.fromkeys(counts, 0))
            self._totals[usage_id] = counts
            grown: dict[str, Any] = {name: count - before[name] for name, count in counts.items()}
            if any(grown.values()) and min(grown.values()) >= 0:
                model = word(total.get("model") or within(metrics, "model_name"))
                self.log.add(UsageRecord(PROVIDER.name, model, Usage(**grown), {"usage_id": usage_id, **total}))

    def _unknown(self, line: Line) -> None:
        left, kind = without(line.value, _ENVELOPE), line.value["kind"]
        self.log.left_unread(line.number, "", left, is_empty=False, of=f"an event of kind {kind!r}")
        self._noted(line)

    def _noted(self, line: Line) -> None:
        self.log.note(line.value["kind"], without(line.value, ("kind", "timestamp")))

    def _rest(self, line: Line, instead: Mapping[str, Any], texts: Sequence[str]) -> None:
        """Note what an event contains beyond its message; `instead` replaces the keys that were recorded."""
        rest = {**without(line.value, _ENVELOPE), **instead}
        self.log.note_rest(line.value["kind"], rest, texts, event=line.value.get("id"))


def _batch(line: Line) -> str:
    """A key that all calls of one answer share."""
    return word(line.value.get("llm_response_id")) or f"line {line.number} {word(line.value.get('id'))}"


def _strings(value: Any) -> list[str]:
    return [text for text in items(value) if isinstance(text, str)]


def _parts(content: Any) -> list[Any]:
    """Content as a list of parts; the SDK may write a single part without a list."""
    return content if isinstance(content, list) else [] if content is None else [content]


def _content(parts: Iterable[Any]) -> list[dict[str, Any]]:
    """Content parts in the shape of requests, without keys of the SDK."""
    content: list[dict[str, Any]] = []
    for part in parts:
        if not isinstance(part, dict):
            content.append({"type": "text", "text": part if isinstance(part, str) else compact_json(part)})
            continue
        wire = [{"type": "text", "text": part["text"]}] if isinstance(part.get("text"), str) else []
        wire += [{"type": "image_url", "image_url": {"url": url}} for url in _strings(part.get("image_urls"))]
        content += wire or [part]
    return content


def _call(call: Any, event: Mapping[str, Any]) -> dict[str, Any]:
    """A call in the shape of requests; if the event has no arguments, its action supplies them."""
    fields = mapping(call)
    function = mapping(fields.get("function")) or fields
    arguments = function.get("arguments")
    return {
        "id": word(fields.get("id")) or word(event.get("tool_call_id")),
        "type": "function",
        "function": {
            "name": word(function.get("name")) or word(event.get("tool_name")),
            "arguments": arguments if isinstance(arguments, str) else compact_json(event.get("action")),
        },
    }


def _outcome(event: Mapping[str, Any], fields: Mapping[str, Any]) -> Outcome:
    if event["kind"] == "UserRejectObservation":
        return "canceled"
    if fields.get("timeout") is True:
        return "timeout"
    code = fields.get("exit_code")
    failed = event["kind"] == "AgentErrorEvent" or fields.get("is_error") is True
    return "failed" if failed or (isinstance(code, int) and code not in (0, -1)) else "ok"
