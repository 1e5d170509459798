"""Titles of sessions, made from the user's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import CorruptRecord
from ..log.messages import Message, text_of
from ..log.store import Store
from ..redaction.store import cut_title
from ..view.fold import as_shown
from ..view.types import starts_turn
from .repeats import result_text

_BEGINNING = 8
"""The number of first records that are searched for a session's first words."""


def title_from(message: Message | str) -> str:
    """A title from a user message: its first line that is not markup, at most 80 characters."""
    text = message if isinstance(message, str) else result_text(message.parts)
    return next((cut_title(line) for line in _plain_lines(text)), "")


def first_words(store: Store, session_id: str) -> str:
    """The beginning of the user's first message, for a session without a title; "" if it is not in the first
    records."""
    try:
        entries = (entry for record in store.read(session_id, last=_BEGINNING) for entry in as_shown(record))
        return next((title for entry in entries if starts_turn(entry) and (title := title_from(entry.message))), "")
    except CorruptRecord:  # commands that read the session report this
        return ""


def task_title(messages: Iterable[Message]) -> str:
    """A title from the first user message of an agent's run.

    The agent's prompt comes from a template: markup, paths, and lines that introduce the task ("... the following
    issue:") do not describe it. At most 80 characters.
    """
    prompts = (text_of(message) for message in messages if message.role == "user")
    plain = list(_plain_lines(next(filter(None, prompts), "")))
    candidates = (line for line in plain if not line.endswith(":") and not line.startswith("/"))
    return cut_title(next(candidates, plain[0] if plain else ""))


def _plain_lines(text: str) -> Iterator[str]:
    """The lines of a text that are not markup, without heading marks."""
    for line in text.splitlines():
        plain = line.strip().lstrip("#").strip()
        if plain and not plain.startswith("<"):
            yield plain
