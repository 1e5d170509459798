"""Assemble a streamed answer.

Each step comes as `step.start`, deltas and `step.stop`, with its index; `interaction.completed` has the status and the
usage. A step is complete once the step or the interaction has stopped: only then a call has all its arguments, and a
thought its signature. An incomplete output is kept as far as it has arrived; any other incomplete step is a fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Part, compact_json, parse_arguments
from ..error_bodies import error_chunk
from ..media_bytes import decode_base64, encode_base64
from ..protocol import Delta, Reply
from ..schema.walk import check_depth, check_types
from ..sdk_objects import plain
from ..spelling import inner, string, without
from .response import ANSWER_KEYS, clean, fragment, parse_response, read_response
from .schema import EVENT, MEDIA, STEP
from .steps import read_answer

_CUT = "the stream ended before the interaction did"


class _Open:
    """A step that has started, and the text of its arguments so far."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step = step
        self.arguments = ""
        self.stopped = False

    def take(self, delta: dict[str, Any]) -> None:
        """Add a delta. A delta of an unknown type sets its keys in the step."""
        kind = string(delta, "type")
        take = _DELTAS.get(kind)
        if kind == "arguments_delta":
            self.arguments += string(delta, "arguments")
        elif kind in MEDIA:
            _add_media(self.step, delta)
        elif take is not None:
            take(self.step, delta)
        else:
            self.step.update(without(delta, "type"))

    def stop(self, path: str) -> None:
        """End the step and set its arguments. The step stays incomplete if the arguments are not an object. Raises
        FormatError."""
        if self.arguments:
            value, _ = parse_arguments(self.arguments)
            if not isinstance(value, dict):
                return
            self.step["arguments"] = value
        check_types(self.step, STEP, path)
        self.stopped = True


def _contents(step: dict[str, Any], key: str = "content") -> list[Any]:
    """The contents of a step so far: a list that may be changed."""
    given = step.get(key)
    step[key] = list(given) if isinstance(given, list) else []
    contents: list[Any] = step[key]
    return contents


def _add_text(step: dict[str, Any], delta: dict[str, Any]) -> None:
    _join(_contents(step), {"type": "text", "text": string(delta, "text")})


def _join(contents: list[Any], content: dict[str, Any]) -> None:
    """Add a content. A fragment of a text is joined with the text before it."""
    last = contents[-1] if contents else None
    texts = isinstance(last, dict) and last.get("type") == content.get("type") == "text"
    if texts and isinstance(last, dict) and content.keys() == {"type", "text"} and "annotations" not in last:
        contents[-1] = {**last, "text": string(last, "text") + string(content, "text")}
    else:
        contents.append(content)


def _add_annotations(step: dict[str, Any], delta: dict[str, Any]) -> None:
    contents, annotations = _contents(step), delta.get("annotations") or []
    last = contents[-1] if contents else None
    if isinstance(last, dict) and last.get("type") == "text" and annotations:
        contents[-1] = {**last, "annotations": [*(last.get("annotations") or ()), *annotations]}


def _add_summary(step: dict[str, Any], delta: dict[str, Any]) -> None:
    content = delta.get("content")
    if isinstance(content, dict):
        _join(_contents(step, "summary"), {key: value for key, value in content.items() if value is not None})


def _add_signature(step: dict[str, Any], delta: dict[str, Any]) -> None:
    step["signature"] = string(step, "signature") + string(delta, "signature")


def _add_media(step: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add media; fragments of the same audio are joined."""
    contents = _contents(step)
    last = contents[-1] if contents else None
    content = {key: value for key, value in delta.items() if value is not None and key != "rate"}
    if delta.get("type") == "audio" and isinstance(last, dict) and last.get("type") == "audio":
        before, added = decode_base64(string(last, "data")), decode_base64(string(delta, "data"))
        if before and added and delta.get("mime_type") in (None, last.get("mime_type")):
            contents[-1] = {**last, "data": encode_base64(before + added)}
            return
    contents.append(content)


_DELTAS: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "text": _add_text,
    "text_annotation_delta": _add_annotations,
    "thought_signature": _add_signature,
    "thought_summary": _add_summary,
}


class StreamAssembler:
    """Collects the events of one streamed interaction; see `Assembler`."""

    def __init__(self) -> None:
        self._interaction: dict[str, Any] = {}
        self._steps: dict[int, _Open] = {}
        self._ended = False
        self._error = ""

    def feed(self, chunk: Any) -> list[Delta]:
        """Take the next event: an SDK object, or its JSON. Events of unknown types are ignored. Raises FormatError if
        `chunk` is not an event."""
        if chunk == "[DONE]":  # the end marker of the raw stream, which SDKs hide
            return []
        event = plain(chunk, "event")
        check_depth(event)
        check_types(event, EVENT, "event")
        kind = event.get("event_type")
        if isinstance(event.get("steps"), list):  # a server that cannot stream; the SDK takes its answer for an error
            kind, event = "interaction.completed", {"interaction": {**event, "event_type": None}}
        if told := error_chunk(event, ANSWER_KEYS):
            self._error = told
            return []
        if not isinstance(kind, str):
            raise FormatError("expected an event with an 'event_type'", path="event")
        usage = inner(inner(event, "metadata"), "total_usage") or inner(event, "usage")
        if usage and kind != "step.stop":
            self._interaction["usage"] = usage
        if kind in ("interaction.created", "interaction.completed"):
            new = {key: value for key, value in inner(event, "interaction").items() if value is not None}
            if kind == "interaction.created":
                self._steps = {}
            self._interaction.update(new)
            self._ended = kind == "interaction.completed"
            for index, open_step in self._steps.items() if self._ended else ():
                open_step.stop(f"steps[{index}]")
        elif kind == "interaction.status_update":
            self._interaction["status"] = event.get("status")
        elif kind.startswith("step."):
            return self._take(kind, event.get("index") or 0, event)
        return []

    def _take(self, kind: str, index: int, event: dict[str, Any]) -> list[Delta]:
        """Take an event of a step. An event of a step that never started is ignored."""
        if kind == "step.start":
            step = clean(event.get("step"))
            if not isinstance(step, dict):
                raise FormatError("expected a step, an object", path="event.step")
            read_answer([step], {})
            self._steps[index] = _Open(step)
            return []
        open_step = self._steps.get(index)
        if open_step is None or open_step.stopped:
            return []
        delta = event.get("delta")
        if kind == "step.delta" and isinstance(delta, dict):
            delta = clean(delta)
            open_step.take(delta)
            return _told(delta)
        if kind == "step.stop":
            open_step.stop(f"steps[{index}]")
        return []

    def reply(self) -> Reply:
        """The answer so far."""
        whole: list[dict[str, Any]] = []
        fragments: list[Part] = []
        for _, open_step in sorted(self._steps.items()):
            step = open_step.step
            if open_step.stopped or (step.get("type") == "model_output" and step.get("content")):
                whole.append(step)
            elif step.get("type") != "model_output":
                fragments.append(fragment(step, open_step.arguments or _first_arguments(step)))
        if not self._ended or self._error:
            status = {**self._interaction, "steps": None}
            return read_response(status, whole, tuple(fragments), self._error or _CUT)
        listed = self._interaction.get("steps")
        if isinstance(listed, list) and len(listed) > len(self._steps):  # steps that were not streamed
            return parse_response(self._interaction)
        return read_response(self._interaction, whole, tuple(fragments))


def _told(delta: Mapping[str, Any]) -> list[Delta]:
    """The text that a delta adds."""
    kind = string(delta, "type")
    if kind == "text":
        added = Delta("text", string(delta, "text"))
    elif kind == "thought_summary":
        added = Delta("reasoning", string(inner(delta, "content"), "text"))
    else:
        return []
    return [added] if added.text else []


def _first_arguments(step: Mapping[str, Any]) -> str:
    """The arguments in the `step.start` of a step, as text; empty if it had none."""
    arguments = step.get("arguments")
    return compact_json(arguments) if arguments else ""
