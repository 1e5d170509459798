"""Records as HTML: messages, decisions, settings, notes, and the small ones in a line each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from math import inf

import msgspec

from ..log.codec import encode_record
from ..log.messages import Message, ToolResult
from ..log.records import (
    Configuration,
    Decision,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    SummaryRecord,
    UnknownRecord,
)
from ..view.decisions import Effects, Rewinds, active_decisions, ended_decisions, stand_ins
from .markup import Markup, end, start, tag, text
from .page_parts import PartWriter, data, folded, link, preformatted, sized
from .wording import said_of

_KNOWN_DETAIL = frozenset({"before", "after", "replacement", "texts", "cuts", "kept", "standing", "at", "changes_from"})


class RecordWriter:
    """Writes the records of one session. `decisions` are those of the whole log, `last` the number of its last record:
    what they left out of what a model is sent is marked, and what was taken back."""

    def __init__(self, parts: PartWriter, decisions: Mapping[int, Record], last: int) -> None:
        self._parts = parts
        self._ended = ended_decisions(decisions.values())
        self._effects = Effects.of(active_decisions(decisions.values()))
        self._rewinds = Rewinds.of(decisions.values())
        self._sent = self._effects.shown_ranges(last)

    def record(self, record: Record) -> Iterator[Markup]:
        """A record, in pieces."""
        match record.body:
            case MessageRecord(message=message, model=model):
                yield self._head(record, _speaker(message), model, message)
                yield from self._parts.message(message, record.n)
            case PartialAnswer(message=message, model=model, reason=reason, fragments=fragments):
                yield self._head(record, message.role, model, message)
                yield tag("p", tag("span", text("interrupted"), class_="badge warn"), text(f" {reason}"))
                yield from self._parts.message(message, record.n)
                for part in fragments:
                    yield tag("p", text("As far as it came:"), class_="small")
                    yield from self._parts.part(part, record.n)
            case Decision():
                yield self._head(record, "decision", record.body.action)
                yield from self._decision(record.n, record.body)
            case SummaryRecord(state=state, text=words, reason=reason, summarizer=summarizer):
                yield self._head(record, "summary", f"{state} by {summarizer}")
                if reason:
                    yield tag("p", text(reason))
                if words:
                    yield folded(sized("Its text", words), words)
            case Configuration():
                yield self._head(record, "settings", f"{record.body.provider} {record.body.model}".strip())
                yield from _configuration(record.body)
            case Note(topic=topic, text=words, data=held):
                yield self._head(record, "note", topic)
                if words:
                    yield preformatted(words)
                if held is not None:
                    yield data("Data", held)
            case UnknownRecord():
                yield self._head(record, *said_of(record.body))
                written = encode_record(record).decode("utf-8", "replace")
                yield folded(sized("The record", written), written, class_="data")
            case body:
                yield self._line(record, *said_of(body))
                return
        yield end("article")

    def _head(self, record: Record, word: str, more: str, message: Message | None = None) -> Markup:
        """The beginning of a record, up to where its content stands."""
        marks = self._taken_back(record)
        if not marks and message is not None and self._is_hidden(record.n, message):
            said = "no longer sent: a decision left it out"
            marks.append(tag("span", text("left out"), class_="badge warn", title=said))
        elif not marks and record.n in self._effects.changes:
            marks.append(tag("span", text("shortened when sent"), class_="badge warn"))
        head = tag(
            "header",
            tag("a", text(str(record.n)), href=f"#r{record.n}", class_="n"),
            tag("b", text(word.title(), one_line=True)),
            tag("span", text(more, one_line=True), class_="more"),
            *marks,
            *_redacted(record),
            tag("time", text(record.time, one_line=True)),
        )
        kind = word if word in ("system", "user", "assistant", "decision", "summary") else "other"
        gone = " gone" if marks and message is not None else ""
        return Markup(start("article", id=f"r{record.n}", class_=f"{kind}{gone}") + head)

    def _line(self, record: Record, word: str, said: str) -> Markup:
        return tag(
            "p",
            tag("a", text(str(record.n)), href=f"#r{record.n}", class_="n"),
            tag("span", text(word), class_="badge"),
            text(f" {said}", one_line=True),
            *self._taken_back(record),
            *_redacted(record),
            tag("time", text(record.time, one_line=True)),
            id=f"r{record.n}",
            class_="event",
        )

    def _taken_back(self, record: Record) -> list[Markup]:
        by = self._rewinds.by(record.n)
        if not by:
            return []
        said = "no longer part of the conversation: a rewind took it back"
        return [tag("span", text("taken back by "), link(by), class_="badge warn", title=said)]

    def _is_hidden(self, n: int, message: Message) -> bool:
        if message.role == "system":
            return self._effects.hides(n, message)
        at = bisect_right(self._sent, (n, inf))
        return not at or n > self._sent[at - 1][1]

    def _decision(self, n: int, decision: Decision) -> Iterator[Markup]:
        detail = decision.detail
        covers = [text("Covers records "), link(decision.first), text(" to "), link(decision.last), text(". ")]
        said = covers if decision.first else []
        if decision.supersedes:
            said += [text("Takes back decision "), link(decision.supersedes), text(". ")]
        if n in self._ended:
            said += [text("Holds no longer: see "), link(self._ended[n]), text(". ")]
        before, after = detail.get("before"), detail.get("after")
        if isinstance(before, int) and isinstance(after, int):
            said.append(text(f"{before:,} tokens became {after:,}. "))
        shortened = len(detail.get("texts") or ()) + len(detail.get("cuts") or ())
        if shortened:
            said.append(text(f"{shortened:,} texts are shortened."))
        yield tag("p", *said)
        if decision.why:
            yield preformatted(decision.why)
        _, standing = stand_ins(n, decision)
        for shown in standing:
            yield start("details", class_="standin", open="")
            yield tag("summary", text(f"Stands in for them ({shown.message.role})"))
            yield from self._parts.message(shown.message, n)
            yield end("details")
        rest = {key: value for key, value in detail.items() if key not in _KNOWN_DETAIL}
        if rest:
            yield data("How it was made", rest)


def _speaker(message: Message) -> str:
    """Whose words a message holds: those that tools answered with are no user's."""
    results = message.parts and all(isinstance(part, ToolResult) for part in message.parts)
    return "tool" if message.role == "user" and results else message.role


def _configuration(body: Configuration) -> Iterator[Markup]:
    if body.why:
        yield tag("p", text(body.why))
    if body.tools:
        rows = [
            piece
            for tool in body.tools
            for piece in (tag("dt", text(tool.name, one_line=True)), tag("dd", preformatted(tool.description)))
        ]
        yield tag("details", tag("summary", text(f"{len(body.tools)} tools")), tag("dl", *rows))
    held = msgspec.to_builtins(body)
    rest = {key: held[key] for key in ("settings", "budget", "strategy", "input_limit") if held.get(key)}
    if rest:
        yield data("Settings", rest)


def _redacted(record: Record) -> list[Markup]:
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(record.redacted.items()))
    return [tag("span", text(f"secrets replaced: {kinds}", one_line=True), class_="badge")] if kinds else []
