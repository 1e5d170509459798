"""Agent transcripts of Cursor: `~/.cursor/projects/<folder>/agent-transcripts/<id>.jsonl` or `<id>/<id>.jsonl`, with
`subagents/` beside it; before, `<id>.txt`.

A line is a message in the shape of Anthropic's API, without ids of calls, results, model, usage and times. What the
user typed is within `<user_query>`; around it Cursor puts when it was sent, and what it tells the model in the user's
name: open and attached files, a task that has ended. (Read off Cursor's TranscriptStore of 2026-10-01.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.texts import strings_in
from ..providers.anthropic import PROVIDER
from ..session.titles import title_from
from .fields import Fields, kind_of
from .json_values import within, word
from .protocol import Imported, Origin, hashed_id, with_subagents
from .transcript import Line, Transcript
from .writing import Handler, SessionWriter

_OPENED = lazy_pattern(r"(?m)(?:^|(?<=>))[ \t]*+<([a-z]+_\w+|rules|timestamp)\b[^<>]*>")
_CLOSED = lazy_pattern(r"</(\w+)>")
_QUERY_CLOSED = lazy_pattern(r"(\n?)</user_query>(?=\s*+(?:<|\Z))")
_FIRST = lazy_pattern(
    r"\s*<(?:user_(?:info|rules)|git_status|project_layout|(?:agent|always|attached|cursor|mcp|open|system|terminal)_\w+)\b"
)
"""What stands before the first query; of what begins with another one nobody knows whether the user pasted it."""
_TIME = lazy_pattern(r"\w+, (\w{3} \d+, \d{4}, \d+:\d+ [AP]M) \(UTC(?:([+-])(\d+))?(?::(\d+))?\)")
_ADDED = lazy_pattern(r"(?>\s*<([a-z]+_\w+|rules)\b[^<>]*>.*?</\1>)++\s*\Z", re.DOTALL)
_PATH = lazy_pattern(r"(?:[A-Za-z]:)?[/\\][^\n]{1,1000}")
_SIGNS = lazy_pattern(r"[^a-z0-9]+")
_SPEAKER = lazy_pattern(r"(?m)^(user|assistant):[ \t]*$")
_MARK = lazy_pattern(r"(?m)^\[(Thinking|Tool call|Tool result)\] ?(.*)$")
_STATUSES = {"success": "completed", "aborted": "cancelled", "error": "failed"}


def read(origin: Origin) -> list[Imported]:
    """The session, then those of its subagents."""
    main = _read_one(origin)
    if not isinstance(origin, Path) or origin.parent.name != origin.stem:
        return [main]
    return with_subagents([main], (origin.parent / "subagents").glob("*.jsonl"), lambda path: [_read_one(path)])


def _read_one(origin: Origin) -> Imported:
    file = Transcript(origin)
    lines = list(_blocks(file)) if _is_text(file) else file.objects("line")
    if not any(isinstance(line.value.get("message"), (dict, str)) for line in lines):
        raise file.refused("message of Cursor", "give a file of ~/.cursor/projects/*/agent-transcripts")
    writer = SessionWriter(file, "cursor", PROVIDER, is_silent=True)
    path = file.path
    is_own = path is not None and ("agent-transcripts" in path.parts or path.parent.name in (path.stem, "subagents"))
    writer.id = path.stem if path is not None and is_own else hashed_id("cursor", lines[0].value)
    project = path.as_posix().rpartition("/agent-transcripts/")[0] if path is not None else ""
    writer.state["project"] = _dashed(project.rpartition("/")[2])
    for line in lines:
        entry = Fields(line.value)
        kind = kind_of(entry, "role", "type") if "message" in entry.value else kind_of(entry, "type")
        writer.take(entry, line.number, kind, _HANDLERS)
    return writer.done()


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    role = entry.text("role", "type")
    message = entry.inside("message")
    content: Any = message.get("content") if message.value else entry.get("message")
    said = content if isinstance(content, list) else [content]
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in said]
    if role != "user" or any(within(block, "type") == "tool_result" for block in blocks):
        _find_folder(writer, blocks)
        writer.message({"role": role, "content": content}, line)
        return
    typed, added = _parted(writer, blocks)
    writer.turn(f"line-{line}")
    if any(name == "system_notification" for block in added for name, _, _ in _elements(block["text"])):
        typed, added = [], added + typed  # the query is Cursor's own, too
    for some, by_program in ((added, True), (typed, False)):
        if some:
            writer.message({"role": role, "content": some}, line, by_program=by_program)


def _parted(writer: SessionWriter, blocks: list[Any]) -> tuple[list[Any], list[Any]]:
    """The blocks that the user typed, and those that Cursor put around them. When it was sent becomes a note."""
    typed, added = list[Any](), list[Any]()
    found = [list(_elements(word(within(block, "text")))) for block in blocks]
    has_query = any(name == "user_query" for elements in found for name, _, _ in elements)
    writer.state["wraps"] = writer.state.get("wraps") or has_query
    for block, elements in zip(blocks, found, strict=True):
        text, queries, around, end = word(within(block, "text")), list[str](), list[str](), 0
        for name, inner, (start, behind) in elements:
            if name == "user_query":
                queries.append(inner.strip())
            elif name == "timestamp" and (has_query or ("(UTC" in inner and not text[:start].strip())):
                writer.at(_time(inner.strip()))
                writer.note("sent", {"timestamp": inner.strip()})
            else:
                continue
            around.append(text[end:start])
            end = behind
        rest = "\n".join([*around, text[end:]])
        is_known = writer.state["wraps"] or _FIRST.match(rest)
        is_added = bool(text) and (has_query or bool(is_known and _ADDED.match(rest)))
        if rest == text or rest.strip():
            (added if is_added else typed).append(block if rest == text else {**block, "text": rest.strip()})
        typed += [{**block, "text": query} for query in queries if query]
    return typed, added


def _elements(text: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """The name, content, beginning and end of each element that may be Cursor's: not within another one, nor within a
    line. A query may be cut off, and may quote the tags of one."""
    last = {match[1]: match.start() for match in _CLOSED.finditer(text)}
    end = 0
    for opened in _OPENED.finditer(text):
        name, start = opened[1], opened.end()
        if opened.start() < end:
            continue
        if name == "user_query":
            is_block = text.startswith("\n", start)
            ends = (each for each in _QUERY_CLOSED.finditer(text, start) if each[1] or not is_block)
            until = next((each.start() for each in ends), last.get(name, -1))
            until = until if until >= start else len(text)
        elif last.get(name, -1) >= start:
            until = text.index(f"</{name}>", start)
        else:
            continue
        end = text.find(">", until) + 1 or len(text)
        yield name, text[start:until], (opened.start(), end)


def _time(text: str) -> str:
    """The time when a text was sent: `Wednesday, Oct 7, 2026, 1:20 PM (UTC+3)`; "" if it is none."""
    sent = _TIME.match(text)
    if sent is None:
        return ""
    zone = f"{sent[2] or '+'}{int(sent[3] or 0):02}{int(sent[4] or 0):02}"
    try:
        return datetime.strptime(f"{sent[1]} {zone}", "%b %d, %Y, %I:%M %p %z").isoformat()
    except ValueError:
        return ""


def _find_folder(writer: SessionWriter, blocks: list[Any]) -> None:
    """Record in which folder Cursor works, once a call names a path in it. The project is named after that folder, with
    a dash for each sign, so that its name alone does not tell."""
    project = writer.state["project"]
    inputs = [within(block, "input") for block in blocks] if project else []
    for path in filter(_PATH.fullmatch, strings_in(inputs)):
        if f"{_dashed(path)}-".startswith(f"{project}-"):
            ends = [match.start() for match in re.finditer(r"(?<!^)[/\\]|\Z", path)]
            if folder := next((path[:end] for end in ends if _dashed(path[:end]) == project), ""):
                writer.place(folder)
                writer.state["project"] = ""
                return


def _dashed(path: str) -> str:
    return _SIGNS.sub("-", path.lower()).strip("-")


def _ended(writer: SessionWriter, entry: Fields, line: int) -> None:
    status = entry.text("status")
    writer.end(_STATUSES.get(status, status or "completed"), entry.text("error"))


def _named(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.title = writer.title or title_from(entry.inside("metadata").text("overview"))


_HANDLERS: dict[str, Handler | None] = {"user": _said, "assistant": _said, "turn_ended": _ended, "metadata": _named}


# -- text ------------------------------------------------------------------------------------------


def _is_text(file: Transcript) -> bool:
    return _SPEAKER.match(file.data.lstrip()[:20].decode("utf-8", "replace")) is not None


def _blocks(file: Transcript) -> Iterator[Line]:
    """The messages of a text transcript, in the shape of the lines of newer ones."""
    text = file.data.decode("utf-8", "replace")
    _, *pieces = _SPEAKER.split(text)
    line = text[: text.find(pieces[0])].count("\n") + 1 if pieces else 1
    for role, said in zip(pieces[::2], pieces[1::2], strict=True):
        blocks = list(_marked(said)) if role == "assistant" else _text(said)
        answers = [block for block in blocks if block["type"] != "tool_result"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        for speaker, content in ((role, answers), ("user", results)):
            if content:
                yield Line(line, {"role": speaker, "message": {"content": content}})
        line += said.count("\n")


def _marked(said: str) -> Iterator[dict[str, Any]]:
    """The blocks of an answer: thinking, calls with indented arguments, results with an indented body, and text."""
    before, *pieces = _MARK.split(said)
    yield from _text(before)
    for mark, head, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        indented = re.match(r"(?:\n(?:[ \t]+.*|[ \t]*(?=\n[ \t])))*", body)
        inside, after = (indented[0], body[indented.end() :]) if indented else ("", body)
        if mark == "Thinking":
            yield {"type": "thinking", "thinking": head + inside}
        elif mark == "Tool call":
            yield {"type": "tool_use", "name": head.strip(), "input": _arguments(inside)}
        else:
            yield {"type": "tool_result", "content": inside.strip("\n")}
        yield from _text(after)


def _text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said.strip()}] if said.strip() else []


def _arguments(text: str) -> Any:
    """The indented lines `key: value` or `key=value` as an object; text of another shape under `input`."""
    pairs = [re.match(r"\s*(\w+)(?:: ?|=)(.*)", line) for line in text.strip("\n").split("\n")]
    if text.strip() and all(pairs):
        return {pair[1]: pair[2] for pair in pairs if pair is not None}
    return {"input": text.strip()} if text.strip() else {}
