"""What every page has: its policy, its style, its script, and where the other pages are.

A page that a server sends loads its style and script from that server; a page that is a file has its style inside, and
no script. Either way nothing else can be fetched, and nothing that a transcript says can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

from msgspec import Struct

from ..log.store import file_name
from .escapes import Markup, end, join, start, tag, text

DATA = Path(__file__).parent / "data"

SERVED_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""The Content-Security-Policy (level 3) of pages that a server sends, as a header."""


MADE_BY = start("meta", name="generator", content="turnlog")
"""In the head of every page that is a file."""


class Ways(Struct, frozen=True):
    """Where the pages are that a page links to.

    `form` is `served` (paths of a server), `site` (files beside each other) or `single` (one file, which has only its
    own anchors). `root` is before every path of a server.
    `requests` are the requests that have pages, by the records that answered them; None: all.
    """

    form: str = "single"
    requests: tuple[int, ...] | None = None
    root: str = ""

    @property
    def is_served(self) -> bool:
        """Whether a server sends the pages, and whatever is loaded later."""
        return self.form == "served"

    def sessions(self, **query: str) -> str:
        """The list of sessions."""
        return _address(f"{self.root}/", query) if self.is_served else "index.html"

    def session(self, session_id: str, at: int = 0) -> str:
        """The page of a session, at a record."""
        anchor = f"#r{at}" if at else ""
        if self.form == "single":
            return anchor or "#top"
        if self.form == "site":
            return f"{file_name(session_id)}.html{anchor}"
        return self.part(session_id, **({"at": str(at)} if at else {})) + anchor

    def part(self, session_id: str, *names: str | int, **query: str) -> str:
        """What belongs to a session: `requests`, `changes`, `trajectory`, `r`, ... and the number of a record."""
        if self.form == "site":
            return ".".join((file_name(session_id), *map(str, names), "html"))
        return _address("/".join((f"{self.root}/s", quote(session_id, safe=""), *map(str, names))), query)

    def request(self, session_id: str, n: int) -> str:
        """What the model saw in the request that record `n` answered; empty if there is no page of it."""
        return self.part(session_id, "requests", n) if self.requests is None or n in self.requests else ""

    def figures(self) -> str:
        """The page of figures over all sessions."""
        return f"{self.root}/figures" if self.is_served else "figures.html"

    def media(self, sha256: str) -> str:
        """An image. Only a server has it at an address."""
        return f"{self.root}/media/{sha256}"


def _address(path: str, query: dict[str, str]) -> str:
    filled = {key: value for key, value in query.items() if value}
    return path + (f"?{urlencode(filled)}" if filled else "")


@cache
def asset(name: str) -> str:
    """The text of `page.css` or `page.js`."""
    return (DATA / name).read_text("utf-8")


def head(title: str, ways: Ways, *, style: str = "", script: str = "") -> Markup:
    """The beginning of a page, up to its body. `style` and `script` are texts of ours for a page that is a file, beside
    the style of all pages; the script goes to the end of the body. The policy of a file allows only them, by their
    hashes, and pictures inside the page."""
    metas = [
        start("meta", charset="utf-8"),
        start("meta", name="referrer", content="no-referrer"),
        start("meta", name="viewport", content="width=device-width, initial-scale=1"),
        start("meta", name="color-scheme", content="light dark"),
        tag("title", text(title, one_line=True)),
    ]
    if ways.is_served:
        metas += [start("link", rel="icon", href=f"{ways.root}/favicon.ico")]
        metas += [start("link", rel="stylesheet", href=f"{ways.root}/assets/page.css")]
        metas += [tag("script", src=f"{ways.root}/assets/page.js", defer="")]
    else:
        style = asset("page.css") + style
        policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        policy += f"script-src {_hash(script)}; " if script else ""
        policy += "base-uri 'none'; form-action 'none'"
        # Not made by `start`, which would escape the quotes of the policy.
        metas.insert(1, Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'))
        metas += [MADE_BY, tag("style", Markup(style))]
    inside = Markup("\n".join(metas))
    return join([Markup('<!DOCTYPE html>\n<html lang="en"><head>'), inside, Markup("</head>\n")])


def opening(ways: Ways, *, here: str = "") -> Iterator[Markup]:
    """The beginning of the body: links to the other pages, of which `here` is the name of this one."""
    yield start("body", class_=ways.form, data_root=ways.root or None)
    if ways.form == "single":
        return
    pages = (("Sessions", ways.sessions()), ("Figures", ways.figures()))
    links = [tag("a", text(name), href=to, aria_current="page" if name == here else None) for name, to in pages]
    yield tag("nav", tag("b", text("turnlog")), *links, class_="pages", aria_label="Pages")


def foot() -> Markup:
    """The end of a page."""
    return join([end("body"), Markup("</html>\n")])


def framed(
    title: str, ways: Ways, inside: Iterable[Markup], *, kind: str | None = None, here: str = ""
) -> Iterator[Markup]:
    """A whole page of a server or a site around what it shows; `here` as `opening` has it."""
    yield head(title, ways)
    yield from opening(ways, here=here)
    yield start("main", class_=kind)
    yield from inside
    yield end("main")
    yield foot()


def _hash(words: str) -> str:
    digest = base64.b64encode(hashlib.sha256(words.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
