"""A session as Markdown, for people.

Whatever the transcript says stands in fenced blocks: it cannot become a heading, a link, an image
that a viewer would fetch, or HTML that it would run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from ..log.records import Decision, MessageRecord, Note, PartialAnswer, Record, UnknownRecord
from ..log.store import Problem, Store
from ..stores.records import kind_of
from ..view.decisions import Rewinds
from .escapes import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:@$^])")


def as_markdown(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The whole conversation: messages, notes and decisions in full, other records by name.

    Raises SessionNotFound, CorruptRecord. Media are named, not shown. `problems` stays as it is.
    """
    info = store.info(session_id)
    head = f"# {_inline(info.title or info.id)}\n\nSession {_code(info.id)}, {info.records} records, {info.messages} "
    yield _bytes(f"{head}messages, {info.created} to {info.updated}\n")
    rewinds = Rewinds.of(store.of_kinds(session_id, ("decision",)))
    gone = 0
    for record in store.read(session_id, last=info.records):
        before, gone = gone, rewinds.by(record.n)
        if gone and gone != before:
            yield _bytes(f"\n*From here on taken back by decision {gone}:*\n")
        elif before and not gone:
            yield _bytes("\n*Up to here.*\n")
        yield _bytes(_record(record))


def _record(record: Record) -> str:
    number = f"\n## {record.n}. "
    match record.body:
        case MessageRecord(message=message, model=model):
            return f"{number}{message.role.title()}{_by(model)}\n{_message(message)}"
        case PartialAnswer(message=message, model=model, reason=reason, fragments=fragments):
            pieces = "".join(map(_part, fragments))
            return f"{number}Assistant{_by(model)}, interrupted\n{_message(message)}{pieces}{_fenced(reason)}"
        case Note(topic=topic, text=text, data=data):
            shown = _fenced(text) + (_data(data) if data is not None else "")
            return f"{number}Note: {_inline(topic)}\n{shown}"
        case Decision(action=action, first=first, last=last, why=why):
            span = f", records {first} to {last}" if first else ""
            return f"{number}Decision: {_inline(action)}{span}\n{_fenced(why)}"
        case UnknownRecord(name=name):
            return f"\n*{record.n}. {_inline(name)}, which a newer turnlog wrote*\n"
        case body:
            return f"\n*{record.n}. {_inline(kind_of(body).replace('_', ' '))}*\n"


def _message(message: Message) -> str:
    return "".join(map(_part, message.parts))


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return _fenced(text)
        case Media(kind=kind, mime=mime, sha256=sha256, url=url, file_id=file_id):
            return f"\n*{kind}* {_code(mime)} {_code(sha256 or url or file_id)}\n"
        case Reasoning(text=text, summary=summary):
            shown = text or "\n\n".join(summary)
            return "\n*reasoning*\n" + (_fenced(shown) if shown else "")
        case ToolCall(name=name, id=call_id):
            return f"\n*calls* {_code(name)} *as* {_code(call_id)}\n{_fenced(part.raw_arguments)}"
        case ToolResult(name=name, call_id=call_id, outcome=outcome, parts=parts):
            answer = "".join(map(_part, parts))
            return f"\n*result of* {_code(name)} {_code(call_id)}*: {outcome}*\n{answer}"
        case Opaque(provider=provider, kind=kind, data=data):
            return f"\n{_code(kind)} *of* {_code(provider)}\n{_data(data)}"
        case Unknown(kind=kind, data=data):
            return f"\n{_code(kind)}*, which a newer turnlog wrote*\n{_data(data)}"


def _by(model: str) -> str:
    return f" ({_inline(model)})" if model else ""


def _inline(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text, one_line=True))


def _code(text: str) -> str:
    """An inline code span, or nothing for nothing."""
    shown = visible(text, one_line=True).strip()
    if not shown:
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fenced(text: str, language: str = "text") -> str:
    if not text:
        return ""
    shown = visible(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"\n{fence}{language}\n{shown}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _data(value: object) -> str:
    return _fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
