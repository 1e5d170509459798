"""`search`: find words in the records of sessions."""

from __future__ import annotations

import difflib
import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from .._platform.times import TIMES, ago, since, until
from .._platform.units import counted
from .._platform.visible import columns_of, visible
from ..errors import InputError, SessionNotFound
from ..log.codec import KINDS
from ..log.store import LATEST, Hit, Store
from ..session.titles import shown_title
from ..stores.ids import session_named, short_ids
from ..stores.words import Finder, parse_query
from ..view.decisions import Rewinds
from .arguments import add_command, add_labels, checked, number
from .drawing import clipped, colours
from .stores import is_missing, is_writable, opened, place
from .tables import terminal_width
from .terminal import Piece, out_json, out_line, out_pieces, paged, say

_ROLES = ("user", "assistant", "system", "tool", *sorted(KINDS))
_MARKS = "»", "«"
_BOLD = "1;33"
_PROBE = 50
"""The most records that are counted to say what nearly matches."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    search = add_command(commands, store, "search")
    text = 'words, "phrases" and beginnings of words (umbrel*); a record has to contain all of them'
    search.add_argument("text", metavar="TEXT", nargs="+", help=f"{text}; an id before them: only in this session")
    search.add_argument("--session", metavar="ID", help="only in this session; the beginning of its id is enough")
    text = "only messages of user, assistant, system or tool, or records of another kind (note, decision, ...)"
    search.add_argument("--role", metavar="R", help=text)
    search.add_argument("--tool", metavar="NAME", help="only calls and results of this tool")
    add_labels(search)
    text = "only from then on: today, yesterday, 3d, 12h, 2026-01-31, ..."
    search.add_argument("--since", metavar="TIME", type=checked(since, TIMES), help=text)
    text = "only up to then; a day or a month is included"
    search.add_argument("--until", metavar="TIME", type=checked(until, TIMES), help=text)
    search.add_argument(
        "--limit", metavar="N", type=number("hits", least=1), default=50, help="at most N hits (default: 50)"
    )
    search.add_argument("--json", action="store_true", help="one JSON object a line")
    search.set_defaults(run=_search)


def _search(arguments: Namespace) -> int:
    if is_missing(arguments):
        say(f"nothing to search: there is no store at {place(arguments)}")
        return 0
    # A search first brings the index up to date. If the store is read-only, it reads all records instead.
    with opened(arguments, write=is_writable(arguments), past_damage=True) as store:
        session = session_named(store, arguments.session) if arguments.session else _session_first(store, arguments)
        query = " ".join(map(_phrased, arguments.text))
        limits: dict[str, Any] = {name: getattr(arguments, name) for name in ("role", "tool", "since", "until")}
        limits["where"] = dict(arguments.label)
        find = partial(_find, store, session, limits)
        hits = find(query, arguments.limit)
        rewinds = {
            name: Rewinds.of(store.of_kinds(name, ("decision",))) for name in dict.fromkeys(hit.session for hit in hits)
        }
        gone = [rewinds[hit.session].by(hit.record) for hit in hits]
        if arguments.json:
            for hit, by in zip(hits, gone, strict=True):
                out_json({**msgspec.to_builtins(hit), "rewound": by})
        elif hits:
            with paged():
                shown = _print(store, hits, gone, query)
        if not hits and arguments.role not in (None, *_ROLES):
            raise InputError(f"--role: no {arguments.role!r} is on record; {_role_meant(arguments.role)}")
        if not hits:
            _explain(query, find, partial(_find, store, session, {}) if any(limits.values()) else None)
            return 0
    limit_note = "; there may be more, see --limit" if len(hits) == arguments.limit else ""
    where = "" if arguments.json else f" in {counted(len(rewinds), 'session')}"
    follow = "" if arguments.json else f".  turnlog show {shlex.quote(shown)} --at {hits[0].record}"
    say(f"{counted(len(hits), 'hit')}{where}{limit_note}{follow}")
    return 0


def _find(store: Store, session: str | None, limits: dict[str, Any], query: str, most: int) -> list[Hit]:
    return store.search(query, session=session, limit=most, **limits)


def _role_meant(role: str) -> str:
    near = difflib.get_close_matches(role, _ROLES, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_ROLES)}"


def _session_first(store: Store, arguments: Namespace) -> str | None:
    """The session that the first word names, if others follow: `latest`, -2, a whole id, or a beginning of one with a
    digit in it, as few words have."""
    first, *rest = arguments.text
    if not rest or not (first == LATEST or re.fullmatch(r"-[1-9]\d*|(?=.*\d)\S{4,}", first)):
        return None
    try:
        session = session_named(store, first)
    except SessionNotFound:
        return None
    arguments.text = rest
    say(f"only in session {session}, as the first word is its id")
    return session


def _phrased(text: str) -> str:
    """An argument with several words as a phrase: quoted for the shell, it was meant as one."""
    return f'"{text}"' if len(text.split()) > 1 and not set(text) & set('"*') else text


# -- hits ------------------------------------------------------------------------------------------


def _print(store: Store, hits: Sequence[Hit], gone: Sequence[int], query: str) -> str:
    """Print the hits below their sessions; returns the short id of the first."""
    infos = store.sessions()
    by_id = {info.id: info for info in infos}
    short = short_ids({hit.session for hit in hits}, infos)
    finder = Finder(parse_query(query))
    room = terminal_width()
    whole = max(map(len, short.values()))
    number_width, role_width = max(len(str(hit.record)) for hit in hits), max(len(hit.role) for hit in hits)
    last = ""
    for hit, by in zip(hits, gone, strict=True):
        if hit.session != last:
            last = hit.session
            info = by_id.get(hit.session)
            when, title = (ago(info.updated), shown_title(store, info)) if info else ("-", "")
            heading = f"{short[hit.session]:<{whole}}  {when:<11}  {title}"
            out_line(clipped(heading, room).rstrip() if room else heading.rstrip())
        ahead = f"  {hit.record:>{number_width}}  {hit.role:<{role_width}}  "
        note = f"  (taken back by decision {by})" if by else ""
        out_pieces([(ahead, ""), *_marked(hit, finder, room - len(ahead) - len(note) if room else 0), (note, "")])
    return short[hits[0].session]


def _marked(hit: Hit, finder: Finder, width: int) -> Iterator[Piece]:
    """The snippet in pieces, cut to `width` columns around the first hit (0: whole), with every word marked."""
    text, spans = hit.snippet, finder.everywhere(hit.snippet) or [(hit.start, hit.end)]
    marks = ("", "") if colours() else _MARKS
    if width:
        begin = max(0, min(spans[0][0] - width // 3, columns_of(text) + 2 * len(spans) * len(marks[0]) - width))
        if begin:
            begin = text.find(" ", begin, spans[0][0]) + 1 or begin
            text, spans = f"…{text[begin:]}", [(start - begin + 1, end - begin + 1) for start, end in spans]
    left, position = width, 0
    for start, end in (*spans, (len(text), len(text))):
        for piece, style in ((text[position:start], ""), (text[start:end], _BOLD if not marks[0] else "")):
            shown = visible(piece, one_line=True)
            if piece and (style or piece == text[start:end]) and end > start:
                shown = f"{marks[0]}{shown}{marks[1]}"
            if width:
                shown = clipped(shown, left).rstrip() if columns_of(shown) > left else shown
                left -= columns_of(shown)
            yield shown, style
            if width and left <= 0:
                return
        position = end


# -- no hits ---------------------------------------------------------------------------------------


def _explain(query: str, find: Callable[..., list[Hit]], everywhere: Callable[..., list[Hit]] | None) -> None:
    """Say what nearly matches, with the numbers of records."""
    terms = [f'"{" ".join(term.words)}"' if len(term.words) > 1 else term.words[0] for term in parse_query(query)]
    asked = list(dict.fromkeys(terms))
    nothing = {1: "nothing found", 2: "nothing has both words"}.get(len(asked), "nothing has all of these words")
    tries = [[" ".join(asked)]] if everywhere else []
    tries += [[" ".join((*asked[:i], form, *asked[i + 1 :])) for form in _begins(word)] for i, word in enumerate(asked)]
    tries += [[" ".join(word.strip('"') for word in asked)]] if any(" " in word for word in asked) else []
    tries += [[word] for word in asked] if len(asked) > 1 else []
    lines: list[tuple[str, str, str]] = []
    for forms in tries:
        for near in forms:
            beyond = everywhere if near == " ".join(asked) else None
            many = len((beyond or find)(near, _PROBE))
            follow = "  without --since, --role and the like" if beyond else f"  turnlog search {_typed(near)}"
            if many or near in asked:
                lines.append((near, f"{many}{'+' * (many == _PROBE)} record{'s' * (many != 1)}", follow * (many > 0)))
            if many:
                break
    width = max((len(near) for near, _, _ in lines), default=0)
    found = [f"  {near:<{width}}  {records:>10}{follow}" for near, records, follow in lines]
    say("\n".join([nothing + (", but:" if any(follow for *_, follow in lines) else ""), *found]))


def _typed(query: str) -> str:
    """A query as it is typed in a shell."""
    return " ".join(shlex.quote(quoted or plain) for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', query))


def _begins(word: str) -> Iterator[str]:
    """Beginnings of a word that other forms of it have, too, the longest first."""
    if " " not in word:
        yield f"{word}*"
        if len(word) > 5:
            yield f"{word[: max(4, len(word) * 2 // 3)]}*"
