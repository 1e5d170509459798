"""Assemble a streamed answer.

Each step comes as `step.start`, deltas and `step.stop`, under its index; `interaction.completed` brings the status and
the usage. A step is whole once it or the interaction stopped: a call has its arguments then, a thought its signature.
Of a step that did not come to its end, texts are kept as far as they came; anything else is a fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Part, compact_json, parse_arguments
from ..error_bodies import error_text
from ..media_bytes import decode_base64, encode_base64
from ..protocol import Reply
from ..reading import inner, string, without
from ..schema import check_depth, check_types
from ..sdk_objects import plain
from .response import clean, fragment, parse_response, read_response
from .schema import EVENT, MEDIA, STEP
from .steps import read_answer

_CUT = "the stream ended before the interaction did"


class _Open:
    """A step that has begun, and the text of its arguments."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step = step
        self.arguments = ""
        self.stopped = False

    def take(self, delta: dict[str, Any]) -> None:
        """Add a delta; one of an unknown type adds the keys that it has."""
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
        """No more comes: put the arguments in. Arguments that are no object broke off. Raises FormatError."""
        if self.arguments:
            value, _ = parse_arguments(self.arguments)
            if not isinstance(value, dict):
                return
            self.step["arguments"] = value
        check_types(self.step, STEP, path)
        self.stopped = True


def _contents(step: dict[str, Any], key: str = "content") -> list[Any]:
    """The contents of a step so far, in a list that belongs to it."""
    given = step.get(key)
    step[key] = list(given) if isinstance(given, list) else []
    found: list[Any] = step[key]
    return found


def _add_text(step: dict[str, Any], delta: dict[str, Any]) -> None:
    _join(_contents(step), {"type": "text", "text": string(delta, "text")})


def _join(contents: list[Any], content: dict[str, Any]) -> None:
    """Add a content; a piece of a text is joined with the text before it."""
    last = contents[-1] if contents else None
    texts = isinstance(last, dict) and last.get("type") == content.get("type") == "text"
    if texts and isinstance(last, dict) and content.keys() == {"type", "text"} and "annotations" not in last:
        contents[-1] = {**last, "text": string(last, "text") + string(content, "text")}
    else:
        contents.append(content)


def _add_annotations(step: dict[str, Any], delta: dict[str, Any]) -> None:
    contents, found = _contents(step), delta.get("annotations") or []
    last = contents[-1] if contents else None
    if isinstance(last, dict) and last.get("type") == "text" and found:
        contents[-1] = {**last, "annotations": [*(last.get("annotations") or ()), *found]}


def _add_summary(step: dict[str, Any], delta: dict[str, Any]) -> None:
    content = delta.get("content")
    if isinstance(content, dict):
        _join(_contents(step, "summary"), {key: value for key, value in content.items() if value is not None})


def _add_signature(step: dict[str, Any], delta: dict[str, Any]) -> None:
    step["signature"] = string(step, "signature") + string(delta, "signature")


def _add_media(step: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add media; pieces of one sound are joined."""
    contents = _contents(step)
    last = contents[-1] if contents else None
    content = {key: value for key, value in delta.items() if value is not None and key != "rate"}
    if delta.get("type") == "audio" and isinstance(last, dict) and last.get("type") == "audio":
        before, piece = decode_base64(string(last, "data")), decode_base64(string(delta, "data"))
        if before and piece and delta.get("mime_type") in (None, last.get("mime_type")):
            contents[-1] = {**last, "data": encode_base64(before + piece)}
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

    def feed(self, chunk: Any) -> None:
        """Take the next event: an SDK object, or its JSON. Raises FormatError if it is no event; unknown types are
        ignored."""
        if chunk == "[DONE]":  # what stands last where nobody hides it
            return
        event = plain(chunk, "event")
        check_depth(event)
        check_types(event, EVENT, "event")
        kind = event.get("event_type")
        if not isinstance(kind, str):
            raise FormatError("expected an event with an 'event_type'", path="event")
        told = inner(inner(event, "metadata"), "total_usage") or inner(event, "usage")
        if told and kind != "step.stop":
            self._interaction["usage"] = told
        if kind in ("interaction.created", "interaction.completed"):
            new = {key: value for key, value in inner(event, "interaction").items() if value is not None}
            if kind == "interaction.created":
                self._steps = {}
            self._interaction.update(new)
            self._ended = kind == "interaction.completed"
            for index, there in self._steps.items() if self._ended else ():
                there.stop(f"steps[{index}]")
        elif kind == "interaction.status_update":
            self._interaction["status"] = event.get("status")
        elif kind == "error":
            self._error = error_text(event.get("error")) or "error"
        elif kind.startswith("step."):
            self._take(kind, event.get("index") or 0, event)

    def _take(self, kind: str, index: int, event: dict[str, Any]) -> None:
        """Take an event of a step. A delta of one that never started is ignored."""
        if kind == "step.start":
            step = clean(event.get("step"))
            if not isinstance(step, dict):
                raise FormatError("expected a step, an object", path="event.step")
            read_answer([step], {})
            self._steps[index] = _Open(step)
            return
        there = self._steps.get(index)
        if there is None or there.stopped:
            return
        delta = event.get("delta")
        if kind == "step.delta" and isinstance(delta, dict):
            there.take(clean(delta))
        elif kind == "step.stop":
            there.stop(f"steps[{index}]")

    def reply(self) -> Reply:
        """The answer so far."""
        whole: list[dict[str, Any]] = []
        fragments: list[Part] = []
        for _, there in sorted(self._steps.items()):
            step = there.step
            if there.stopped or (step.get("type") == "model_output" and step.get("content")):
                whole.append(step)
            elif step.get("type") != "model_output":
                fragments.append(fragment(step, there.arguments or _said(step)))
        if not self._ended or self._error:
            status = {**self._interaction, "steps": None}
            return read_response(status, whole, tuple(fragments), self._error or _CUT)
        listed = self._interaction.get("steps")
        if isinstance(listed, list) and len(listed) > len(self._steps):  # steps that were not streamed
            return parse_response(self._interaction)
        return read_response(self._interaction, whole, tuple(fragments))


def _said(step: Mapping[str, Any]) -> str:
    """The arguments that a step began with, if any."""
    arguments = step.get("arguments")
    return compact_json(arguments) if arguments else ""
