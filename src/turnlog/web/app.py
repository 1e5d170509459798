"""The server: which page is at which address, and how its markup is sent.

Addresses are split before they are decoded, so that an id such as `https://example.com/a` or `../x` is one name and
never a path. Pages are made in threads; only events are sent by the event loop itself. Whatever fails is a page that
says so, without anything of the program.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from urllib.parse import unquote

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .._platform.exceptions import place_of
from .._platform.stdlib import LOG
from .._platform.visible import visible
from ..display import changes, figures_page, page, past_request, request_page, search_hits, sessions_page
from ..display.escapes import Markup, join, tag, text
from ..display.frame import Ways, asset, framed
from ..display.listing import Listing
from ..errors import BlobMissing, BudgetError, InputError, SessionNotFound, TurnlogError
from ..export.formats import FORMATS
from ..export.trajectory_page import as_trajectory
from ..log.store import Problem, Store
from ..session.reader import SessionLog
from ..tokens.dimensions import image_type
from .connections import Connection, tell_once
from .guard import Guard, Receive, Scope, Send, root_of
from .live import Live

_CHUNK = 65_536
"""About so many characters are sent at a time; shorter pages are sent whole, with their length."""

_AT_A_TIME = 3
"""So many pages are made at a time: each may hold the texts of a long session, and Python makes them one by one."""

_LARGE = 1_048_576
"""Freed memory of this size or more goes back to the system at once."""

_HTML = "text/html; charset=utf-8"
_PLAIN = "text/plain; charset=utf-8"

_ASSETS = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

_FILE_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
)
"""For a page that is also a file: its own policy allows only the style and the script of that file, by their hashes;
this one keeps it from being anything but a document without an origin, which can ask this server for nothing."""

_NO_PAGE = "There is no such page."


class ServedPages:
    """The pages of one store, as an ASGI application."""

    def __init__(self, store: Store, root: str = "") -> None:
        self._store, self._ways = store, Ways("served", root=root)
        self.live = Live(store, lambda store, session_id, after: page.news(store, session_id, self._ways, after))
        self._listing = Listing(store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        names = [unquote(name) for name in scope["raw_path"].split(b"?")[0].decode("latin-1").split("/")[1:]]
        response = self._events(names, request)
        if response is None:
            response = await run_in_threadpool(self._answer, names, dict(request.query_params))
        await response(scope, receive, send)
        if names[2:3] in (["requests"], ["window"]):
            # Their sessions, with all texts, are in cycles: 10 to 20 ms, else dozens of megabytes stay for minutes.
            await run_in_threadpool(gc.collect)

    def _events(self, names: list[str], request: Request) -> Response | None:
        """The stream of events at an address; None if a page is there."""
        match names:
            case ["live"]:
                events = self.live.sessions()
            case ["s", session_id, "live"]:
                after = request.headers.get("last-event-id") or request.query_params.get("after", "")
                events = self.live.records(session_id, int(after) if after.isdecimal() and len(after) < 16 else 0)
            case _:
                return None
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(events, media_type="text/event-stream")

    def _answer(self, names: list[str], query: Mapping[str, str]) -> Response:
        """What is at an address, or the page that says why nothing is. Never raises."""
        try:
            made = self._at(names, query)
            return made if isinstance(made, Response) else _streamed(made)
        except SessionNotFound:
            return self._error(404, "There is no such session", "It may have been deleted, or be in another store.")
        except BlobMissing as error:
            return self._error(404, "Not there", str(error))
        except (InputError, BudgetError) as error:
            return self._error(400, "This cannot be shown", str(error))
        except TurnlogError as error:
            return self._error(500, "This cannot be shown", str(error))
        except Exception as error:  # noqa: BLE001 - an error in turnlog: the page must not show its inside
            LOG.error("turnlog serve: %s", visible(place_of(error), one_line=True))
            return self._error(500, "An error in turnlog itself", "The terminal where turnlog serve runs says where.")

    def _at(self, names: list[str], query: Mapping[str, str]) -> Iterable[Markup] | Response:
        store, ways = self._store, self._ways
        match names:
            case [""]:
                return sessions_page.sessions_page(store, query, ways, self._listing)
            case ["hits"]:
                return search_hits.hits(store, query.get("q", ""), ways)
            case ["figures"]:
                return figures_page.figures_page(store, query, ways, self._listing)
            case ["favicon.ico"]:
                return Response(status_code=204)  # there is none, and a browser asks for it by itself
            case ["media", sha256]:
                return self._media(sha256)
            case ["assets", name] if name in _ASSETS:
                content = asset(name).encode()
                return Response(content, headers={"content-type": _ASSETS[name], "cache-control": "no-cache"})
            case ["s", session_id, *rest] if session_id:
                return self._of_session(session_id, rest, query)
        return self._error(404, "Not found", _NO_PAGE)

    def _of_session(self, session_id: str, rest: list[str], query: Mapping[str, str]) -> Iterable[Markup] | Response:
        store, ways, number = self._store, self._ways, partial(_number, query)
        last = store.info(session_id).records  # before anything is sent
        match rest:
            case []:
                return page.session_page(store, session_id, ways, at=number("at"))
            case ["talk"]:
                return page.window(store, session_id, ways, first=number("from"), before=number("before"))
            case ["rail"]:
                return page.rail(store, session_id, ways, at=number("at"))
            case ["window"]:
                return request_page.window_use(store, session_id, ways)
            case ["r", n] if _is_number(n) and 1 <= int(n) <= last:
                return page.record_page(store, session_id, int(n), ways)
            case ["requests"]:
                return request_page.requests_page(store, session_id, ways, page=number("page") or 1)
            case ["requests", n] if _is_number(n):
                return request_page.request_page(store, session_id, int(n), ways)
            case ["requests", n, "body"] if _is_number(n):
                body = past_request.past_request(store, session_id, int(n)).request.json()
                return Response(body, media_type="application/json")
            case ["changes"]:
                return changes.changes_page(store, session_id, ways)
            case ["trajectory"]:
                pieces = as_trajectory(SessionLog(store, session_id), [])
                return _in_pieces(pieces, {"content-type": _HTML, "content-security-policy": _FILE_POLICY})
            case ["markdown"]:
                problems: list[Problem] = []
                return _in_pieces(FORMATS["markdown"](store, session_id, problems), {"content-type": _PLAIN})
        return self._error(404, "Not found", _NO_PAGE)

    def _media(self, sha256: str) -> Response:
        """A picture, if its first bytes are one: what a transcript calls its media does not count."""
        if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
            return self._error(404, "Not found", _NO_PAGE)
        data = self._store.get_blob(sha256)
        kind = image_type(data)
        return Response(data, media_type=kind) if kind else self._error(404, "No picture", "Only pictures are shown.")

    def _error(self, status: int, title: str, said: str) -> Response:
        """A page that says why there is nothing."""
        back = tag("p", tag("a", text("All sessions"), href=self._ways.sessions()))
        markup = join([*framed(title, self._ways, [tag("h1", text(title)), tag("p", text(said)), back])])
        return Response(markup.encode("utf-8", "replace"), status, headers={"content-type": _HTML})


def listening(port: int, tries: int = 1) -> socket.socket:
    """A socket at this port of the loopback interface, or at one of the next. Raises OSError if none is free."""
    for each in range(port, port + tries):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that ended just now left it
            made.bind(("127.0.0.1", each))
            made.listen(128)
        except OSError:
            made.close()
            if each == port + tries - 1:
                raise
        else:
            return made
    raise ValueError(f"tries: {tries}")


class PageServer(uvicorn.Server):
    """Serves pages at a socket. Its streams end at once when it stops."""

    def __init__(self, store: Store, token: str, at: socket.socket) -> None:
        self._pages, self._at = ServedPages(store, root_of(token)), at
        app = Guard(self._pages, token, at.getsockname()[1])
        config = uvicorn.Config(app, loop="asyncio", http=Connection, ws="none", lifespan="off", log_config=None)
        # What others send is not logged. So few are let in at a time that those who wait too long can make room first.
        logging.getLogger("uvicorn.error").setLevel("ERROR")
        config.backlog = 32
        config.server_header = config.date_header = config.access_log = False
        config.timeout_graceful_shutdown = 2
        super().__init__(config)

    def serve_pages(self) -> None:
        """Serve until a signal or `should_exit` ends it."""
        with suppress(AttributeError, OSError, TypeError):  # only glibc keeps what was large once, for each thread
            ctypes.CDLL(None).mallopt(-3, _LARGE)  # M_MMAP_THRESHOLD
        self.run(sockets=[self._at])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        tell_once(asyncio.get_running_loop())
        current_default_thread_limiter().total_tokens = _AT_A_TIME
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, without waiting for viewers."""
        self._pages.live.close()
        await super().shutdown(sockets)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 16


def _number(query: Mapping[str, str], name: str) -> int:
    """A number of a query, 0 without it. Raises InputError."""
    value = query.get(name, "") or "0"
    if not _is_number(value):
        raise InputError(f"{name}: {value!r:.40} is not the number of a record")
    return int(value)


def _streamed(pieces: Iterable[Markup]) -> Response:
    """Markup as an answer. What fails before the first chunk is full is raised, what fails later is said below it."""
    return _in_pieces((piece.encode("utf-8", "replace") for piece in pieces), {"content-type": _HTML})


def _in_pieces(pieces: Iterable[bytes], headers: Mapping[str, str]) -> Response:
    chunks = _chunks(pieces)
    first = next(chunks, b"")
    if len(first) < _CHUNK:
        return Response(first, headers=dict(headers))
    is_page = headers["content-type"] == _HTML
    return StreamingResponse(chain([first], _to_the_end(chunks, is_page)), headers=dict(headers))


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held, size = list[bytes](), 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _to_the_end(chunks: Iterator[bytes], is_page: bool) -> Iterator[bytes]:
    """The chunks; if one fails, a sentence that says so in place of the rest."""
    try:
        yield from chunks
    except TurnlogError as error:
        said = f"The rest cannot be shown: {error}"
    except Exception as error:  # noqa: BLE001 - as in `_answer`
        LOG.error("turnlog serve: %s", visible(place_of(error), one_line=True))
        said = "The rest cannot be shown: an error in turnlog itself."
    else:
        return
    yield (tag("p", text(said), class_="badge bad") if is_page else f"\n\n{said}\n").encode("utf-8", "replace")
