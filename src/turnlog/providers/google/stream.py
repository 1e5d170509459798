"""Assemble a streamed answer.

A stream is a sequence of responses: texts in fragments, calls whole (Vertex can stream arguments, see `PartialCall`),
cumulative usage, `finishReason` on the last chunk, and no end marker.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import Enum
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...errors import FormatError
from ...log.messages import Message, Part, Reasoning, Text, ToolCall, compact_json
from ...log.usage import Usage, is_uncounted, tokens_billed
from ..error_bodies import answer_body, error_chunk, error_text
from ..protocol import Delta, Reply
from ..schema.walk import check_types
from ..sdk_objects import plain
from ..spelling import inner
from .enums import BLOCK_REASONS, FINISH_REASONS, enum_name
from .form import NAME
from .keys import FREE, camel, check_json
from .parse_parts import PartReader
from .schema import RESPONSE

# -- response --------------------------------------------------------------------------------------
#
# Read a whole response as a stream of one chunk, so that both give the same answer.


ANSWER_KEYS = ("candidates", "promptFeedback", "prompt_feedback")


def parse_response(response: Any) -> Reply:
    """Read a whole response: a GenerateContentResponse of the SDK, its JSON in either spelling, or the list of chunks
    of a stream. Raises FormatError, also for an error body."""
    whole = response[0] if isinstance(response, list) and len(response) == 1 else response
    if isinstance(whole, Mapping):
        answer_body(whole, ANSWER_KEYS)
    assembler = StreamAssembler()
    assembler.feed(response)
    if not assembler.begun:
        raise FormatError(NO_RESPONSE, path="response")
    return assembler.reply()


# -- partial calls ---------------------------------------------------------------------------------
#
# Calls whose arguments are streamed (Vertex, `streamFunctionCallArguments`): each fragment sets values at JSON paths,
# a string may be split over several fragments, and the last fragment has no `willContinue`.

_STEP = lazy_pattern(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\[(\d+)\]")
_ESCAPED = lazy_pattern(r"\\(['\"\\/])")
_DIGITS, _STEPS = 5, 100
"""Maximum number of digits of an index and of steps of a path, so that a fragment cannot make turnlog build huge
values."""
_VALUES = ("stringValue", "numberValue", "boolValue")


def starts_partial(call: dict[str, Any]) -> bool:
    """Whether this `functionCall` is the first fragment of a call."""
    return bool(call.get("willContinue") or call.get("partialArgs"))


class PartialCall:
    """A call so far."""

    def __init__(self) -> None:
        self.name = ""
        self.complete = False
        self._inner: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._arguments: Any = {}
        self._open: tuple[str | int, ...] | None = None

    def feed(self, part: dict[str, Any], call: dict[str, Any], where: str) -> None:
        """Process the next fragment, whose path is `where`. Raises FormatError."""
        self._others.update({key: value for key, value in part.items() if key != "functionCall"})
        self._inner.update({key: call[key] for key in ("id", "name") if call.get(key)})
        self.name = self._inner.get("name", "")
        if isinstance(call.get("args"), dict):
            had = self._arguments if isinstance(self._arguments, dict) else {}
            self._arguments = {**had, **call["args"]}
        for i, piece in enumerate(call.get("partialArgs") or ()):
            self._set(piece, f"{where}.partialArgs[{i}]")
        self.complete = not call.get("willContinue")

    def part(self) -> dict[str, Any]:
        """The whole call as a wire part."""
        return {"functionCall": {**self._inner, "args": self._arguments}, **self._others}

    def fragment(self) -> ToolCall:
        """The call so far, as a part that is never sent."""
        call_id = self._inner.get("id", "")
        return ToolCall(id=call_id, name=self.name, raw=compact_json(self._arguments), provider=NAME)

    def _set(self, piece: dict[str, Any], where: str) -> None:
        path = _path(piece.get("jsonPath") or "$", where)
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if path == self._open and isinstance(value, str):
            value = _get(self._arguments, path) + value
        self._arguments = _put(self._arguments, path, value)
        self._open = path if piece.get("willContinue") else None


def _path(text: str, where: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for match in _STEP.finditer(text.removeprefix("$")):
        key = next(group for group in match.groups() if group is not None)
        if match.group(1) is None:
            key = _ESCAPED.sub(r"\1", key)
        if (match.group(4) is not None and len(key) > _DIGITS) or len(steps) == _STEPS:
            raise FormatError("the path has too many steps or too large an index", path=f"{where}.jsonPath")
        steps.append(int(key) if match.group(4) is not None else key)
    return tuple(steps)


def _get(value: Any, path: tuple[str | int, ...]) -> str:
    """The text at `path`; "" if there is another value."""
    for step in path:
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            return ""
    return value if isinstance(value, str) else ""


def _put(holder: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """`holder` with `value` at `path`; missing containers are created."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(holder) if isinstance(holder, list) else []
        items += [None] * (step + 1 - len(items))
        items[step] = _put(items[step], rest, value)
        return items
    keys = dict(holder) if isinstance(holder, dict) else {}
    keys[step] = _put(keys.get(step), rest, value)
    return keys


_KNOWN = frozenset({"candidates", "promptFeedback", "usageMetadata", "error", "modelVersion", "responseId"})
_BESIDE = frozenset({"createTime", "modelStatus", "sdkHttpResponse", "parsed", "automaticFunctionCallingHistory"})
"""Other keys of a response. A chunk of a stream may contain only these, or no key at all."""
NO_RESPONSE = "no candidates: this is not a generateContent response"
_SOURCES = ("citationMetadata", "groundingMetadata", "urlContextMetadata")
"""Keys of a candidate that contain its sources: searches and their results, quotes, fetched pages."""
_PARTS = ("text", "thought")
_CANDIDATE = "response.candidates[0]"
_UNREADABLE_CALL = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
"""Finish reasons for a call that the service could not parse or has no tool for. Only `finishMessage` shows the
call."""
_URLSAFE = str.maketrans("-_", "+/")


class StreamAssembler:
    """Collects the chunks of a streamed answer. Only the first candidate counts."""

    def __init__(self) -> None:
        self._reader = PartReader()
        self._parts: list[Part] = []
        self._partial: PartialCall | None = None
        self._cut: list[Part] = []
        self._sources: dict[str, list[Mapping[str, Any]]] = {}
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._response_id = ""
        self._stop = ""
        self._error = ""
        self._told: list[Delta] = []
        self.begun = False
        """Whether any part of an answer has arrived."""
        self._reader.answering()

    def feed(self, chunk: Any) -> list[Delta]:
        """Process the next chunk: an SDK object, its JSON, or a list of either. Raises FormatError."""
        if isinstance(chunk, list):
            return [delta for item in chunk for delta in self.feed(item)]
        wire = _plain(chunk)
        self._told = []
        told = error_chunk(wire, ANSWER_KEYS) or error_text(wire.get("error"))
        if told or _KNOWN & wire.keys():
            self.begun = True
        elif not self.begun and not wire.keys() <= _BESIDE:
            raise FormatError(NO_RESPONSE, path="response")
        self._model = wire.get("modelVersion") or self._model
        self._response_id = wire.get("responseId") or self._response_id
        self._usage.update(inner(wire, "usageMetadata"))
        self._error = self._error or told
        blocked = enum_name(inner(wire, "promptFeedback").get("blockReason"), BLOCK_REASONS)
        if isinstance(blocked, str) and blocked:
            self._stop = blocked
        for candidate in wire.get("candidates", []):
            if not candidate.get("index"):
                self._candidate(candidate)
        return self._told

    def _candidate(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content") or {}
        parts = content.get("parts") or []
        for j, part in enumerate(parts if isinstance(parts, list) else [parts]):
            self._part(part, f"{_CANDIDATE}.content.parts[{j}]")
        for key in _SOURCES:
            sources = inner(candidate, key)
            if sources and sources not in self._sources.get(key, ()):
                self._sources.setdefault(key, []).append(sources)
        reason = enum_name(candidate.get("finishReason"), FINISH_REASONS)
        if reason in _UNREADABLE_CALL and reason != self._stop:
            finish_message = candidate.get("finishMessage") or ""
            if finish_message or not any(isinstance(part, ToolCall) for part in self._parts):
                self._cut.append(ToolCall(id="", name="", raw=finish_message, provider=NAME))
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            self._stop = reason

    def _part(self, part: dict[str, Any], path: str) -> None:
        clean = {key: _standard(key, value) for key, value in part.items() if value is not False}
        inner = clean.get("functionCall")
        if isinstance(inner, dict) and (self._partial is not None or starts_partial(inner)):
            whole = self._partial_call(clean, inner, f"{path}.functionCall")
            if whole is None:
                return
            clean = whole
        if clean.get("text") == "" and clean.keys() <= set(_PARTS):
            return
        self._append(self._reader.read(clean))

    def _partial_call(self, part: dict[str, Any], inner: dict[str, Any], path: str) -> dict[str, Any] | None:
        """The whole call once its last fragment has arrived, else None."""
        if self._partial is not None and inner.get("name") and self._partial.name:  # the previous call was cut off
            self._cut.append(self._partial.fragment())
            self._partial = None
        self._partial = self._partial or PartialCall()
        self._partial.feed(part, inner, path)
        if not self._partial.complete:
            return None
        whole, self._partial = self._partial.part(), None
        return whole

    def _append(self, part: Part) -> None:
        """Append a part. Fragments of a text are joined; a signed part stays separate, because the signature covers
        only that part."""
        last = self._parts[-1] if self._parts else None
        joined: Part | None = None
        if isinstance(part, (Text, Reasoning)) and part.text:
            self._told.append(Delta("text" if isinstance(part, Text) else "reasoning", part.text))
        if isinstance(part, Text) and isinstance(last, Text) and part.form is None and last.form is None:
            joined = Text(last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning) and _plain_thought(part, last):
            joined = Reasoning(NAME, text=last.text + part.text)
        if joined is not None:
            self._parts[-1] = joined
        else:
            self._parts.append(part)

    def reply(self) -> Reply:
        """The answer so far, complete after a finish reason (or the prompt's block reason)."""
        complete = bool(self._stop) and not self._error and self._partial is None
        error = self._error
        if not complete and not error:
            error = "the stream ended before a finishReason"
        return Reply(
            message=Message("assistant", tuple(self._parts)),
            usage=_usage(self._usage) if self._usage else None,
            raw_usage=dict(self._usage) if self._usage else None,
            model=self._model,
            stop=self._stop,
            response_id=self._response_id,
            complete=complete,
            error=error,
            fragments=(*self._cut, *(() if self._partial is None else (self._partial.fragment(),))),
            beside={key: sources[0] if len(sources) == 1 else [*sources] for key, sources in self._sources.items()},
            blobs=dict(self._reader.blobs),
        )


def _plain_thought(part: Reasoning, last: Reasoning) -> bool:
    return not (part.signature or last.signature) and part.form is None and last.form is None


def _plain(chunk: Any) -> dict[str, Any]:
    """A response as a dict in camelCase."""
    wire = plain(chunk, "response")
    check_json(wire, "response")
    clean = {camel(key): _clean(camel(key), value) for key, value in wire.items() if value is not None}
    check_types(clean, RESPONSE, "response")
    return clean


def _clean(key: str, value: Any) -> Any:
    """A value in the spelling of REST: in camelCase, without nulls, and with enums and bytes of SDK objects as text.
    Arguments and results are the user's and are not changed."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_clean(key, item) for item in value]
    if isinstance(value, dict) and key not in FREE:
        return {(ours := camel(name)): _clean(ours, item) for name, item in value.items() if item is not None}
    return value


def _standard(key: str, value: Any) -> Any:
    """Base64 in the alphabet of REST responses; SDK objects use the URL alphabet."""
    if key == "thoughtSignature" and isinstance(value, str):
        return value.translate(_URLSAFE)
    if key == "inlineData" and isinstance(value, dict) and isinstance(value.get("data"), str):
        return {**value, "data": value["data"].translate(_URLSAFE)}
    return value


def _usage(raw: dict[str, Any]) -> Usage:
    """Usage in common terms. The prompt includes cached tokens; candidates exclude thoughts; prompts made by Google's
    tools are counted separately (usageMetadata of generateContent)."""

    def count(key: str) -> int:
        return tokens_billed(raw.get(key))

    thoughts = count("thoughtsTokenCount")
    return Usage(
        input=count("promptTokenCount") + count("toolUsePromptTokenCount"),
        output=count("candidatesTokenCount") + thoughts,
        cached=count("cachedContentTokenCount"),
        reasoning=thoughts,
        incomplete=is_uncounted(*map(raw.get, ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"))),
    )
