"""How renderers record what a request cannot express."""

from __future__ import annotations

from .._platform.units import an
from ..log.messages import Form, extra_keys
from ..view.types import Loss, Shown


class Losses:
    """The losses of one request, in order, with the records of the current message.

    With `apart`, each key of another provider's form is a separate loss; otherwise all keys of a form are one loss.
    """

    def __init__(self, provider: str, *, apart: bool = False) -> None:
        self.made: list[Loss] = []
        self.records: tuple[int, ...] = ()
        self._provider = provider
        self._apart = apart

    def add(self, kind: str, detail: str) -> None:
        """Record that something of the current message is left out or moved."""
        self.made.append(Loss(kind, detail, self.records))

    def begin(self, shown: Shown) -> None:
        """Start the next message, and record the keys of its form that cannot be sent."""
        message, self.records = shown.message, shown.records
        if message.form is not None:
            self.extras(message.form, f"{an(message.role)} message")

    def extras(self, form: Form | None, what: str) -> None:
        """Record the keys in another provider's form of `what`, because they cannot be sent."""
        if form is None or form.provider == self._provider:
            return
        keys = extra_keys(form)
        for some in keys if self._apart else [", ".join(keys)] if keys else ():
            self.add("extra", f"{some} of {what} left out")

    def author(self, name: str) -> None:
        """Record that an author's name cannot be sent."""
        if name:
            self.add("extra", f"author's name {name!r} left out")
