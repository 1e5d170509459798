"""The page of a session: its prompts, its talk, and beside it what fills the window.

A server sends windows of records, so that a session of any length is quick. A file has the whole session, without
other files and scripts: pages of 500 records, of which CSS shows one, and a switch for what is no part of the talk.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from .._platform.times import clock, day
from .._platform.units import counted
from ..errors import InputError
from ..log.messages import media_parts, text_of
from ..log.store import Problem, SessionInfo, Store
from ..memory import Memory
from ..memory.fold import KINDS
from ..redaction.store import as_kept
from ..session.titles import shown_title
from ..stores.billing import with_subagents
from ..stores.labels import facts_of
from ..stores.subagents import descendants
from ..summarize.failures import REFUSED
from ..view.file_edits import about_call
from ..view.program_prefaces import request_in
from ..view.turns import turn_spans
from .conversation import ConversationWriter
from .description import describe
from .escapes import Markup, end, start, tag, text
from .frame import Ways, foot, framed, head, opening
from .parts import PartWriter
from .talk import Talk
from .wording import in_short

_PAGE = 500
"""Records on a page of a file."""

_WINDOW = 100
"""The most records that a server sends at once."""

_NODES = 450
"""About how many elements a window has at most: two windows, the prompts and the rest are 2,000."""

_WHOLE = 1_000
"""A session of so many records is read whole for a window, which gives its turns their numbers and costs."""

_PROMPTS = 100
"""How many prompts before and after the record that is shown the list of prompts has."""

_BILLED = 20_000
"""Of a longer session, what it cost and which calls failed is not on its page: that takes too long."""

_WIDTH = 120
"""Characters of a prompt or a call in a list."""

_BEGINNING = 60
"""How many of the first records are searched for an image, which a path begins with."""

# -- a session as a file ---------------------------------------------------------------------------


def as_html(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """Every record of the session, turn by turn, with the file changes of each turn.

    Raises SessionNotFound, CorruptRecord. Media that cannot be read are named, and each is a problem. Memory does not
    grow with long texts: of all records except those of the page being written, only outlines are kept.
    """
    return (piece.encode("utf-8") for piece in whole_page(as_kept(store), session_id, Ways(), problems))


def whole_page(store: Store, session_id: str, ways: Ways, problems: list[Problem]) -> Iterator[Markup]:
    """As `as_html`, also for a file beside others."""
    talk = Talk(store, session_id, is_thin=True)
    info = talk.info
    yield head(_title(store, info), ways)
    yield from opening(ways)
    yield from _top(store, talk, ways)
    yield from _turns(talk, ways)
    yield start("main", id="talk")
    yield Markup('<p class="switch"><label><input type="checkbox" id="log"> log records</label></p>\n')
    pages = range(1, info.records + 1, _PAGE)
    for number, first in enumerate(pages, 1):
        if len(pages) > 1:
            yield start("section", class_="page", id=f"page-{number}")
            yield _page_links(number, pages, info.records)
        last = min(first + _PAGE - 1, info.records)
        window = Talk(store, info.id, first, last, turns=talk.turns)
        for _, element in ConversationWriter(store, window, ways, problems).records(first, last):
            yield element
            yield Markup("\n")
        if len(pages) > 1:
            yield _page_links(number, pages, info.records)
            yield end("section")
    yield end("main")
    yield foot()


def _page_links(number: int, pages: Sequence[int], last: int) -> Markup:
    links: list[Markup] = []
    for other, first in enumerate(pages, 1):
        words = f"{first:,} to {min(first + _PAGE - 1, last):,}"
        links.append(tag("a", text(words), href=f"#page-{other}", aria_current="page" if other == number else None))
        links.append(text(" "))
    return tag("nav", text("Records "), *links, class_="pagelinks", aria_label="Records")


def _top(store: Store, talk: Talk, ways: Ways) -> Iterator[Markup]:
    """The header of a file: facts, cost, and where the session stands among others."""
    info = talk.info
    lines = [tag("p", text(" · ".join(talk.facts(files=True)), one_line=True))]
    figures = f": {info.records:,} records, {info.messages:,} messages, {info.created} to {info.updated}"
    lines.append(tag("p", text("Session "), tag("code", text(info.id)), text(figures, one_line=True)))
    if info.parent:
        lines.append(tag("p", *_parent(info, ways)))
    lines += _bills(store, info)
    if ways.form == "site":
        lines.append(_links(store, info, ways))
    yield tag("header", tag("h1", text(_title(store, info), one_line=True), dir="auto"), *lines, class_="top")


def _bills(store: Store, info: SessionInfo) -> Iterator[Markup]:
    """What a session cost, and with its subagents."""
    if own := store.usage(info.id):
        yield tag("p", text(in_short(own), one_line=True))
    bills, many = with_subagents(store, info.id)
    if many:
        yield tag("p", text(f"With {counted(many, 'subagent')}: {in_short(bills)}", one_line=True))


def _title(store: Store, info: SessionInfo) -> str:
    """What a session is called, here as in the list."""
    return shown_title(store, info) or info.id


def _parent(info: SessionInfo, ways: Ways) -> list[Markup]:
    name = tag("code", text(info.parent))
    linked = name if ways.form == "single" else tag("a", name, href=ways.session(info.parent))
    shared = f", whose first {info.parent_records:,} records it shares" if info.parent_records else ""
    return [text("Belongs to "), linked, text(shared)]


def _turns(talk: Talk, ways: Ways) -> Iterator[Markup]:
    if len(talk.turns) < 2:
        return
    yield start("nav", class_="turns", aria_label="Turns")
    yield start("details")
    yield tag("summary", text("Turns"))
    yield start("ol")
    for turn in talk.turns:
        words = " ".join(turn.input.split()) or "(no text)"
        yield tag("li", tag("a", text(words, one_line=True), href=ways.session(talk.info.id, turn.first), dir="auto"))
    yield Markup("</ol></details></nav>\n")


# -- a session at a server -------------------------------------------------------------------------


def session_page(store: Store, session_id: str, ways: Ways, at: int = 0) -> Iterator[Markup]:
    """The page of a session, with the window of records around number `at`. Raises SessionNotFound, CorruptRecord."""
    info = store.info(session_id)
    at = min(max(at, 0), info.records)
    first = max(1, at - 8)
    yield head(_title(store, info), ways)
    yield from opening(ways)
    yield from _served_top(store, info, ways)
    yield start("div", class_="columns")
    rail = ways.part(info.id, "rail", at=str(at))
    yield tag("nav", tag("p", text("Prompts"), class_="small"), class_="rail", data_load=rail, aria_label="Prompts")
    yield start("main")
    yield Markup('<p class="switch"><label><input type="checkbox" id="log"> log records</label></p>\n')
    shown = _window(store, info, ways, first)
    last = shown[-1][0] if shown else info.records
    yield from _more("earlier", ways.session(info.id, max(1, first - 1)), wanted=first > 1)
    live = ways.part(info.id, "live")
    yield start(
        "div", id="talk", data_session=info.id, data_first=str(first), data_last=str(last), data_end=str(info.records),
        data_live=live, data_more=ways.part(info.id, "talk"),
    )  # fmt: skip
    yield from (element for _, element in shown)
    yield end("div")
    yield from _more("later", ways.session(info.id, last + 1), wanted=last < info.records)
    yield end("main")
    yield tag("aside", tag("p", text("What fills the window"), class_="small"), data_load=ways.part(info.id, "window"))
    yield end("div")
    yield foot()


def _more(which: str, href: str, *, wanted: bool) -> Iterator[Markup]:
    yield tag("p", tag("a", text(f"{which.title()} records"), href=href, class_=which, hidden=None if wanted else ""))


def window(store: Store, session_id: str, ways: Ways, *, first: int = 0, before: int = 0) -> Iterator[Markup]:
    """The records from number `first` on, or those up to `before`, as far as they go on one screen. Raises as
    `session_page`."""
    info = store.info(session_id)
    if before:
        shown = _window(store, info, ways, max(1, before - _WINDOW), before - 1, from_end=True)
    else:
        shown = _window(store, info, ways, max(1, first))
    numbers = [n for n, _ in shown] or [first or before]
    yield start("div", data_first=str(numbers[0]), data_last=str(numbers[-1]), data_end=str(info.records))
    yield from (element for _, element in shown)
    yield end("div")


def _window(
    store: Store, info: SessionInfo, ways: Ways, first: int, last: int = 0, *, from_end: bool = False
) -> list[tuple[int, Markup]]:
    """Records as elements, as many as a browser scrolls through easily."""
    last = min(last or first + _WINDOW - 1, info.records)
    talk = Talk(store, info.id) if info.records <= _WHOLE else Talk(store, info.id, first, last)
    shown = list(ConversationWriter(store, talk, ways, []).records(first, last))
    if from_end:
        shown.reverse()
    nodes, kept = 0, 0
    for _, element in shown:
        nodes += element.count("<") - element.count("</")
        if nodes > _NODES and kept:
            break
        kept += 1
    return sorted(shown[:kept], key=lambda pair: pair[0])


def news(store: Store, session_id: str, ways: Ways, after: int) -> tuple[int, list[Markup]]:
    """The number of the last record, and the elements that are new or have changed since record `after` was the last:
    new records, the calls that they answer, and the record after which a turn seemed to end."""
    info = store.info(session_id)
    if info.records <= after:
        return info.records, []
    talk = Talk(store, info.id, after + 1, info.records)
    changed = {record.n for record in talk.records if record.n >= after} | set(talk.answered_since(after))
    writer = ConversationWriter(store, talk, ways, [])
    return info.records, [writer.record(record) for record in talk.records if record.n in changed]


def record_page(store: Store, session_id: str, n: int, ways: Ways) -> Iterator[Markup]:
    """One record, with all of its texts. Raises as `session_page`; InputError if it cannot be read."""
    info = store.info(session_id)
    record = next(iter(store.read(info.id, first=n, last=n)), None) if 1 <= n <= info.records else None
    if record is None:
        raise InputError(f"record {n} of session {info.id!r} is damaged, or there is none")
    told, title = describe(record), _title(store, info)
    inside = [
        tag("h1", text(f"Record {n} of "), tag("a", text(title, one_line=True), href=ways.session(info.id, n))),
        tag("p", text(" ".join(map(str, (told.kind, *told.headline, told.time))), one_line=True), class_="small"),
    ]
    blocks = PartWriter(store, info.id, ways, [], is_cut=False).blocks(told.blocks, n)
    return framed(f"Record {n} · {title}", ways, chain(inside, blocks))


def _served_top(store: Store, info: SessionInfo, ways: Ways) -> Iterator[Markup]:
    """The header: who worked when and where, what else there is of the session, and commands to copy."""
    facts = facts_of(store, info.id)
    times = [f"{day(time)} {clock(time)}" for time in (info.created, info.updated)]
    told = [facts.agent, facts.folder, " to ".join(dict.fromkeys(times)), counted(info.records, "record")]
    lines = [tag("p", text(" · ".join(filter(None, told)), one_line=True))]
    lines += _bills(store, info) if info.records <= _BILLED else ()
    if info.parent:
        lines.append(tag("p", *_parent(info, ways)))
    lines.append(_links(store, info, ways))
    commands = [tag("button", text(words), type="button", data_copy=command, title=command) for words, command in
                _commands(info, facts.agent, facts.folder)]  # fmt: skip
    markdown = ways.part(info.id, "markdown")
    commands.append(tag("button", text("Copy as Markdown"), type="button", data_copy_from=markdown))
    lines.append(tag("p", *commands, class_="actions"))
    yield tag("header", tag("h1", text(_title(store, info), one_line=True), dir="auto"), *lines, class_="top")


def _links(store: Store, info: SessionInfo, ways: Ways) -> Markup:
    names = {"requests": "What the model saw", "changes": "Files"}
    names |= {"trajectory": "Path through images"} if shows_images(store, info.id) else {}
    links = [tag("a", text(words), href=ways.part(info.id, name)) for name, words in names.items()]
    for each in descendants(store.sessions(), info.id)[:40]:
        links.append(tag("a", text(f"subagent: {each.title or each.id}", one_line=True), href=ways.session(each.id)))
    return tag("nav", *links, class_="views", aria_label="Of this session")


def shows_images(store: Store, session_id: str) -> bool:
    """Whether a session begins with images, as those do that move through them."""
    begins = islice(store.read(session_id), _BEGINNING)
    seen = (media for record in begins if record.message is not None for media in media_parts(record.message))
    return any(media.kind == "image" for media in seen)


_GO_ON = {"claude-code": "claude --resume", "codex": "codex resume", "gemini-cli": "gemini --resume"}


def _commands(info: SessionInfo, agent: str, folder: str) -> Iterator[tuple[str, str]]:
    """What goes on with a session, in a shell: names and commands."""
    session = shlex.quote(info.id)
    if agent in _GO_ON and not info.parent:
        place = f"cd {shlex.quote(folder)} && " if folder else ""
        yield f"Copy: go on in {agent}", f"{place}{_GO_ON[agent]} {session}"
    yield "Copy: go on in a chat", f"turnlog chat --session {session}"
    other = "codex" if agent == "claude-code" else "claude"
    yield f"Copy: hand over to {other}", f"turnlog handoff {session} --to {other}"


# -- the prompts -----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _prompts(store: Any, session_id: str, records: int) -> tuple[int, ...]:
    """The first record of each turn."""
    kinds = ("message", "turn_opened", "turn_closed", "turn_resumed")
    return tuple(first for first, _ in turn_spans(store.of_kinds(session_id, kinds), records))


def rail(store: Store, session_id: str, ways: Ways, at: int = 0) -> Iterator[Markup]:
    """The user's prompts around record `at`, and the calls that failed, as links. Raises as `session_page`."""
    info = store.info(session_id)
    kept: Any = store
    starts = _prompts(kept, info.id, info.records)
    here = max(0, bisect_right(starts, at) - 1)
    begin, past = max(0, here - _PROMPTS), min(len(starts), here + _PROMPTS)
    yield tag("p", text(counted(len(starts), "prompt")), class_="small")
    if begin:
        yield tag("p", tag("a", text(f"{begin:,} earlier"), href=ways.session(info.id, starts[begin - 1])))
    yield start("ol", start=str(begin + 1))
    for n in starts[begin:past]:
        current = "true" if n == starts[here] and at else None
        words = _prompt(store, info.id, n) or "(no text)"
        link = tag("a", text(words, one_line=True), href=ways.session(info.id, n), data_n=str(n), aria_current=current)
        yield tag("li", link, dir="auto")
    yield end("ol")
    if past < len(starts):
        yield tag("p", tag("a", text(f"{len(starts) - past:,} later"), href=ways.session(info.id, starts[past])))
    if info.records <= _BILLED:
        yield from _failed(store, info, ways)


def _failed(store: Store, info: SessionInfo, ways: Ways) -> Iterator[Markup]:
    """The calls that failed, as `turnlog errors` has them, as links."""
    calls = Memory.of(list(store.of_kinds(info.id, KINDS))).failed_calls
    failed = [one for one in calls if one.fixed or not (one.outcome == "canceled" or one.said.startswith(REFUSED))]
    if not failed:
        return
    yield tag("p", text(counted(len(failed), "failed call")), class_="small")
    yield start("ol")
    for call in failed[-_PROMPTS:]:
        fate = f"fixed at {call.fixed}" if call.fixed else ""
        words = " · ".join(filter(None, (f"{call.call.name} {about_call(call.call)[0]}"[:_WIDTH], fate)))
        yield tag("li", tag("a", text(words, one_line=True), href=ways.session(info.id, call.record)), dir="auto")
    yield end("ol")


def _prompt(store: Store, session_id: str, n: int) -> str:
    """The words that began a turn with record `n`."""
    for record in islice(store.read(session_id, first=n, last=n + 4), 4):
        if record.message is not None and record.message.role == "user":
            return " ".join(request_in(text_of(record.message))[1][:400].split())[:_WIDTH]
    return ""
