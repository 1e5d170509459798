"""Markdown as lines for a terminal, laid out by rich.

rich shows what Markdown means and obeys what it says: markup that Markdown hides is shown as text here, and characters
are escaped after Markdown was read, because it can spell them (`&#27;`).
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, RenderableType
from rich.markdown import Markdown

from .._platform.visible import visible


def columns() -> int:
    """The width of the terminal."""
    return max(20, shutil.get_terminal_size().columns)


def lines_of(*shown: RenderableType) -> str:
    """The text that shows these on a terminal of this width; without colours if `NO_COLOR` is set or the terminal has
    none."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        width=columns() - 1,
        color_system=None if plain else "standard",
        no_color=plain,
        highlight=False,
        legacy_windows=False,
    )
    for renderable in shown:
        console.print(renderable)
    return stream.getvalue()


def markdown(text: str) -> str:
    """Markdown as lines, with the control characters of the text escaped. HTML and the addresses of images are shown
    as they are written."""
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    reader = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
    shown.parsed = reader.parse(visible(text))
    _escape(shown.parsed)
    return lines_of(shown)


def _escape(tokens: Iterable[Token]) -> None:
    for token in tokens:
        token.content, token.info = visible(token.content), visible(token.info, one_line=True)
        token.attrs = {key: visible(value) if isinstance(value, str) else value for key, value in token.attrs.items()}
        _escape(token.children or ())
