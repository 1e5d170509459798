"""The system prompt in sections, as the log keeps it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class When(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """The conditions of a section of the system prompt. All that are given must hold.

    `tool`: the model may call a tool of this name. `used`: it called a tool of this name in the last `turns` turns of
    the user. `provider`: requests go to this provider. `label`: the prompt has this label.
    """

    tool: str = ""
    used: str = ""
    turns: int = 3
    provider: str = ""
    label: str = ""


class PromptSection(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """One section of the system prompt. `text` is its text, or for one that `changes` its last text at the beginning of
    requests. The other fields are those of `turnlog.prompt.Section`."""

    name: str
    text: str = ""
    place: Literal["start", "late"] = "start"
    when: When = When()
    cap: int = 0
    priority: int | None = None
    changes: bool = False


class PromptRecord(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="prompt"):
    """The sections of the system prompt from here on, in order, and its labels.

    What requests show of them is on record apart: as system text, and as messages that name their `section`.
    `max_tokens` is the most tokens of all sections together; 0: half of what a request may have.
    """

    sections: tuple[PromptSection, ...] = ()
    labels: tuple[str, ...] = ()
    max_tokens: int = 0
