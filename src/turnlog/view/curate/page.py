"""Web pages: their text, without markup, scripts and styles.

`html.parser` takes time in the square of the length for some pages (until Python 3.13.6), and a page is whatever a
server sends. So markup is found with patterns that read each character once.
"""

from __future__ import annotations

import html
import re

from .marks import Marks, number

_BEGINS = re.compile(r"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype html|html)\b", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:div|p|a|span|li|ul|td|tr|h[1-6]|body|head|meta|script)\b", re.IGNORECASE)
_SILENT = re.compile(r"<(script|style|svg|template|iframe|head)\b", re.IGNORECASE)
_CODE = ("script", "style")
_TITLE = re.compile(r"<title\b[^<>]*>([^<]{0,500})", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})([^<>]*)>|<[!?/][^<>]*>")
_LINK = re.compile(r"\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))", re.IGNORECASE)
_BLOCKS = frozenset(
    "address article aside blockquote br dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p "
    "pre section table tbody td th thead tr ul option".split()
)
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_GAPS = re.compile(r" ?\n[ \n]*")
_ROOM = 12_000
"""Characters of text that are shown of a page."""

_URL = 300
"""Characters of the longest address of a link that is shown."""


def is_page(text: str) -> bool:
    """Whether a text is HTML: it says so, or much of its beginning is tags."""
    if _BEGINS.match(text):
        return True
    start = text[:6_000]
    return text.lstrip()[:1] == "<" and len(_TAGS.findall(start)) > len(start) / 120


def page(text: str, marks: Marks) -> str:
    """The text of a page. Headings begin with `#`, links are followed by their addresses."""
    title = _TITLE.search(text)
    plain = _text_of(_without_comments(_without(_SILENT, text)))  # a script may hold the beginning of a comment
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


def _without_comments(text: str) -> str:
    """A page without comments. One that is never closed is text."""
    first, *rest = text.split("<!--")
    return first + " ".join(chunk.partition("-->")[2] if "-->" in chunk else chunk for chunk in rest)


def _without(silent: re.Pattern[str], text: str) -> str:
    """A page without elements whose content is no text. Of one that is not closed before the next begins, only a script
    or a style is left out up to there; of a head that is not closed, the part up to the body."""
    pieces = silent.split(text)
    kept = [pieces[0]]
    for name, chunk in zip(pieces[1::2], pieces[2::2], strict=True):
        low, name = chunk.lower(), name.lower()
        at = low.find(f"</{name}")
        if at < 0 and name == "head":
            at = low.find("<body")
        if at >= 0:
            kept.append(chunk[chunk.find(">", at) + 1 or len(chunk) :])
        elif name in _CODE:
            kept.append("")
        else:
            kept.append(chunk[chunk.find(">") + 1 :])
    return " ".join(kept)


def _text_of(text: str) -> str:
    pieces: list[str] = []
    at, link = 0, ""
    for found in _TAG.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        name = (found[2] or "").lower()
        if name == "a":
            if link and found[1]:
                pieces.append(f" ({link})")
            address = _LINK.search(found[3]) if not found[1] else None
            link = next((one for one in address.groups() if one), "") if address else ""
            link = link if len(link) <= _URL and not link.startswith(("#", "javascript:", "data:")) else ""
        elif name in _BLOCKS:
            pieces.append(
                "\n" + (f"{'#' * int(name[1])} " if name[:1] == "h" and name[1:].isdigit() and not found[1] else "")
            )
    pieces.append(text[at:])
    return "".join(pieces)
