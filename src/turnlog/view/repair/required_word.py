"""Settings that require a word in the conversation.

The word may leave a view with the message that contained it, so it is looked for in what is sent. If no message
contains it, a message with it is added at the end: earlier messages, and so the prompt cache, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...log.messages import Message, Text
from ...log.texts import leaf_parts
from ..rules import Rules
from ..types import Edit, Shown


def contains_word(view: Sequence[Shown], rules: Rules) -> bool:
    """Whether a text of some message contains the word that the rules require; False if they require none."""
    required = rules.word
    if required is None:
        return False
    outside = required.outside
    return any(
        isinstance(part, Text) and required.word in part.text.lower()
        for shown in view
        if outside is None or not outside(shown.message)
        for part in leaf_parts(shown.message.parts)
    )


def add_word(view: list[Shown], rules: Rules, edits: list[Edit]) -> None:
    """Add a message with the word that the rules require; for views that do not contain it."""
    required = rules.word
    if required is None:
        return
    records = view[-1].records if view else ()
    view.append(Shown(Message("user", (Text(required.text),)), records, "synthetic"))
    edits.append(
        Edit("word", f"a user message added that says {required.word!r}: {required.setting} requires it", records)
    )
