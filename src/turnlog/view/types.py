"""What a view is made of: messages with their origin, and the changes that made them so."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..log.messages import Form, Message, ToolResult, extra_keys

Treatment = Literal[
    "verbatim", "repaired", "joined", "synthetic", "cut", "masked", "placeholder", "replaced", "summarised"
]


class Shown(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A message as a view shows it.

    `records` are the numbers of the records it shows, in order; a synthetic message names the
    records that made it necessary.
    """

    message: Message
    records: tuple[int, ...]
    treatment: Treatment = "verbatim"

    def repaired(self, message: Message) -> Shown:
        """The same with another message, as repair leaves it."""
        return Shown(message, self.records, "repaired" if self.treatment == "verbatim" else self.treatment)


class Edit(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A change made so that the provider accepts the request; as a string, one sentence about it.

    `kind` is a short stable word, `detail` a sentence for people. `records` are the numbers of the records concerned,
    `path` is the JSON path inside the request body ("messages[3].content[0]"); which of the two is known depends on
    where the change was made, and `detail` does not repeat them. `rule` is what the provider would have answered.
    With `through`, the change concerns all records from the one in `records` to that number, except those that always
    stay.
    """

    kind: str
    detail: str
    records: tuple[int, ...] = ()
    rule: str = ""
    through: int = 0
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path} {self.detail}".lstrip()


class Loss(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Something of the conversation that this target cannot take, or takes in another place.

    Its fields are those of `Edit`. A loss is not damage: the log still has what this request leaves out.
    """

    kind: str
    detail: str
    records: tuple[int, ...] = ()
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path} {self.detail}".lstrip()


def without_extras(form: Form | None, *, name: str = "", own: str = "") -> str:
    """The end of a sentence about something that is shown as a text: what was said of it goes along. In a form of
    the provider `own` that is how it spells it."""
    keys = () if form is None or form.provider == own else extra_keys(form)
    left = [*keys, *([f"the name {name!r}"] if name else ())]
    return f", without {', '.join(left)}" if left else ""


def starts_turn(shown: Shown) -> bool:
    """Whether this is a user speaking, not a tool."""
    message = shown.message
    if message.role != "user":
        return False
    for part in message.parts:  # noqa: SIM110 - every message is asked twice; `any` takes three times as long
        if isinstance(part, ToolResult):
            return False
    return True
