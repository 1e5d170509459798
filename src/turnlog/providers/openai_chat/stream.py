"""Assemble a streamed answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.arguments import are_objects
from ...log.messages import Message
from ...log.usage import Usage
from ..error_bodies import error_chunk, error_text, named_error
from ..protocol import Delta, Reply
from ..schema.walk import check_types
from ..sdk_objects import plain
from .response import ANSWER_KEYS, first_choice, read_answer
from .schema import DELTA, REASONING_FIELDS
from .usage import is_complete, usage_in, usage_of


class StreamAssembler:
    """Collects chunks into the message of a whole response.

    The end of the stream is the chunk with a finish reason: SDKs do not show the `[DONE]` line. Usage may be in any
    chunk; OpenAI's follows in one without choices, if it was requested (`stream_options.include_usage`).
    """

    def __init__(self) -> None:
        self._wire: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._slots: dict[Any, int] = {}
        self._named_again: set[int] = set()
        self._usage: Usage | None = None
        self._raw_usage: Any = None
        self._model = self._id = self._stop = self._error = ""

    def feed(self, chunk: Any) -> list[Delta]:
        """Process the next chunk: an SDK object, or its JSON as a dict. Raises FormatError.

        The SDK's stream helper (`chat.completions.stream`) wraps each chunk in an event and adds events of its own,
        which have no choices and are ignored.
        """
        if chunk == "[DONE]":
            return []
        data = plain(getattr(chunk, "chunk", chunk), "chunk")
        self._model = self._model or str(data.get("model") or "")
        self._id = self._id or str(data.get("id") or "")
        self._error = self._error or error_chunk(data, ANSWER_KEYS) or error_text(named_error(data))
        raw = usage_in(data)
        # Some servers report usage in each chunk, some end with an empty one: the last complete one counts.
        if raw is not None and (is_complete(raw) or not is_complete(self._raw_usage)):
            usage = usage_of(raw)
            if self._usage is None or usage not in (None, Usage(), Usage(incomplete=True)):
                self._raw_usage, self._usage = raw, usage
        choice = first_choice(data)
        if choice is None:
            return []
        self._error = self._error or error_text(choice.get("error"))
        begun = self._calls or any(self._wire.values())
        # A server that cannot stream sends its whole answer in one chunk; some repeat it in the last.
        delta = choice.get("delta") or _as_delta({} if begun else choice.get("message"))
        self._delta(delta)
        self._stop = str(choice.get("finish_reason") or "") or self._stop
        return _told(delta)

    def reply(self) -> Reply:
        """The answer so far, `complete` once a finish reason has arrived."""
        wire = {**self._wire, "tool_calls": self._calls} if self._calls else self._wire
        message, fragments, blobs = read_answer(wire, self._stop) if wire else (Message("assistant"), (), {})
        error = self._error or ("" if self._stop else "the stream ended before a finish reason came")
        return Reply(
            message=message,
            usage=self._usage,
            raw_usage=self._raw_usage,
            model=self._model,
            stop=self._stop,
            response_id=self._id,
            complete=not error,
            error=error,
            fragments=fragments,
            blobs=blobs,
        )

    def _delta(self, delta: Mapping[str, Any]) -> None:
        check_types(_with_text_arguments(delta), DELTA, "choices[0].delta")
        for key, value in delta.items():
            if key == "role" or value is None:
                continue
            if key == "tool_calls":
                for entry in value:
                    self._call(entry)
            elif key == "reasoning_details" and isinstance(value, list):
                self._wire[key] = _merged_details(self._wire.get(key) or [], value)
            else:
                if key == "content" and type(value) is not type(self._wire.get(key, value)):
                    self._wire[key], value = _joined([], _as_parts(self._wire[key])), _as_parts(value)
                if key == "content" and isinstance(value, list):
                    self._wire[key] = _joined(self._wire.get(key) or [], value)
                else:
                    _grow(self._wire, key, value)

    def _call(self, entry: Mapping[str, Any]) -> None:
        """Add a fragment of a call. Fragments of a call share an `index`; some servers give all calls index 0 or none,
        and distinguish them by id, or send each call whole."""
        index = entry.get("index")
        number = index if isinstance(index, (int, float, str)) else -1
        position = self._slots.get(number)
        if index is None and not entry.get("id") and not _named(entry) and self._calls:
            position = len(self._calls) - 1  # it does not begin a call, so it continues the last one
        if position is not None and _is_named_again(entry, self._calls[position]):
            self._named_again.add(position)
            return
        begun: dict[str, Any] = {}
        if position in self._named_again and _has_arguments(entry):  # no repetition at the end, but the next call
            begun = {"function": {"name": self._calls[position]["function"]["name"], "arguments": ""}}
        if position is None or begun or _is_another(entry, self._calls[position]):
            position = self._slots[number] = len(self._calls)
            self._calls.append(begun)
        call = self._calls[position]
        for key, value in entry.items():
            # Later fragments may have `"id": ""`, or another id.
            if key == "index" or value is None or (call.get(key) and (value == "" or key == "id")):
                continue
            if key in ("function", "custom") and isinstance(value, Mapping):
                body = call.setdefault(key, {"name": "", "arguments" if key == "function" else "input": ""})
                for name, piece in value.items():
                    if name == "arguments" and dict in (type(piece), type(body.get(name))):
                        body[name] = _arguments_so_far(body.get(name), piece)
                    elif piece is not None and not (name == "name" and piece == body["name"]):
                        _grow(body, name, piece)
            else:
                call[key] = value


def _with_text_arguments(delta: Mapping[str, Any]) -> Mapping[str, Any]:
    """A delta whose calls have texts where a server gave objects as arguments (oh-my-pi#1779, of MiniMax)."""
    calls = delta.get("tool_calls") if isinstance(delta, Mapping) else None
    if not isinstance(calls, list):
        return delta
    told = [
        {**call, "function": {**body, "arguments": ""}}
        if isinstance(call, Mapping)
        and isinstance(body := call.get("function"), Mapping)
        and isinstance(body.get("arguments"), dict)
        else call
        for call in calls
    ]
    return {**delta, "tool_calls": told}


def _arguments_so_far(had: Any, piece: Any) -> Any:
    """The arguments of a call of which a piece is an object: it is all of them, unless it is empty (unsloth#10275)."""
    if isinstance(piece, dict):
        return piece if piece or not had else had
    return had if had or not piece else piece


def _told(delta: Mapping[str, Any]) -> list[Delta]:
    """The text that a delta adds."""
    added = [Delta("reasoning", delta[key]) for key in REASONING_FIELDS if isinstance(delta.get(key), str)]
    for value in (delta.get("content"), delta.get("refusal")):
        pieces = value if isinstance(value, list) else [{"type": "text", "text": value}]
        texts = (piece.get("text") for piece in pieces if isinstance(piece, Mapping) and piece.get("type") == "text")
        added += [Delta("text", text) for text in texts if isinstance(text, str)]
    return [each for each in added if each.text]


def _as_delta(message: Any) -> Any:
    """A whole message as a chunk of a stream, with its calls numbered."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(calls, list):
        return message or {}
    numbered = [{**call, "index": i} if isinstance(call, Mapping) else call for i, call in enumerate(calls)]
    return {**message, "tool_calls": numbered}


def _is_another(entry: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a fragment begins a call other than the one with its index: it has another id, or it has a name and no id
    while that call's arguments are complete."""
    if entry.get("id"):
        return bool(call.get("id")) and entry["id"] != call["id"] and not _continues(entry, call)
    if call.get("id"):
        return False
    new, had = entry.get("function"), call.get("function")
    if not isinstance(new, Mapping) or not had or not had["name"] or not new.get("name"):
        return False
    return _is_whole(had["arguments"])


def _is_named_again(entry: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a fragment only repeats the name of a call without an id whose arguments are complete: at its end, or to
    begin another call of the same tool."""
    had = call.get("function")
    if entry.get("id") or call.get("id") or not isinstance(had, Mapping) or _has_arguments(entry):
        return False
    return bool(had["name"]) and _named(entry) == had["name"] and _is_whole(had["arguments"])


def _has_arguments(entry: Mapping[str, Any]) -> bool:
    body = entry.get("function")
    given = body.get("arguments") if isinstance(body, Mapping) else None
    return bool(given.strip() if isinstance(given, str) else given)


def _continues(entry: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a fragment with another id continues the same call: vLLM gave each fragment a separate id. A new call has
    a name, and does not begin with the same name while arguments are incomplete."""
    name, had = _named(entry), call.get("function")
    if not name:
        return True
    if not isinstance(had, Mapping) or name != had["name"]:
        return False
    return bool(had["arguments"]) and not _is_whole(had["arguments"])


def _named(entry: Mapping[str, Any]) -> Any:
    """The name in a fragment, if it has one."""
    body = entry.get("function") or entry.get("custom")
    return body.get("name") if isinstance(body, Mapping) else None


def _is_whole(arguments: Any) -> bool:
    if isinstance(arguments, dict):
        return bool(arguments)
    return arguments.endswith("}") and are_objects(arguments)


def _as_parts(content: Any) -> Any:
    """Content as a list of parts, for servers that switch between a text and a list."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _joined(parts: list[Any], pieces: list[Any]) -> list[Any]:
    """`parts` with the next fragments. The first fragment is appended to the last part if both are text, or thinking in
    Mistral's form: otherwise each word would become a separate part."""
    for i, piece in enumerate(pieces):
        kind = piece.get("type") if isinstance(piece, Mapping) else None
        last = parts[-1] if parts and i == 0 else None
        if kind not in ("text", "thinking"):
            parts.append(piece)
        elif isinstance(last, dict) and last.keys() == piece.keys() == {"type", kind} and _are_alike(last, piece, kind):
            if isinstance(piece[kind], list):
                _joined(last[kind], piece[kind])
            else:
                _grow(last, kind, piece[kind])
        else:
            inner = {kind: _joined([], piece[kind])} if isinstance(piece.get(kind), list) else {}
            parts.append({**piece, **inner})
    return parts


_GROWING = ("text", "summary", "data")
"""Keys of an entry of `reasoning_details` that come in pieces."""


def _merged_details(entries: list[Any], pieces: list[Any]) -> list[Any]:
    """`entries` of reasoning with the next fragments. A fragment continues the newest entry with its index, or the last
    one if it has none. https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#streaming-mode"""
    for piece in pieces:
        if not isinstance(piece, Mapping):
            entries.append(piece)
            continue
        index = piece.get("index")
        begun = (entry for entry in reversed(entries) if isinstance(entry, dict))
        newest = next((entry for entry in begun if index in (None, entry.get("index"))), None)
        if newest is None or not _continues_entry(piece, newest):
            entries.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in _GROWING and isinstance(value, str):
                is_repeated = key == "data" and value == newest.get(key)
                newest[key] = (newest.get(key) or "") + value * (not is_repeated)
            elif value is not None:
                newest[key] = value
    return entries


def _continues_entry(piece: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether a fragment continues an entry: it is of the same kind, and neither of what follows a signed text nor
    of the signature of another call."""
    if any(piece.get(key) != entry.get(key) for key in ("type", "index")):
        return False
    if "data" in piece:
        return piece.get("index") is not None and piece.get("id") in (None, entry.get("id"))
    signed = entry.get("signature")
    return not signed or not piece.get("text") or piece.get("signature") == signed


def _are_alike(last: Mapping[str, Any], piece: Mapping[str, Any], kind: str) -> bool:
    return last["type"] == piece["type"] and type(last[kind]) is type(piece[kind]) in (str, list)


def _grow(into: dict[str, Any], key: str, piece: Any) -> None:
    """Add the next fragment of a value: texts and lists are extended, objects merged, other values replaced."""
    had = into.pop(key, None)
    if isinstance(had, str) and isinstance(piece, str):
        # `had` has no other reference here, so CPython appends in place: the cost stays linear.
        had += piece
        into[key] = had
    elif isinstance(had, list) and isinstance(piece, list):
        had.extend(piece)
        into[key] = had
    elif isinstance(had, dict) and isinstance(piece, Mapping):
        for name, value in piece.items():
            if name == "id" or value is None:  # an id may be repeated in every fragment
                had[name] = had.get(name) or value
            else:
                _grow(had, name, value)
        into[key] = had
    else:
        into[key] = list(piece) if isinstance(piece, list) else dict(piece) if isinstance(piece, Mapping) else piece
