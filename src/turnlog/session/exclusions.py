"""Take single parts of messages out of the view: an image that a provider refused, a text that must not be sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..log.messages import CONTAINER, Media, Message, Opaque, Part, Reasoning, ToolCall, ToolResult
from ..log.records import Decision, Record
from ..log.store import RecordStore
from .history_edits import message_to_decide

_Path = tuple[int, ...]


def exclusion_for(
    store: RecordStore, session_id: str, n: int, part: int | tuple[int, int] | None, why: str
) -> Decision:
    """The decision that shows a part of message record `n` as a line of text. Arguments and errors as for
    `Session.exclude`."""
    parts = dict(_parts(message_to_decide(store, session_id, n, "excluded")))
    path = _only_media(n, parts) if part is None else _given(n, part, parts)
    excluded = parts[path]
    if isinstance(excluded, (Reasoning, ToolCall)):
        kind = "a tool call" if isinstance(excluded, ToolCall) else "reasoning"
        raise InputError(f"part {_said(path)} of record {n} is {kind}, which cannot be excluded alone")
    return Decision("exclude", first=n, last=n, why=why, detail={"texts": [[n, list(path), _placeholder(excluded)]]})


def refusal_for(
    records: Iterable[Record],
    provider: str,
    reason: str,
    *,
    media: Collection[str],
    signatures: bool,
    containers: Collection[str] | None,
) -> Decision | None:
    """The decision that leaves out of requests to one provider what it refused; None if these records have nothing of
    it. Arguments as for `turnlog.session.operations.exclude_for`."""
    texts: list[Any] = []
    unsigned: list[Any] = []
    records = list(records)
    if containers is not None:
        texts, unsigned = _contained(records, provider, containers)
    for record in records:
        for path, part in _parts(record.message) if record.message is not None else ():
            if isinstance(part, Media) and {part.sha256, part.url, part.file_id} & {*media} - {""}:
                texts.append([record.n, list(path), _placeholder(part)])
            elif signatures and isinstance(part, (Reasoning, ToolCall)) and part.provider == provider:
                signed = isinstance(part, Reasoning) or bool(part.signature)
                unsigned += [[record.n, list(path)]] if signed else []
    if not (texts or unsigned):
        return None
    detail = {"provider": provider, "texts": texts, "unsigned": unsigned}
    numbers = [entry[0] for entry in (*texts, *unsigned)]
    return Decision("exclude", first=min(numbers), last=max(numbers), why=reason, detail=detail)


def _contained(records: Sequence[Record], provider: str, containers: Collection[str]) -> tuple[list[Any], list[Any]]:
    """The entries `texts` and `unsigned` for what a provider ran in containers that are gone (none named: in any): its
    items, with the reasoning that led to them; the names of containers; and calls that wait for a result in one."""
    texts: list[Any] = []
    unsigned: list[Any] = []
    own = [
        (record, i, part)
        for record in records
        for i, part in enumerate(record.message.parts if record.message is not None else ())
        if isinstance(part, (Opaque, Reasoning)) and part.provider == provider
    ]
    data = [part.data if isinstance(part, Opaque) and isinstance(part.data, Mapping) else {} for _, _, part in own]
    answered = {each.get("tool_use_id") for each in data}
    named = {record.n: _container_of(record, provider) for record in records}
    for at, (record, i, part) in enumerate(own):
        waits = "input" in data[at] and data[at].get("id") not in answered
        inside = data[at].get("container_id") or (named[record.n] if waits else "")
        if not isinstance(part, Opaque) or not inside or (containers and inside not in containers):
            continue
        texts.append([record.n, [i], f"[{part.kind} left out: its container is gone]"])
        if at and own[at - 1][:2] == (record, i - 1) and isinstance(own[at - 1][2], Reasoning):
            unsigned.append([record.n, [i - 1]])
    unsigned += [[n, []] for n, name in named.items() if name and (not containers or name in containers)]
    return texts, unsigned


def _container_of(record: Record, provider: str) -> str:
    """The container that an answer of a provider names, "" if it names none."""
    form = record.message.form if record.message is not None else None
    words = form.shape.split() if form is not None and form.provider == provider else ()
    return next((word.partition("=")[2] for word in words if word.startswith(f"{CONTAINER}=")), "")


def readmission_for(decisions: Mapping[int, Decision]) -> Decision:
    """The decision that undoes the last exclusion in force. Raises InputError if there is none."""
    exclusions = [number for number, decision in decisions.items() if decision.action == "exclude"]
    if not exclusions:
        raise InputError("no exclusion is in force that could be taken back")
    return Decision("undo", why="no longer excluded", supersedes=max(exclusions))


def _parts(message: Message) -> Iterator[tuple[_Path, Part]]:
    """The parts of a message, and those inside its tool results, with their places."""
    for i, part in enumerate(message.parts):
        yield (i,), part
        if isinstance(part, ToolResult):
            yield from (((i, j), inner) for j, inner in enumerate(part.parts))


def _only_media(n: int, parts: Mapping[_Path, Part]) -> _Path:
    media_paths = [path for path, part in parts.items() if isinstance(part, Media)]
    if len(media_paths) != 1:
        advice = (
            f"give part={' or part='.join(map(_said, media_paths))}"
            if media_paths
            else "say with part= what to exclude"
        )
        raise InputError(f"record {n} has {len(media_paths) or 'no'} images and files: {advice}")
    return media_paths[0]


def _given(n: int, part: int | tuple[int, int], parts: Mapping[_Path, Part]) -> _Path:
    path = (part,) if isinstance(part, int) else part
    if not isinstance(path, tuple) or path not in parts:
        raise InputError(f"part={part!r}: record {n} has no such part; it has {', '.join(map(_said, parts)) or 'none'}")
    return path


def _said(path: _Path) -> str:
    """A path in the spelling of the argument `part`."""
    return str(path[0]) if len(path) == 1 else str(path)


def _placeholder(part: Part) -> str:
    """The text that is shown instead of a part."""
    if isinstance(part, Media):
        return f"[{part.kind} {part.name} left out]" if part.name else f"[{part.kind} left out]"
    return "[tool result left out]" if isinstance(part, ToolResult) else "[left out]"
