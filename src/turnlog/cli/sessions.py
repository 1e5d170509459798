"""Whole sessions: `ls`, `fork`, `rename`, `rm`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from .._platform.times import TIMES, ago, day, since
from .._platform.units import counted, size_text
from .._platform.visible import visible
from ..config.settings import SOURCES
from ..display.listing import is_in_folder, title_among
from ..display.wording import at_least
from ..errors import CorruptRecord, SessionNotFound
from ..log.bills import Bills, added, total_usage
from ..log.store import SessionFacts, SessionInfo, Store
from ..models.pricing import dollars, total_cost
from ..session.reader import source_of, was_resumed
from ..session.titles import shown_title
from ..stores import PastDamage
from ..stores.ids import Family, families, new_id, short_ids
from ..stores.labels import OF_TRANSPORT, facts_of
from ..stores.leases import unowned
from ..stores.subagents import with_agents
from .arguments import AN_ID, add_command, add_labels, checked, filled, number
from .costs import bill_json
from .drawing import path_tail
from .stores import is_missing, is_writable, opened, place, settings_of
from .tables import Column, laid_out, terminal_width
from .terminal import agreed, out_json, out_line, out_lines, paged, say

_ROWS = 20
"""How many rows are shown unless -n or --all says otherwise."""

_FOLDER = 16
"""Columns of a folder on a terminal."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    ls = add_command(commands, store, "ls")
    ls.add_argument("-n", metavar="N", type=number("rows", 1), help=f"at most N rows (default: {_ROWS})")
    ls.add_argument("--all", action="store_true", help="all sessions, also subagents and forks")
    text = f"only sessions that changed since {TIMES.removeprefix('a time: ')}"
    ls.add_argument("--since", metavar="TIME", type=checked(since, TIMES), help=text)
    text = "only sessions of this agent program: the beginning of its name, such as claude"
    ls.add_argument("--agent", metavar="NAME", type=filled, help=text)
    text = "only sessions that worked in this folder or below it, or in one whose name begins so; . is this one"
    ls.add_argument("--folder", metavar="PATH", type=filled, help=text)
    ls.add_argument("--cost", action="store_true", help="add tokens and cost")
    text = "only sessions that were first opened with this `source`, or (resumed) opened again"
    ls.add_argument("--source", choices=(*SOURCES, "resumed"), help=text)
    add_labels(ls)
    ls.add_argument("--json", action="store_true", help="one JSON object a line")
    ls.set_defaults(run=_ls)
    fork = add_command(commands, store, "fork")
    fork.add_argument("id", metavar="ID", help=AN_ID)
    fork.add_argument("new", metavar="NEW", help="the id of the new session")
    fork.add_argument("--at", metavar="N", type=int, help="take the records up to this number (default: all)")
    fork.set_defaults(run=_fork)
    rename = add_command(commands, store, "rename")
    rename.add_argument("id", metavar="ID", help=AN_ID)
    rename.add_argument("title", metavar="TITLE", help="the new title")
    rename.set_defaults(run=_rename)
    rm = add_command(commands, store, "rm")
    rm.add_argument("ids", metavar="ID", nargs="+", help="the ids of the sessions")
    rm.add_argument("--yes", action="store_true", help="do not ask")
    rm.set_defaults(run=_rm)


def _ls(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"no sessions yet: there is no store at {place(arguments)}; `turnlog import FILE` makes it")
        return 0
    # By agent and folder, sessions are found in the index of labels, which is brought up to date if the store allows.
    indexed = bool(arguments.agent or arguments.folder)
    with opened(arguments, write=indexed and is_writable(arguments), past_damage=True) as store:
        rows = _chosen(store, arguments)
        bills = store.usages() if arguments.cost else None
        shown = rows[: arguments.n or (None if arguments.all or arguments.json else _ROWS)]
        facts = _facts(store, shown)
        shown = [row for row in shown if row.info.id in facts]
        if arguments.json:
            for row in shown:
                _as_json(store, row.info, facts[row.info.id], bills)
            return 0
        if not shown:
            say(_nothing(arguments))
            return 0
        short = short_ids([row.info.id for row in shown], store.sessions()) if terminal_width() else {}
        titles = {row.info.id: title_among(store, (row.info, *row.folded)) for row in shown}
        with paged():
            out_lines(_table(shown, titles, facts, bills, short, arguments))
            if bills is not None:
                out_line(_sum(rows, bills))
    if bills is None or len(shown) < len(rows):
        _tell(rows, shown, short)
    return 0


def _chosen(store: Store, arguments: Namespace) -> list[Family]:
    """The rows that the options ask for."""
    infos = store.sessions(where=dict(arguments.label))
    if arguments.source:
        infos = [info for info in infos if _has_source(store, info.id, arguments.source)]
    rows = [Family(info) for info in infos] if arguments.all or arguments.json else families(infos)
    rows = [row for row in rows if row.updated >= (arguments.since or "")]
    if not (arguments.agent or arguments.folder):
        return rows
    facts = store.facts()
    return [row for row in rows if row.info.id in facts and _is_wanted(facts[row.info.id], arguments)]


def _facts(store: Store, rows: Sequence[Family]) -> dict[str, SessionFacts]:
    """The facts of the sessions of these rows, without sessions that are deleted just now."""
    if len(rows) > _ROWS:
        facts = store.facts()
        rows = [row for row in rows if row.info.id not in facts]  # whose notes are damaged, which reading reports
    else:
        facts = {}
    kept = store.store if isinstance(store, PastDamage) else store
    for row in rows:
        with suppress(SessionNotFound):
            try:
                facts[row.info.id] = facts_of(kept, row.info.id)
            except CorruptRecord:
                facts[row.info.id] = SessionFacts()
    return facts


def _has_source(store: Store, session_id: str, source: str) -> bool:
    with suppress(SessionNotFound):  # it is deleted just now
        return was_resumed(store, session_id) if source == "resumed" else source_of(store, session_id) == source
    return False


def _is_wanted(facts: SessionFacts, arguments: Namespace) -> bool:
    """Whether a session is of the agent and the folder that were asked for."""
    return facts.is_of(arguments.agent or "") and (not arguments.folder or is_in_folder(facts.folder, arguments.folder))


def _nothing(arguments: Namespace) -> str:
    """Why no session is listed."""
    if arguments.label:
        return "no session has this label" if len(arguments.label) == 1 else "no session has these labels"
    if arguments.source:
        return f"no session is on record as {arguments.source}"
    asked = [f"--{name} {value}" for name in ("agent", "folder") if (value := getattr(arguments, name))]
    asked += [f"--since {day(arguments.since)}"] if arguments.since else []
    return f"no session fits {' '.join(asked)}; `turnlog ls` lists all" if asked else "no sessions yet"


def _as_json(store: Store, info: SessionInfo, facts: SessionFacts, bills: dict[str, Bills] | None) -> None:
    about: dict[str, Any] = {"source": "", "agent": facts.agent, "folder": facts.folder}
    with suppress(SessionNotFound):  # it is deleted just now
        about["source"] = source_of(store, info.id)
    about |= {"labels": dict(facts.labels)} if facts.labels else {}
    out_json(msgspec.to_builtins(info) | about | ({} if bills is None else bill_json(bills.get(info.id, {}))))


def _table(
    rows: Sequence[Family],
    titles: dict[str, str],
    facts: dict[str, SessionFacts],
    bills: dict[str, Bills] | None,
    short: dict[str, str],
    arguments: Namespace,
) -> Iterator[str]:
    """The rows as a table: short and relative on a terminal, in a pipe whole ids, times and folders."""
    known = [facts[row.info.id] for row in rows]
    folders = [path_tail(each.folder, _FOLDER) if short else each.folder for each in known]
    columns = [
        Column("ID", [short.get(row.info.id, row.info.id) for row in rows]),
        Column("WHEN", [ago(row.updated) if short else row.updated for row in rows]),
        Column("AGENT", [each.agent.removesuffix("-code").removesuffix("-cli") or "-" for each in known], may_go=True),
    ]
    if bills is None:
        columns.append(Column("FOLDER", [folder or "-" for folder in folders], may_go=True))
        columns.append(Column("MSG", [f"{row.info.messages}" for row in rows], side=">", may_go=True))
    else:
        cells = [_figures(row, bills, short=bool(short)) for row in rows]
        tokens, costs = zip(*cells, strict=True)
        columns += [Column("TOKENS", tokens, side=">"), Column("COST", costs, side=">")]
    if arguments.label:
        columns.append(Column("LABELS", [_labels(each.labels) for each in known]))
    if any(row.folded for row in rows):
        columns.append(Column("+", [f"+{len(row.folded)}" if row.folded else "" for row in rows], side=">"))
    return laid_out(columns, "TITLE", [visible(titles[row.info.id], one_line=True) for row in rows])


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels.items() if not name.startswith(OF_TRANSPORT))


def _figures(row: Family, bills: dict[str, Bills], *, short: bool) -> tuple[str, str]:
    """Tokens and cost of a session and what is folded under it."""
    held = [bills[info.id] for info in (row.info, *row.folded) if info.id in bills]
    if not held:
        return "-", "-"
    bill = added(held)
    usage = total_usage(bill)
    tokens = usage.input + usage.output
    if short:
        return at_least(usage, tokens, short=True), dollars(total_cost(bill), digits=2)
    return at_least(usage, tokens), dollars(total_cost(bill))


def _sum(rows: Sequence[Family], bills: dict[str, Bills]) -> str:
    """What all rows cost together, also those that are not shown."""
    others = tuple(info for row in rows for info in (row.info, *row.folded))
    everything = Family(SessionInfo("", "", "", "", 0, 0), others)
    tokens, cost = _figures(everything, bills, short=True)
    doubt = "  > a price or output is missing" if cost.startswith(">") else ""
    return f"{counted(len(rows), 'session')}: {tokens} tokens, {cost}{doubt}"


def _tell(rows: Sequence[Family], shown: Sequence[Family], short: dict[str, str]) -> None:
    """Say how many sessions are not seen, and on a terminal what one can do next."""
    folded = sum(len(row.folded) for row in rows)
    more = f" ({folded:,} more folded)" if folded else ""
    if len(rows) > len(shown) or folded or short:
        steps = f"turnlog show {short[shown[0].info.id]} · ls --all" if short else "turnlog ls --all lists all"
        say(f"{len(shown)} of {counted(len(rows), 'session')}{more}.  {steps}")


def _fork(arguments: Namespace) -> int:
    with opened(arguments, write=True) as store:
        title = store.info(arguments.id).title
        info = store.fork(arguments.id, new_id(arguments.new), at=arguments.at, title=title)
    say(f"session {info.id} begins with {counted(info.records, 'record')} of {info.parent}")
    return 0


def _rename(arguments: Namespace) -> int:
    redactor = settings_of(arguments).redactor
    title = arguments.title if redactor is None else redactor.text(arguments.title)[0]
    with opened(arguments, write=True) as store:
        store.rename(arguments.id, title)
    return 0


def _rm(arguments: Namespace) -> int:
    with opened(arguments, write=True) as store:
        listed = store.sessions()
        ids = [name for session_id in arguments.ids for name in with_agents(listed, store.info(session_id).id)]
        infos = [store.info(session_id) for session_id in dict.fromkeys(ids)]
        if not arguments.yes and not _agreed(store, infos):
            say("nothing deleted")
            return 0
        for info in infos:  # if one is in use, none is deleted
            with unowned(store, info.id):
                pass
        for info in infos:
            store.delete(info.id)
            say(f"deleted {info.id} ({counted(info.records, 'record')})")
        swept = store.sweep()
    if swept.removed:
        say(f"removed {counted(swept.removed, 'blob')} that no session needs ({swept.size:,} bytes)")
    if swept.recent:
        say(f"kept {counted(swept.recent, 'blob')} put less than an hour ago; a later `rm` removes what nothing needs")
    return 0


def _agreed(store: Store, infos: list[SessionInfo]) -> bool:
    lines = told_apart(store, infos)
    return agreed("\n".join([*lines, "delete for good?"]), "rm", "--yes to delete without asking")


def told_apart(store: Store, infos: Sequence[SessionInfo]) -> list[str]:
    """For each session a line by which somebody who is asked knows it: id, time, size and title."""
    sizes: dict[str, int] = {}
    for piece in store.inventory().pieces:
        sizes[piece.owner] = sizes.get(piece.owner, 0) + piece.size
    return [_told_apart(store, info, sizes.get(info.id, 0)) for info in infos]


def _told_apart(store: Store, info: SessionInfo, size: int) -> str:
    title = visible(shown_title(store, info), one_line=True)
    facts = (info.id, ago(info.updated), counted(info.messages, "message"), size_text(size), title)
    return "  ".join(filter(None, facts))
