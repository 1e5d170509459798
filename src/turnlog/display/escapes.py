"""HTML, composed so that no text can become markup.

Only this module creates `Markup`: from a text by escaping it, or from a tag around markup. mypy checks that all other
code uses it. Attributes are constants or escaped as well.
"""

from __future__ import annotations

from typing import NewType

from .._platform.stdlib import html
from .._platform.visible import visible

Markup = NewType("Markup", str)
"""Text that a browser may interpret as HTML."""


def text(words: str, *, one_line: bool = False) -> Markup:
    r"""A text for readers: escaped, with invisible characters as `\uXXXX`."""
    return Markup(html.escape(visible(words, one_line=one_line)))


def start(name: str, /, **attributes: str | None) -> Markup:
    """A start tag. `class_` is `class`, `http_equiv` is `http-equiv`; None leaves an attribute out and "" leaves it
    without a value."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + (f'="{text(value, one_line=True)}"' if value else "")
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>")


def end(name: str) -> Markup:
    """An end tag."""
    return Markup(f"</{name}>")


def tag(name: str, /, *inside: Markup, **attributes: str | None) -> Markup:
    """An element around markup."""
    return join((start(name, **attributes), *inside, end(name)))


def join(pieces: tuple[Markup, ...] | list[Markup]) -> Markup:
    """The pieces of markup, concatenated."""
    return Markup("".join(pieces))
