"""Whole sessions: `ls`, `fork`, `rename`, `rm`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from .._platform.units import counted
from ..config.settings import SOURCES
from ..errors import SessionNotFound
from ..export.escapes import visible
from ..export.wording import at_least, dollars
from ..importers.titles import first_words
from ..log.bills import Bills, total_usage
from ..log.store import SessionInfo, Store
from ..models.pricing import total_cost
from ..session.reader import source_of, was_resumed
from ..stores.labels import labels_of
from ..stores.leases import unowned
from .arguments import WHOLE_ID, add_command, add_labels
from .costs import bill_json
from .stores import is_missing, opened, place, settings_of
from .tables import Column, laid_out
from .terminal import agreed, out_json, out_lines, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the commands to the parser."""
    ls = add_command(commands, store, "ls")
    ls.add_argument("--cost", action="store_true", help="add tokens and cost, which takes longer")
    text = "only sessions that were first opened with this `source`, or (resumed) opened again"
    ls.add_argument("--source", choices=(*SOURCES, "resumed"), help=text)
    add_labels(ls)
    ls.add_argument("--json", action="store_true", help="one JSON object a line")
    ls.set_defaults(run=_ls)
    fork = add_command(commands, store, "fork")
    fork.add_argument("id", metavar="ID", help=WHOLE_ID)
    fork.add_argument("new", metavar="NEW", help="the id of the new session")
    fork.add_argument("--at", metavar="N", type=int, help="take the records up to this number (default: all)")
    fork.set_defaults(run=_fork)
    rename = add_command(commands, store, "rename")
    rename.add_argument("id", metavar="ID", help=WHOLE_ID)
    rename.add_argument("title", metavar="TITLE", help="the new title")
    rename.set_defaults(run=_rename)
    rm = add_command(commands, store, "rm")
    rm.add_argument("ids", metavar="ID", nargs="+", help="the whole ids of the sessions")
    rm.add_argument("--yes", action="store_true", help="do not ask")
    rm.set_defaults(run=_rm)


def _ls(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"no sessions yet: there is no store at {place(arguments)}; `turnlog import FILE` makes it")
        return 0
    with opened(arguments) as store:
        bills = store.usages() if arguments.cost else None
        infos, sources, titles, labels = [], {}, {}, {}
        for info in store.sessions(where=dict(arguments.label)):
            with suppress(SessionNotFound):  # it is deleted just now
                if _is_wanted(store, info, arguments.source):
                    sources[info.id] = source_of(store, info.id)
                    labels[info.id] = labels_of(store, info.id) if arguments.label else {}  # they were read just now
                    titles[info.id] = info.title or ("" if arguments.json else first_words(store, info.id))
                    infos.append(info)
    if arguments.json:
        for info in infos:
            billed = {} if bills is None else bill_json(bills.get(info.id, {}))
            named = {"labels": labels[info.id]} if labels[info.id] else {}
            out_json(msgspec.to_builtins(info) | {"source": sources[info.id]} | named | billed)
    elif infos:
        label_texts = [", ".join(f"{name}={value}" for name, value in labels[info.id].items()) for info in infos]
        out_lines(_table(infos, titles, sources, bills, label_texts))
    elif arguments.label:
        say("no session has this label" if len(arguments.label) == 1 else "no session has these labels")
    else:
        say("no sessions yet" if not arguments.source else f"no session is on record as {arguments.source}")
    return 0


def _is_wanted(store: Store, info: SessionInfo, source: str | None) -> bool:
    if source == "resumed":
        return was_resumed(store, info.id)
    return not source or source_of(store, info.id) == source


def _table(
    infos: list[SessionInfo],
    titles: dict[str, str],
    sources: dict[str, str],
    bills: dict[str, Bills] | None,
    labels: list[str],
) -> Iterator[str]:
    columns = [
        Column("ID", [info.id for info in infos], max(len(info.id) for info in infos)),
        Column("UPDATED", [info.updated for info in infos], 24, cut=(16, 10)),
        Column("MESSAGES", [str(info.messages) for info in infos], 8, ">", may_go=True),
    ]
    if bills is not None:
        tokens, costs = zip(*(_figures(bills.get(info.id)) for info in infos), strict=True)
        columns += [Column("TOKENS", tokens, 13, ">"), Column("COST", costs, 12, ">")]
    parents, origins = [info.parent for info in infos], [sources[info.id] for info in infos]
    for name, cells in (("PARENT", parents), ("SOURCE", origins), ("LABELS", labels)):
        if any(cells):
            columns.append(Column(name, cells, max(map(len, [name, *cells])), may_go=True))
    return laid_out(columns, "TITLE", [titles[info.id] for info in infos])


def _figures(bills: Bills | None) -> tuple[str, str]:
    if bills is None:
        return "-", "-"
    usage = total_usage(bills)
    return at_least(usage, usage.input + usage.output), dollars(total_cost(bills))


def _fork(arguments: Namespace) -> int:
    with opened(arguments, write=True) as store:
        title = store.info(arguments.id).title
        info = store.fork(arguments.id, arguments.new, at=arguments.at, title=title)
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
        infos = [store.info(session_id) for session_id in dict.fromkeys(arguments.ids)]
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
    rows = []
    for info in infos:
        title = visible(info.title or first_words(store, info.id), one_line=True)
        rows.append(", ".join(filter(None, (f"{info.id}: {counted(info.messages, 'message')}", title))))
    return agreed("\n".join([*rows, "delete for good?"]), "rm", "--yes to delete without asking")
