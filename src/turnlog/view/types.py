"""The elements of a view: messages with the records they come from, and the changes made to them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..log.messages import Form, Message, ToolResult, extra_keys

Treatment = Literal[
    "verbatim",
    "repaired",
    "joined",
    "synthetic",
    "appended",
    "curated",
    "cut",
    "masked",
    "placeholder",
    "replaced",
    "summarised",
    "noted",
]


class Shown(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A message as a view shows it.

    `records` are the numbers of the records that the message shows, in order; for a synthetic message, those of the
    records that made it necessary.
    """

    message: Message
    records: tuple[int, ...]
    treatment: Treatment = "verbatim"

    @property
    def stands_in(self) -> bool:
        """Whether the message replaces records that are left out: it is a summary of them, or a note of the orders in
        them."""
        return self.treatment in ("summarised", "noted")

    @property
    def as_recorded(self) -> bool:
        """Whether the message has the texts on record, although it may be repaired, joined or moved."""
        return self.treatment in ("verbatim", "repaired", "joined", "appended")

    def repaired(self, message: Message) -> Shown:
        """A copy with the repaired `message`."""
        return Shown(message, self.records, "repaired" if self.treatment == "verbatim" else self.treatment)


class Edit(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A change made so that the provider accepts the request; as a string, one sentence about it.

    `kind` is a short stable word, `detail` a sentence for people. `records` are the numbers of the records concerned,
    `path` is the JSON path inside the request body ("messages[3].content[0]"); which of the two is known depends on
    where the change was made, and `detail` does not repeat them. `rule` is the error that the provider would have
    returned. With `through`, the change concerns all records from the one in `records` to that number, except those
    that always stay.
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
    """Content of the conversation that this target does not accept, or accepts only in another place.

    The fields are those of `Edit`. A loss is not damage: the log still has what this request leaves out.
    """

    kind: str
    detail: str
    records: tuple[int, ...] = ()
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path} {self.detail}".lstrip()


def without_extras(form: Form | None, *, name: str = "", own: str = "") -> str:
    """The end of a sentence about content that is shown as text: it names the extra keys and the `name` lost with that
    content. The keys of a form of the provider `own` are skipped, as they are only spelling."""
    keys = () if form is None or form.provider == own else extra_keys(form)
    left = [*keys, *([f"the name {name!r}"] if name else ())]
    return f", without {', '.join(left)}" if left else ""


def starts_turn(shown: Shown) -> bool:
    """Whether this message comes from a user, not from a tool."""
    message = shown.message
    if message.role != "user":
        return False
    for part in message.parts:  # noqa: SIM110 - called twice for every message; `any` takes three times as long
        if isinstance(part, ToolResult):
            return False
    return True
