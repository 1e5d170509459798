"""Markdown as HTML: what people and models wrote, laid out as they meant it.

markdown-it reads it without HTML, images and link references, so that nothing is hidden: these are shown as they are
written. Its tokens become elements of a short list here, and every text is escaped by `escapes`. The address of a link
stands beside its words, as text: the page has no addresses. Line ends stay line ends, as in a chat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .._platform.lazy import lazy_pattern
from .escapes import Markup, end, join, start, tag, text

_LONGEST = 100_000
"""A text with more characters is shown as it is written: reading its Markdown could take seconds."""
_LIT = 20_000
"""Code with more characters is not coloured."""
_SIGNS = lazy_pattern(r"[*_`#>\[|~+\\&\n-]|\d[.)]")  # without one of them, Markdown is plain text
_ELEMENTS = {
    **{name: name for name in ("blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s")},
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
}
_BELOW = 2  # levels that headings are put below those of the page
# What the kinds of tokens of Pygments are called on the page; the others have no colour.
_COLOURS = {"Keyword": "kw", "String": "str", "Comment": "com", "Number": "num", "Function": "fn", "Class": "fn"}


def prose(words: str) -> Markup:
    """A text in Markdown, laid out."""
    if len(words) > _LONGEST or not _SIGNS.search(words):
        return tag("div", tag("p", *_lines(words)), class_="prose", dir="auto")
    words = words.replace("\0", "\\\\u0000")  # the reader would write another character, and read the backslash
    return tag("div", *_blocks(_reader().parse(words)), class_="prose", dir="auto")


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])


def _blocks(tokens: Sequence[Token]) -> Iterator[Markup]:
    links: list[tuple[str, str]] = []  # the addresses and titles of the links that are open
    words = ""  # of the innermost one
    for token in tokens:
        kind = token.type.removesuffix("_open").removesuffix("_close")
        if token.hidden:  # the paragraph in an item of a list without blank lines
            continue
        if token.type == "inline":
            yield from _blocks(token.children or ())
        elif kind == "link":
            if token.nesting > 0:
                links.append((str(token.attrs.get("href", "")), str(token.attrs.get("title", ""))))
                words = ""
            elif links:
                href, title = links.pop()
                if behind := " ".join(filter(None, ("" if href == words else href, title))):
                    yield tag("span", text(f" ({behind})", one_line=True), class_="small")
        elif kind == "heading":
            name = f"h{min(6, int(token.tag[1:]) + _BELOW)}"
            yield start(name) if token.nesting > 0 else end(name)
        elif kind in _ELEMENTS and token.nesting:
            number = token.info or None if kind == "list_item" else None  # of an ordered list
            yield start(_ELEMENTS[kind], value=number) if token.nesting > 0 else end(_ELEMENTS[kind])
        elif token.type in ("fence", "code_block"):
            yield _code(token)
        elif token.type == "code_inline":
            yield tag("code", text(token.content, one_line=True))
            words += token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield start("br")
        elif token.type == "hr":
            yield start("hr")
        else:
            yield from _lines(token.content)
            words += token.content


def _lines(words: str) -> Iterator[Markup]:
    for number, line in enumerate(words.split("\n")):
        if number:
            yield start("br")
        yield text(line)


def _code(token: Token) -> Markup:
    info = token.info.strip()
    named = [tag("span", text(info, one_line=True), class_="lang")] if info else []
    words = token.content.removesuffix("\n")
    return join([*named, tag("pre", Markup("\n"), tag("code", *coloured(words, info.split(" ")[0])), dir="auto")])


def coloured(words: str, language: str) -> Iterator[Markup]:
    """Code with its words in spans by kind, if Pygments is there and knows the language; else plain."""
    lexer = _lexer(language) if language and len(words) <= _LIT else None
    if lexer is None:
        yield text(words)
        return
    for kind, piece in lexer.get_tokens(words):
        colour = next((_COLOURS[name] for name in kind if name in _COLOURS), None)
        yield tag("span", text(piece), class_=colour) if colour else text(piece)


@cache
def _lexer(language: str) -> Any:
    """Pygments' lexer for a language; None if it is not installed, or does not know the language."""
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
