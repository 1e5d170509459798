"""Extract the text of web pages, without markup, scripts and styles.

For some pages, `html.parser` takes time quadratic in the length (until Python 3.13.6), and servers may send any page.
So markup is found with patterns that read each character once.
"""

from __future__ import annotations

import re

from ..._platform.lazy import lazy_pattern
from ..._platform.stdlib import html
from .marks import Marks, number

_BEGINS = lazy_pattern(r"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype html|html)\b", re.IGNORECASE)
_TAGS = lazy_pattern(r"</?(?:div|p|a|span|li|ul|td|tr|h[1-6]|body|head|meta|script)\b", re.IGNORECASE)
_SILENT = lazy_pattern(r"<(?:!--|(script|style)(?=[\s/>])[^<>]*(/?)>)", re.IGNORECASE)
_TITLE = lazy_pattern(r"<title\b[^<>]*>([^<]{0,500})", re.IGNORECASE)
_TAG = lazy_pattern(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})([^<>]*)>|<[!?/][^<>]*>")
_LINK = lazy_pattern(r"(?<![\w-])href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))", re.IGNORECASE)
_BLOCKS = frozenset(
    "address article aside blockquote br dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p "
    "pre section table tbody td th thead title tr ul option".split()
)
_SPACES = lazy_pattern(r"[ \t\r\f\v\xa0]+")
_GAPS = lazy_pattern(r" ?\n[ \n]*")
_ROOM = 12_000
"""The number of characters of text to show of a page."""

_URL = 300
"""Characters of the longest link address that is shown."""


def is_page(text: str) -> bool:
    """Whether a text declares itself an HTML page."""
    return _BEGINS.match(text) is not None


def has_markup(text: str) -> bool:
    """Whether much of the beginning of a text is tags. Unless it comes from the web, it may be source code."""
    start = text[:6_000]
    return text.lstrip()[:1] == "<" and len(_TAGS.findall(start)) > len(start) / 120


def page(text: str, marks: Marks) -> str:
    """The text of a page. Headings begin with `#`, links are followed by their addresses."""
    title = _TITLE.search(text)
    plain = _text_of(_without_code(text))
    plain = html.unescape(plain)
    plain = _GAPS.sub("\n", _SPACES.sub(" ", plain)).strip()
    heading = html.unescape(" ".join(title[1].split())) if title else ""
    if heading and not plain.startswith(heading):
        plain = f"{heading}\n{plain}"
    gone = max(0, len(text) - len(plain))
    end = marks.left_out(f"markup, scripts and styles of {number(gone, 'character')}")
    if len(plain) > _ROOM:
        cut = plain.rfind("\n", _ROOM // 2, _ROOM) + 1 or _ROOM
        rest = number(len(plain) - cut, "other character")
        plain = f"{plain[:cut].rstrip()}\n{marks.left_out(f'{rest} of the text')}"
    return f"{plain}\n{end}"


def _without_code(text: str) -> str:
    """A page without comments, scripts and styles. Each ends at its own closing tag: what looks like another within it
    is ignored. If it never ends, it is text."""
    low, pieces, position = text.lower(), [], 0
    endless: set[str] = set()
    while (opening := _SILENT.search(text, position)) is not None:
        pieces.append(text[position : opening.start()])
        name = (opening[1] or "").lower()
        closing = f"</{name}" if name else "-->"
        position = opening.end()
        end = -1 if closing in endless or opening[2] else low.find(closing, position)
        if end >= 0:
            position = (text.find(">", end) + 1) or len(text)
        elif not opening[2]:
            endless.add(closing)
    return " ".join([*pieces, text[position:]])


def _text_of(text: str) -> str:
    pieces: list[str] = []
    position, link = 0, ""
    for tag in _TAG.finditer(text):
        pieces.append(text[position : tag.start()])
        position = tag.end()
        name = (tag[2] or "").lower()
        if name == "a":
            if link and tag[1]:
                pieces.append(f" ({link})")
            address = _LINK.search(tag[3]) if not tag[1] else None
            link = next((url for url in address.groups() if url), "") if address else ""
            link = link if len(link) <= _URL and not link.startswith(("#", "javascript:", "data:")) else ""
        elif name in _BLOCKS:
            pieces.append(
                "\n" + (f"{'#' * int(name[1])} " if name[:1] == "h" and name[1:].isdigit() and not tag[1] else "")
            )
    pieces.append(text[position:])
    return "".join(pieces)
