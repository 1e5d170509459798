"""`show`: a session's records, readable."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import CorruptRecord
from ..export import in_short, record_json, said_of, visible
from ..log.bills import Bills
from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, compact_json
from ..log.records import (
    Configuration,
    Decision,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    StreamCheckpoint,
    SummaryRecord,
)
from ..log.store import Store
from ..session.reader import SessionLog, source_of
from ..view.decisions import Rewinds
from .costs import bill_json, bill_lines
from .decisions import rewinds_of
from .stores import opened
from .terminal import counted, out, out_bytes, out_json, out_line, say, shorten
from .turns import show_tools, show_turns

_Row = tuple[str, str]
"""What a piece is, and its text. Words in brackets are for what no model is sent."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    show = commands.add_parser("show", parents=[store], help="show the records of a session")
    show.add_argument("id", metavar="ID")
    show.add_argument("--last", metavar="N", type=_count, help="only the last N records")
    instead = show.add_mutually_exclusive_group()
    instead.add_argument("--cost", action="store_true", help="instead of records, what each model was billed for")
    instead.add_argument("--tools", action="store_true", help="instead of records, what was done with each tool")
    instead.add_argument("--turns", action="store_true", help="instead of records, the turns and where each stands")
    show.add_argument("--json", action="store_true", help="the records as they are stored, one JSON object a line")
    show.set_defaults(run=_show)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)


def _show(arguments: Namespace) -> int:
    with opened(arguments) as store:
        info = store.info(arguments.id)
        if arguments.cost:
            _bill(store.usage(info.id), arguments)
            return 0
        if arguments.tools or arguments.turns:
            log = SessionLog(store, info.id)
            if arguments.tools:
                show_tools(log.tools_used(), json=arguments.json)
            else:
                show_turns(log.turns(), json=arguments.json)
            return 0
        first = 1 if arguments.last is None else max(1, info.records - arguments.last + 1)
        records = store.read(info.id, first=first, last=info.records)
        if arguments.json:
            shown = (visible(record_json(record).decode("utf-8")).encode("utf-8") for record in records)
            out_bytes(line + b"\n" for line in shown)
            return 0
        out(f"{info.id}  {visible(info.title, one_line=True)}".rstrip())
        parent = f", belongs to {info.parent}" if info.parent else ""
        if info.parent_records and info.parent:
            parent = f", from {info.parent} up to record {info.parent_records}"
        source = source_of(store, info.id)
        held = f"{counted(info.records, 'record')}, {counted(info.messages, 'message')}"
        out(f"{held}, {info.created} to {info.updated}{parent}{source and f', {source}'}")
        _sum_up(store, info.id)
        for line in lines(records, rewinds_of(store, info.id)):
            out(line)
    return 0


def _sum_up(store: Store, session_id: str) -> None:
    """One line for what was billed, if anything was. Damage does not keep the rest from being shown."""
    try:
        bills = store.usage(session_id)
    except CorruptRecord as error:
        say(f"what was billed cannot be summed: {error}")
        return
    if bills:
        out_line(in_short(bills))


def _bill(bills: Bills, arguments: Namespace) -> None:
    if arguments.json:
        for model, usage in bills.items():
            out_json({"model": model, **bill_json({model: usage})})
    elif bills:
        for line in bill_lines(bills):
            out_line(line)
    else:
        say(f"{arguments.id}: nothing on record of what was billed")


def lines(records: Iterable[Record], rewinds: Rewinds = Rewinds()) -> Iterator[str]:
    """Records as text: a number, what it is, and what it says, long results shortened; ahead of those that were taken
    back a line that says so."""
    gone = 0
    for record in records:
        before, gone = gone, rewinds.by(record.n)
        if gone and gone != before:
            yield f"{'':5}  {'[rewound]':<12}  from here on taken back by decision {gone}"
        number = f"{record.n:>5}"
        for label, text in [*_rows(record), *_redacted(record)]:
            first, *more = text.splitlines() or [""]
            yield f"{number}  {label:<12}  {first}".rstrip()
            yield from (f"{'':21}{line}".rstrip() for line in more)
            number = " " * 5


def _rows(record: Record) -> list[_Row]:
    match record.body:
        case MessageRecord(message=message):
            return _message(message)
        case PartialAnswer(message=message, reason=reason, fragments=fragments):
            rest = [("[fragment]", shorten(text)) for _, text in map(_part, fragments)]
            return [*_message(message), ("interrupted", reason), *rest]
        case Decision(action=action, first=first, last=last, why=why):
            span = f", records {first} to {last}" if first else ""
            return [("[decision]", f"{action}{span}" + (f": {why}" if why else ""))]
        case Note(topic=topic, text=text, data=data):
            said = text if data is None else f"{text} {compact_json(data)}"
            return [("[note]", f"{topic}: {shorten(said.strip(), lines=3)}")]
        case SummaryRecord(state=state, text=text, reason=reason, summarizer=summarizer):
            said = shorten(text or reason, lines=3)
            return [("[summary]", f"{state} by {summarizer}" + (f": {said}" if said else ""))]
        case StreamCheckpoint(message=message, fragments=fragments):
            size = sum(len(text) for _, text in map(_part, (*message.parts, *fragments)))
            return [("[checkpoint]", f"{counted(size, 'character')} of an answer had come")]
        case Configuration():
            return [("[settings]", _configuration(record.body))]
        case body:
            word, said = said_of(body)
            return [(f"[{word}]", said)]


def _redacted(record: Record) -> list[_Row]:
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(record.redacted.items()))
    return [("[redacted]", said)] if said else []


def _message(message: Message) -> list[_Row]:
    rows = [(label or message.role, text) for label, text in map(_part, message.parts)]
    return rows or [(message.role, "(empty)")]


def _part(part: Part) -> _Row:
    match part:
        case Text(text=text):
            return "", text
        case Reasoning(text=text, summary=summary):
            return "reasoning", shorten(text or "\n".join(summary) or "(hidden by its provider)")
        case ToolCall(name=name, id=call_id):
            return "call", f"{name} {shorten(part.raw_arguments, characters=200, lines=3)}  ({call_id})"
        case ToolResult(name=name, call_id=call_id, outcome=outcome, parts=parts):
            said = shorten("\n".join(text for _, text in map(_part, parts)))
            return "result", f"{outcome}  ({' '.join(filter(None, (name, call_id)))})\n{said}".rstrip()
        case Media(kind=kind, mime=mime, size=size, sha256=sha256, url=url, file_id=file_id):
            where = f"{size:,} bytes, {sha256[:12]}" if sha256 else url or file_id
            return kind, f"{mime or 'of unknown type'}, {where}"
        case Opaque(provider=provider, kind=kind, data=data):
            return "opaque", f"{provider} {kind} {shorten(compact_json(data), characters=200)}"
        case unknown:
            return "unknown", f"a part of kind {unknown.kind} that a newer turnlog wrote"


def _configuration(body: Configuration) -> str:
    names = ", ".join(tool.name for tool in body.tools)
    tools = f"; tools {names}" if names else ""
    settings = f"; {compact_json(body.settings)}" if body.settings else ""
    why = f"; {body.why}" if body.why else ""
    return shorten(f"{body.provider} {body.model}{why}{tools}{settings}".strip(" ;"))
