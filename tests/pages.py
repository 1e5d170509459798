"""An HTML page, taken apart by a parser that did not write it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

__all__ = ["Element", "Page", "strange", "strange_served"]

_EMPTY = frozenset({"meta", "img", "input", "br", "hr", "link"})
_TAGS = frozenset(
    "html head meta title style body header main section nav footer article div p h1 h2 ol li dl dt dd details summary "
    "pre code span a b time img ins del "
    # Markdown
    "h3 h4 h5 h6 em strong s ul blockquote table thead tbody tr th td br hr "
    # the switch for log records
    "label input".split()
)
_DRAWN_TAGS = frozenset(
    "svg symbol image use rect circle line polyline g text figure figcaption button input output script".split()
)
"""What a page of a trajectory has beside that."""
_SERVED_TAGS = frozenset(
    "g link nav form label input select option datalist button mark svg rect figure figcaption".split()
)
"""What the pages have beside that which a server sends over all sessions."""
_SERVED_ATTRIBUTES = frozenset(
    "rel method action role placeholder size list autocomplete inputmode checked selected disabled scope colspan "
    "viewbox preserveaspectratio width height x y aria-live aria-controls aria-sort aria-hidden data-hits data-label "
    "data-again defer tabindex".split()
)
_PLACE = re.compile(
    r"/(?:[?#].*)?|/s/[^/?#]+(?:\?at=\d+)?(?:#r\d+)?|/figures(?:\?.*)?|/hits|/assets/page\.(?:css|js)|/favicon\.ico"
)
_APART = frozenset(
    {"br", "p", "li", "td", "th", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "div", "article", "summary", "footer"}
)
_ATTRIBUTES = frozenset(
    "lang charset http-equiv content name class id href src alt dir open loading title value type datetime aria-label "
    "aria-current".split()
)
_DRAWN_ATTRIBUTES = frozenset(
    "viewbox width height preserveaspectratio role aria-label aria-hidden x y x1 y1 x2 y2 cx cy r points font-size "
    "type min max step hidden data-step".split()
)
_DATA = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]*={0,2}")
_OURS = re.compile(r"[a-z0-9 -]+")


class Element(NamedTuple):
    """A tag and its attributes."""

    tag: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """What a page holds: its elements, all its text, the texts of its `pre`s, and what does not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.wrong: list[str] = []
        self.texts: list[str] = []
        self.text = ""
        self.policy = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.wrong += [f"never closed: {tag}" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if len(element.attributes) != len(attrs):
            self.wrong.append(f"{tag} has an attribute twice")
        if element.attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = element.attributes["content"] or ""
        if tag not in _EMPTY:
            self._open.append(tag)
        if tag == "pre":
            self.texts.append("")
        if tag in _APART:
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"closed out of turn: {tag}")
        if tag in _APART:
            self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data
        if "pre" in self._open:
            self.texts[-1] += data

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data[:40]!r}")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html" or self.elements:
            self.wrong.append(f"declaration {decl[:40]!r}")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"instruction {data[:40]!r}")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append(f"section {data[:40]!r}")


def strange_served(page: Page) -> list[str]:
    """What a page that a server sends must not have: other tags and attributes, and addresses elsewhere."""
    found = list(page.wrong)
    tags, names = _TAGS | _SERVED_TAGS | {"script"}, _ATTRIBUTES | _SERVED_ATTRIBUTES
    for tag, attributes in page.elements:
        found += [f"tag {tag}"] if tag not in tags else []
        found += [f"attribute {name} of {tag}" for name in attributes if name not in names]
        for name in {"href", "src", "action", "data-hits"} & attributes.keys():
            found += [] if _PLACE.fullmatch(attributes[name] or "") else [f"address {attributes[name]!r}"]
        found += [f"class {name!r}" for name in [attributes.get("class") or "a"] if not _OURS.fullmatch(name)]
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    return found + [f"id {one} twice" for one in {*ids} if ids.count(one) > 1]


def strange(page: Page, *, drawn: bool = False) -> list[str]:
    """What a page of ours must not have: other tags, attributes and addresses, a hole in its policy. `drawn`: it is the
    page of a trajectory, which has drawings and a script."""
    found = list(page.wrong)
    tags, names = (_TAGS | _DRAWN_TAGS, _ATTRIBUTES | _DRAWN_ATTRIBUTES) if drawn else (_TAGS, _ATTRIBUTES)
    for tag, attributes in page.elements:
        if tag not in tags:
            found.append(f"tag {tag}")
        for name, value in attributes.items():
            if name not in names:
                found.append(f"attribute {name} of {tag}")
            elif name == "src" or (name == "href" and tag == "image"):
                found += [] if _DATA.fullmatch(value or "") else [f"source {(value or '')[:60]!r}"]
            elif name == "href" and not re.fullmatch(r"#(r|turn-|step-|picture-|page-)\d+", value or ""):
                found.append(f"address {value!r}")
            elif name in ("class", "id", "dir", "name", "loading") and not _OURS.fullmatch(value or ""):
                found.append(f"{name} {value!r}")
            elif name == "http-equiv" and value != "Content-Security-Policy":
                found.append(f"http-equiv {value!r}")
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    found += [f"id {one} twice" for one in {*ids} if ids.count(one) > 1] if len(ids) < 2_000 else []
    if not page.policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-"):
        found.append(f"policy {page.policy!r}")
    return found
