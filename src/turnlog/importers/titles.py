"""Titles of sessions, from what a user wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..log.messages import Message, text_of
from ..redaction import cut_title
from .repeats import result_text


def title_from(message: Message | str) -> str:
    """A title from what a user wrote: its first line that is no markup, at most 80 characters."""
    text = message if isinstance(message, str) else result_text(message.parts)
    return next((cut_title(line) for line in _plain_lines(text)), "")


def task_title(messages: Iterable[Message]) -> str:
    """A title from the first user message of an agent's run.

    Its prompt comes from a template: markup, paths, and lines that lead to the task ("... the
    following issue:") say nothing. At most 80 characters.
    """
    asked = (text_of(message) for message in messages if message.role == "user")
    plain = list(_plain_lines(next(filter(None, asked), "")))
    told = (line for line in plain if not line.endswith(":") and not line.startswith("/"))
    return cut_title(next(told, plain[0] if plain else ""))


def _plain_lines(text: str) -> Iterator[str]:
    """The lines of a text that are no markup, without the marks of headings."""
    for line in text.splitlines():
        plain = line.strip().lstrip("#").strip()
        if plain and not plain.startswith("<"):
            yield plain
