"""The records of a session as HTML, as a talk: what was said in full, calls on one line, decisions as bands.

Each record is one element with the id `r` and its number. What is no part of the talk (usage, the beginnings and ends
of tools, notes) is there as well, behind the page's switch for log records.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from .._platform.times import clock, day
from .._platform.units import lasted
from ..log.records import Approval, Decision, MessageBody, Record
from ..log.store import Problem, Store
from ..summarize.failures import Failure, is_harmless
from ..summarize.reading import failure_in
from ..view.decisions import active_decisions
from ..view.tool_calls import CallInfo
from ..view.turns import TurnInfo
from ..workspace.diff import net_changes
from .changes import changed_file, changed_files, changes_between, root_for
from .description import Badge, Description, RecordBadges, describe, describe_part
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways
from .parts import PartWriter, outcome_badge, sized
from .prose import prose
from .request_words import undoing
from .talk import Talk, TalkItem
from .wording import in_short

_GIST = 120
_ITEMS = 25
"""A server sends this many parts of a record, such as calls; the page of the record has the others."""
_SHOWN = 0.05
"""Seconds; how long shorter calls took is not shown."""
_LINES = 200
"""A server sends this many lines of the diff of a call."""


class ConversationWriter:
    """Writes the records of a talk. `problems` gets a line for each image that cannot be read."""

    def __init__(self, store: Store, talk: Talk, ways: Ways, problems: list[Problem]) -> None:
        self._store, self._talk, self._ways = store, talk, ways
        self._id = talk.info.id
        self._parts = PartWriter(store, self._id, ways, problems)
        decisions = [r for r in store.of_kinds(self._id, ("decision",)) if r.n <= talk.info.records]
        self._standing = RecordBadges(decisions, talk.info.records)
        self._undo = undoing(self._id, active_decisions(decisions))
        self._root = root_for(store, self._id)
        self._most = _LINES if ways.is_served else None

    def records(self, first: int, last: int) -> Iterator[tuple[int, Markup]]:
        """The records with these numbers and their elements. What cannot be read is named in their place."""
        due = first
        for record in self._talk.records:
            if first <= record.n <= last:
                yield from self._damaged(due, record.n - 1)
                yield record.n, self.record(record)
                due = record.n + 1
        yield from self._damaged(due, last)

    def _damaged(self, first: int, last: int) -> Iterator[tuple[int, Markup]]:
        if first <= last:  # numbers have no gaps in a log
            those = f"record {first} is" if first == last else f"records {first} to {last} are"
            words = f"{those} damaged and cannot be read; turnlog salvage {shlex.quote(self._id)} NEW copies the others"
            yield last, tag("div", tag("p", text(words, one_line=True), class_="mark bad"), id=f"r{last}", class_="rec")

    def record(self, record: Record) -> Markup:
        """The element of a record."""
        n, told = record.n, describe(record, self._standing)
        items = list(self._talk.content_of(record))
        inside = [*self._heading(n), *map(self._mark, self._talk.edge_at(n))]
        if isinstance(record.body, Decision):
            inside.append(self._band(told, record.body))
        elif isinstance(record.body, MessageBody):
            inside += self._said(told, items, record)
        elif items:
            inside += [*map(self._mark, items[:-1]), self._mark(items[-1], told)]
        elif isinstance(record.body, Approval):
            inside.append(self._line(self._remark(told), [], told, "mark"))
        else:
            inside.append(self._log_record(told))
        if turn := self._talk.turn_to(n):
            inside += self._ending(turn)
        return tag("div", *inside, id=f"r{n}", class_="rec gone" if told.is_hidden else "rec")

    # -- turns -------------------------------------------------------------------------------------

    def _heading(self, n: int) -> Iterator[Markup]:
        if number := self._talk.turn_from(n):
            words = text(self._talk.heading(number), one_line=True)
            name = f"turn-{number}" if self._talk.counts else None
            yield tag("h2", tag("a", words, href=self._ways.session(self._id, n)), id=name)

    def _ending(self, turn: TurnInfo) -> Iterator[Markup]:
        """What a turn changed, and how it ended."""
        changes = changes_between(self._store, self._id, turn.first, turn.last)
        yield from changed_files(self._store, changes, self._root, most=self._most)
        standing, _, reason = turn.standing.partition(": ")
        good = "ok" if turn.status == "completed" else "bad" if standing in ("failed", "cancelled") else "warn"
        status = tag("span", text(standing.replace("_", " "), one_line=True), class_=f"badge {good}")
        words = [reason, lasted(turn.seconds), in_short(turn.bills) if turn.bills else ""]
        pieces = [status, text(" "), text(" · ".join(filter(None, words)), one_line=True)]
        if turn.rewound:
            pieces += [text(" taken back by "), self._parts.link(turn.rewound)]
        yield tag("footer", *pieces)

    # -- what was said -----------------------------------------------------------------------------

    def _said(self, told: Description, items: list[TalkItem], record: Record) -> Iterator[Markup]:
        """A message: its texts, its calls with their results, whatever else it has."""
        if not items:  # results, which stand with their calls; for who follows a link
            yield self._line([text("results, with their calls")], [], told, "event log")
            return
        speaks, is_first = any(item.kind in ("user", "assistant") for item in items), True
        most = _ITEMS if self._ways.is_served else len(items)
        for item in items[:most]:
            if item.kind in ("user", "assistant"):
                yield self._words(item, told, headed=is_first)
                is_first = False
            elif item.kind == "call":
                yield from self._call(item, record)
            elif item.kind == "mark":
                yield self._mark(item)
            else:
                yield self._folded(item)
        if more := items[most:]:
            words = text(f"{len(more):,} more parts of record {told.n}")
            yield tag("p", tag("a", words, href=self._ways.part(self._id, "r", told.n)), class_="rest")
        if not speaks:
            yield self._line([text(told.kind)], [], told, "event log")

    def _words(self, item: TalkItem, told: Description, *, headed: bool) -> Markup:
        name = "You" if item.kind == "user" else self._talk.speaker
        model = [tag("span", *self._parts.linked(told.headline), class_="more")] if any(told.headline) else []
        header = tag("header", *self._number(told), tag("b", text(name)), *model, *self._marks(told))
        inside = self._parts.prose(item.text, item.n)
        return tag("article", *([header] if headed else []), inside, class_=item.kind)

    def _folded(self, item: TalkItem) -> Markup:
        """Reasoning, or what a program wrote: one line, behind which the text is."""
        name = "Reasoning" if item.kind == "reasoning" else f"Text of the {item.label}"
        gist = tag("span", text(" ".join(item.text[: 9 * _GIST].split())[:_GIST], one_line=True), class_="gist")
        inside = prose(item.text) if item.kind == "reasoning" and not self._ways.is_served else None
        inside = inside or self._parts.plain(item.text, item.n)
        return tag("details", tag("summary", sized(name, item.text), gist), inside, class_=item.kind)

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, item: TalkItem, record: Record) -> Iterator[Markup]:
        """A call on one line, with its outcome and what it changed; behind it its arguments and its result."""
        info, answer = item.info, self._talk.result_of(item.info) if item.info else None
        assert info is not None
        failure = None if answer is None else failure_in(answer[1])
        failure = None if failure and is_harmless(info.call, failure) else failure
        about = [text(" "), tag("code", text(" ".join(item.text.split())[:_GIST], one_line=True))] if item.text else []
        head = [tag("b", text(item.label, one_line=True)), *about, text(" "), *self._ended(info, failure)]
        for file in item.files:
            words = file.change if item.text.endswith(file.path) else f"{file.path} {file.change}"
            head += [text(f" {words}", one_line=True)]
        standing = self._standing.badges(answer[0] if answer else record)
        head += [tag("span", text(badge.whole), class_="badge warn", title=badge.title) for badge in standing]
        if item.outcome == "ok" and failure:
            head.append(tag("span", text(failure.said, one_line=True), class_="gist"))
        elif item.outcome != "ok" and item.folded.strip():
            line = ": ".join([line.strip() for line in item.folded.splitlines() if line.strip()][:2])
            head.append(tag("span", text(line[: 2 * _GIST], one_line=True), class_="gist"))
        yield start("details", class_="call")
        yield tag("summary", *head)
        yield from map(self._badge, standing)
        if info.call.kind != "function":
            yield tag("p", tag("span", text(info.call.kind, one_line=True), class_="badge"))
        yield from self._parts.arguments(info.call, item.n)
        for change in net_changes(self._talk.changes_at(item.n), root=self._root):
            if any(change.path.endswith(file.path) or file.path.endswith(change.path) for file in item.files):
                yield tag("div", *changed_file(change, self._store, self._most), class_="files")
        pictures: list[Markup] = []
        if answer is not None:
            record, result = answer
            blocks = [*map(describe_part, result.parts)]
            pieces = self._parts.result(result, blocks, record.n, info)
            shown = list(pieces)
            closed = shown.index(end("details")) + 1 if end("details") in shown else len(shown)
            yield join(shown[:closed])
            pictures = shown[closed:]
        elif info.reason:
            yield tag("p", text(info.reason))
        yield end("details")
        yield from pictures  # an image is shown, not folded

    def _ended(self, info: CallInfo, failure: Failure | None) -> Iterator[Markup]:
        if info.outcome is not None:
            yield outcome_badge(failure.status if failure and info.outcome == "ok" else info.outcome)
        if info.seconds and info.seconds >= _SHOWN:
            yield tag("span", text(f" after {info.seconds:,.1f} s"), class_="small")
        if not info.result:
            yield tag("span", text(info.standing), class_="badge warn")

    # -- marks and log records ---------------------------------------------------------------------

    def _mark(self, item: TalkItem, told: Description | None = None) -> Markup:
        """A remark in one line on what happened, with what stands behind it."""
        if item.part is not None:
            return join([*self._parts.blocks([describe_part(item.part)], item.n)])
        blocks = [*self._parts.blocks(told.blocks, item.n)] if told else []
        if not blocks and item.folded:
            blocks = [self._parts.plain(item.folded, item.n)]
        return self._line([text(item.text, one_line=True)], blocks, told, "mark")

    def _band(self, told: Description, decision: Decision) -> Markup:
        """A decision: what it did on one line; behind it why, what requests show instead, and how to undo it."""
        facts = [("".join(map(str, told.headline))), *("".join(map(str, block.words)) for block in told.blocks)]
        moved = decision.detail.get("changes_from")
        facts += [f"the prompt cache holds up to record {moved}"] if isinstance(moved, int) else []
        line = [tag("b", text("Decision ")), text(" · ".join(filter(None, facts)), one_line=True)]
        inside = [tag("p", *self._parts.linked(told.headline), class_="small")]
        inside += self._parts.blocks(told.blocks, told.n)
        if command := self._undo.get(told.n):
            undo = tag("code", text(command, one_line=True))
            inside.append(tag("p", text("to take it back: "), undo, class_="small"))
        return self._line(line, inside, told, "band")

    def _log_record(self, told: Description) -> Markup:
        """A record that is no part of the talk: one line, behind which its content is, if it has more."""
        return self._line(self._remark(told), [*self._parts.blocks(told.blocks, told.n)], told, "event log")

    def _remark(self, told: Description) -> list[Markup]:
        return [tag("b", text(f"{told.kind} ", one_line=True)), text("".join(map(str, told.headline)), one_line=True)]

    def _line(self, line: list[Markup], blocks: list[Markup], told: Description | None, kind: str) -> Markup:
        """A record, or a remark, on one line. Its links stand beside what unfolds, where a keyboard finds them."""
        number, marks = (self._number(told), self._marks(told)) if told else ([], [])
        inside = tag("details", tag("summary", *line), *blocks) if blocks else tag("span", *line)
        return tag("div", *number, inside, *marks, class_=f"line {kind}")

    def _number(self, told: Description) -> list[Markup]:
        return [tag("a", text(str(told.n)), href=self._ways.session(self._id, told.n), class_="n")]

    def _marks(self, told: Description) -> list[Markup]:
        """The badges of a record, and its time."""
        marks = list(map(self._badge, told.badges))
        if told.redacted:
            marks.append(tag("span", text(f"secrets replaced: {told.redacted}", one_line=True), class_="badge"))
        shown = " ".join(filter(None, (day(told.time), clock(told.time))))
        return [*marks, tag("time", text(shown or told.time, one_line=True), datetime=told.time or None)]

    def _badge(self, badge: Badge) -> Markup:
        words = (badge.words, " ", badge.link) if badge.link else (badge.words,)
        return tag("span", *self._parts.linked(words), class_="badge warn", title=badge.title or None)
