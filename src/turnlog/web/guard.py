"""Who may ask the server, and the headers of every answer.

The pages show whatever was said to agents, so any page of the web and any program of another user is kept out:

- a request needs the token, once in the address that `turnlog serve` prints and from then on as a cookie;
- pages are under a path made from the token, and the cookie is for that path: a browser sends cookies to every port of
  this machine, so another server that the user visits would get it;
- it names this server as its host, so that a name that a stranger points at 127.0.0.1 (DNS rebinding) reaches nothing;
- a browser must not say that another site asks (`Origin`, `Sec-Fetch-Site`);
- only `GET` and `HEAD` are answered: nothing here changes a session.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from .._platform.files import write_whole
from .._platform.paths import state_folder
from ..display.escapes import Markup, end, join, start, tag, text
from ..display.frame import SERVED_POLICY

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_MONTH = 30 * 24 * 3600

_HEADERS = {
    "content-security-policy": SERVED_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""What every answer has, unless its page says otherwise."""


def kept_token(*, new: bool = False, place: Path | None = None) -> str:
    """The token of this user, which only the user can read. It stays the same, so that open pages go on when the server
    starts again; `new` makes another, and pages that are open are refused from then on."""
    place = place or state_folder() / "serve-token"
    try:
        token = "" if new else place.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if len(token) < 32 or not place.is_file() or place.stat().st_mode & 0o077:
        token = secrets.token_urlsafe(32)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, [token.encode("ascii")])
    return token


def root_of(token: str) -> str:
    """The path that all pages are under for who has this token."""
    return "/" + hashlib.sha256(token.encode("utf-8")).hexdigest()[:16]


def plain_page(title: str, *lines: Markup) -> Markup:
    """A page that needs nothing else from the server: what happened, and what to do."""
    inside = [tag("h1", text(title)), *(tag("p", line) for line in lines)]
    head = [start("meta", charset="utf-8"), start("meta", name="color-scheme", content="light dark")]
    head += [start("meta", name="viewport", content="width=device-width, initial-scale=1"), tag("title", text(title))]
    opened = Markup('<!DOCTYPE html>\n<html lang="en"><head>')
    return join([opened, *head, Markup("</head>\n"), start("body"), tag("main", *inside), end("body"), end("html")])


class Guard:
    """In front of an application that listens at `port`: lets through what may be asked, and gives every answer its
    headers."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self._token, self._port, self._root = app, token, port, root_of(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # a web socket is not accepted

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                there = {name.lower() for name, _ in headers}
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*headers, *(each for each in added if each[0] not in there)]
            await send(message)

        refused = self._refusal(scope)
        if refused is None:
            inside = {**scope, "raw_path": _raw_path(scope).removeprefix(self._root).encode("latin-1")}
            await self.app(inside, receive, send_with_headers)
            return
        status, page, headers = refused
        body = b"" if scope["method"] == "HEAD" else page.encode("utf-8", "replace")
        fields = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **headers}
        sent = [(name.encode(), value.encode("ascii")) for name, value in fields.items()]
        await send_with_headers({"type": "http.response.start", "status": status, "headers": sent})
        await send_with_headers({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[int, Markup, dict[str, str]] | None:
        """Status, page and headers of a request that is not passed on; None if it is."""
        port, headers = self._port, _Headers(scope["headers"])
        hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        address = text(f"http://{hosts[0]}/")
        if headers.only("host") not in hosts:
            return 421, plain_page("Wrong address", join((text("This server answers at "), address))), {}
        if scope["method"] not in ("GET", "HEAD"):
            return (
                405,
                plain_page("Nothing can be changed here", text("Pages can only be read.")),
                {"allow": "GET, HEAD"},
            )
        path = _raw_path(scope)
        if not path.startswith("/"):
            return 400, plain_page("Not an address", text("Only a path is answered.")), {}
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        origin, site = headers.only("origin"), headers.only("sec-fetch-site")
        is_ours = origin in (None, *(f"http://{host}" for host in hosts))
        if given and is_ours and all(self._is_token(each) for each in given):
            return self._welcome(self._root + _local(path.removeprefix(self._root) or "/", query), site)
        cookies, is_below = headers.cookies(f"turnlog-{port}"), path.startswith(f"{self._root}/")
        if not is_ours or site not in (None, "same-origin", "none"):
            lines = [text("Another site asked for this page, so it is not shown.")]
            if is_ours and is_below and headers.only("sec-fetch-mode") == "navigate":
                lines.append(tag("a", text("Open it"), href=_local(path, query)))
            return 403, plain_page("Not from here", *lines), {}
        if not (is_below and any(self._is_token(each) for each in cookies)):
            shown = tag("code", text("turnlog serve"))
            return 403, plain_page("Not logged in", join((text("Open the whole address that "), shown, text(" printed: "
                                   "the end of it, ?token=..., is the key to these pages.")))), {}  # fmt: skip
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode("ascii"))

    def _welcome(self, place: str, site: str | None) -> tuple[int, Markup, dict[str, str]]:
        """Keep the token as a cookie, and go to the address without it, which may be copied and shown."""
        cookie = f"turnlog-{self._port}={self._token}; HttpOnly; SameSite=Strict; Path={self._root}/; Max-Age={_MONTH}"
        link = tag("a", text("Go on"), href=place)
        if site in (None, "same-origin", "none"):
            return 303, plain_page("turnlog", link), {"location": place, "set-cookie": cookie}
        # A link on another site: a redirect would still be that site's, which gets no cookie and is refused.
        return 200, plain_page("turnlog", link), {"refresh": f"0;url={place}", "set-cookie": cookie}


class _Headers:
    """The headers of a request."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._all = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]

    def only(self, name: str) -> str | None:
        """The value of a header; None without it, and what nobody accepts if it is there twice."""
        values = [value for key, value in self._all if key == name]
        return values[0] if len(values) == 1 else "twice" if values else None

    def cookies(self, name: str) -> list[str]:
        """The values of a cookie."""
        pieces = (piece.strip() for key, value in self._all if key == "cookie" for piece in value.split(";"))
        return [piece.removeprefix(f"{name}=") for piece in pieces if piece.startswith(f"{name}=")]


def _raw_path(scope: Scope) -> str:
    path: bytes = scope["raw_path"]
    return path.partition(b"?")[0].decode("latin-1")


def _local(path: str, query: list[tuple[str, str]]) -> str:
    """An address without the token."""
    rest = urlencode([(key, value) for key, value in query if key != "token"])
    return path + (f"?{rest}" if rest else "")
