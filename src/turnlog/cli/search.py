"""`search`: find words in the records of sessions."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import datetime
from typing import Any

import msgspec

from .._platform.units import counted
from ..errors import InputError
from ..export.escapes import visible
from ..log.codec import KINDS
from ..log.store import Hit
from .arguments import add_command, add_labels, number
from .decisions import rewinds_of
from .stores import is_missing, is_writable, opened, place, whole_id
from .terminal import out, out_json, say

_ROLES = ("user", "assistant", "system", "tool", *sorted(KINDS))
_MARKS = "»", "«"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    search = add_command(commands, store, "search")
    text = 'words, "phrases" and beginnings of words (umbrel*); a record has to contain all of them'
    search.add_argument("text", metavar="TEXT", nargs="+", help=text)
    search.add_argument("--session", metavar="ID", help="only in this session; the beginning of its id is enough")
    text = "only messages of user, assistant, system or tool, or records of another kind (note, decision, ...)"
    search.add_argument("--role", metavar="R", help=text)
    search.add_argument("--tool", metavar="NAME", help="only calls and results of this tool")
    add_labels(search)
    search.add_argument("--since", metavar="DATE", type=_date, help="only from this date on, such as 2026-01-31 (UTC)")
    search.add_argument("--until", metavar="DATE", type=_date, help="only up to and including this date")
    search.add_argument(
        "--limit", metavar="N", type=number("hits", least=1), default=50, help="at most N hits (default: 50)"
    )
    search.add_argument("--json", action="store_true", help="one JSON object a line")
    search.set_defaults(run=_search)


def _date(text: str) -> str:
    """A time as in records, or the beginning of a time. Raises ArgumentTypeError for dates such as February 30."""
    whole = text + "0001-01-01"[len(text) :] if len(text) in (4, 7) else text
    try:
        datetime.fromisoformat(whole)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date; write 2026-01-31, 2026-01 or 2026-01-31T12:00") from None
    return text


def _search(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"nothing to search: there is no store at {place(arguments)}")
        return 0
    # A search first brings the index up to date. If the store is read-only, it reads all records instead.
    with opened(arguments, write=is_writable(arguments), past_damage=True) as store:
        hits = store.search(
            " ".join(arguments.text),
            session=arguments.session and whole_id(store, arguments.session),
            role=arguments.role,
            tool=arguments.tool,
            since=arguments.since,
            until=arguments.until,
            where=dict(arguments.label),
            limit=arguments.limit,
        )
        rewinds = {name: rewinds_of(store, name) for name in dict.fromkeys(hit.session for hit in hits)}
    gone = [rewinds[hit.session].by(hit.record) for hit in hits]
    if arguments.json:
        for hit, by in zip(hits, gone, strict=True):
            out_json({**msgspec.to_builtins(hit), "rewound": by})
    else:
        width = max((len(hit.session) for hit in hits), default=0)
        for hit, by in zip(hits, gone, strict=True):
            snippet = _marked(hit) + (f"  (taken back by decision {by})" if by else "")
            out(f"{hit.session:<{width}}  {hit.record:>5}  {hit.time[:16]:<16}  {hit.role:<9}  {snippet}".rstrip())
    if not hits and arguments.role not in (None, *_ROLES):
        near = difflib.get_close_matches(arguments.role, _ROLES, 1)
        others = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_ROLES)}"
        raise InputError(f"--role: no {arguments.role!r} is on record; {others}")
    limit_note = "; there may be more, see --limit" if len(hits) == arguments.limit else ""
    say(counted(len(hits), "hit") + limit_note if hits else "nothing found")
    return 0


def _marked(hit: Hit) -> str:
    """The snippet, escaped, with marks around the hit."""
    before, match, after = hit.snippet[: hit.start], hit.snippet[hit.start : hit.end], hit.snippet[hit.end :]
    pieces = [visible(piece, one_line=True) for piece in (before, match, after)]
    return _MARKS[0].join(pieces[:2]) + _MARKS[1] + pieces[2] if match else pieces[0] + pieces[2]
