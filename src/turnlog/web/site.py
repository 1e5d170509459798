"""The pages of a store as files beside each other: what `serve` shows, without search and without what grows.

Each file has its style inside and no script; links lead to the other files. Nothing is fetched, so the folder can be
sent to somebody, or put on any web server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from .._platform.files import write_whole
from ..display.changes import changes_page
from ..display.escapes import Markup
from ..display.figures_page import figures_page
from ..display.frame import MADE_BY, Ways
from ..display.page import shows_images, whole_page
from ..display.past_request import requests_of
from ..display.request_page import request_page, requests_page
from ..display.sessions_page import sessions_page
from ..errors import InputError
from ..export import as_trajectory
from ..log.store import Problem, Store
from ..redaction.store import as_kept
from ..session import SessionLog
from ..stores import PastDamage

_HEAD = 8_000
"""The head of a page before its style has fewer bytes."""


def write_site(store: Store, folder: Path, problems: list[Problem], *, requests: int = 1) -> int:
    """Write the pages of every session of a store into a folder, which is made if it is not there; returns how many
    files there are. `requests`: for how many of the newest requests of a session there is a page of what the model saw.

    Pages that an earlier run left there, perhaps with secrets or of deleted sessions, are removed. Raises InputError if
    the folder has anything else, OSError. What cannot be read is a problem. Only the user can read the files.
    """
    ways, store = Ways("site"), PastDamage(as_kept(store), problems.append)
    if other := next((path for path in _there(folder) if not _is_ours(path)), None):
        raise InputError(f"{folder} has other files, such as {other.name}; give a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path in _there(folder):
        path.unlink()
    written = 0
    for info in store.sessions():
        newest = islice(reversed(requests_of(store, info.id).requests), requests)
        linked = Ways("site", tuple(one.n for one in newest))
        for name, pieces in _of_session(store, info.id, linked, problems):
            _write(folder / name, pieces)
            written += 1
    _write(folder / ways.sessions(), sessions_page(store, {}, ways))
    _write(folder / ways.figures(), figures_page(store, {}, ways))
    return written + 2


def _of_session(
    store: Store, session_id: str, ways: Ways, problems: list[Problem]
) -> Iterator[tuple[str, Iterable[Markup | bytes]]]:
    """The pages of a session, by file name."""
    yield ways.session(session_id), whole_page(store, session_id, ways, problems)
    yield ways.part(session_id, "requests"), requests_page(store, session_id, ways)
    for n in ways.requests or ():
        yield ways.part(session_id, "requests", n), request_page(store, session_id, n, ways)
    yield ways.part(session_id, "changes"), changes_page(store, session_id, ways)
    if shows_images(store, session_id):
        yield ways.part(session_id, "trajectory"), as_trajectory(SessionLog(store, session_id), problems)


def _write(path: Path, pieces: Iterable[Markup | bytes]) -> None:
    write_whole(path, (piece if isinstance(piece, bytes) else piece.encode("utf-8") for piece in pieces))


def _there(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_ours(path: Path) -> bool:
    """Whether a file is a page that turnlog made."""
    if path.suffix != ".html" or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return MADE_BY.encode() in file.read(_HEAD)
