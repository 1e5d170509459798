"""Functions that the checks of stores share: drafts of messages, the texts of a session, and errors that must be
raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import TurnlogError
from ..log.messages import Media, Message, Text
from ..log.records import MessageRecord, Record
from ..log.store import Draft, Store

_Refusal = TypeVar("_Refusal", bound=TurnlogError)


def said(text: str, *, time: str = "", blob: str = "") -> Draft:
    """A draft of a user message; with an image if the name of a blob is given."""
    media = (Media("image", sha256=blob),) if blob else ()
    return Draft(MessageRecord(Message("user", (Text(text), *media))), time)


def texts(store: Store, session: str) -> list[str]:
    """The texts of a session, oldest first."""
    messages = [record.message for record in store.read(session)]
    return [part.text for message in messages if message for part in message.parts if isinstance(part, Text)]


def content(records: Sequence[Record]) -> list[str]:
    """Records as text, for comparing: bodies may contain NaN, which is not equal to itself."""
    return [repr((record.n, record.time, record.body)) for record in records]


def raises(kind: type[_Refusal], what: str, use: Callable[..., object], *values: object, **options: object) -> _Refusal:
    """Call `use` and return the error of type `kind` that it raises. Raises AssertionError if it raises no error, or
    another one."""
    try:
        use(*values, **options)
    except kind as error:
        return error
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}, not {kind.__name__}") from error
    raise AssertionError(f"{what} did not raise {kind.__name__}")
