"""How renderers record what a request cannot express."""

from __future__ import annotations

from ..log.messages import Form, extra_keys
from ..view.types import Loss, Shown


class Losses:
    """The losses of one request, in the order in which they were met, by the records of the message at hand.

    With `apart`, each key that another provider's form has and this one has no place for is a loss of its own.
    """

    def __init__(self, provider: str, *, apart: bool = False) -> None:
        self.made: list[Loss] = []
        self.records: tuple[int, ...] = ()
        self._provider = provider
        self._apart = apart

    def add(self, kind: str, detail: str) -> None:
        """Record that something of the message at hand is left out, or stands elsewhere."""
        self.made.append(Loss(kind, detail, self.records))

    def begin(self, shown: Shown) -> None:
        """Take the next message, and record what has no place here of it as a whole."""
        message, self.records = shown.message, shown.records
        self.extras(message.form, f"a {message.role} message")

    def extras(self, form: Form | None, what: str) -> None:
        """Record the keys of another provider's form, which is that of `what`."""
        keys = extra_keys(form) if form is not None and form.provider != self._provider else ()
        for some in keys if self._apart else [", ".join(keys)] if keys else ():
            self.add("extra", f"{some} of {what} left out")

    def author(self, name: str) -> None:
        """Record that an author's name has no place here."""
        if name:
            self.add("extra", f"author's name {name!r} left out")
