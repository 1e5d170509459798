"""A JSON object that knows which of its fields were read, so that none is left out in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from .json_values import word
from .repeats import is_empty


class Fields:
    """An object of a transcript, of unknown types. Each method marks what it returns as read, if it has the type that
    is asked for; `unread` is everything else."""

    def __init__(self, value: Any) -> None:
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else {}
        self._read: set[str] = set()
        self._noise: tuple[str, ...] = ()
        self._inner: dict[str, list[Fields | Any]] = {}

    def get(self, *keys: str) -> Any:
        """The value of the first of these keys that has one, whatever it is; None if none has. All count as read."""
        self._read.update(keys)
        return next((self.value[key] for key in keys if self.value.get(key) is not None), None)

    def text(self, *keys: str) -> str:
        """The first of these values that is a text; "" if none is. All texts among them count as read."""
        found = ""
        for key in keys:
            value = self.value.get(key)
            if isinstance(value, str):
                self._read.add(key)
                found = found or value
        return found

    def inside(self, key: str, *path: str) -> Fields:
        """The object under a key, or at a path of keys; an empty one if there is none."""
        value = self.value.get(key)
        if key not in self._inner:
            self._inner[key] = [self._of(value)] if isinstance(value, dict) else []
        inner: Fields = next(iter(self._inner[key]), None) or Fields(None)
        return inner.inside(*path) if path else inner

    def each(self, key: str, text: str = "") -> list[Fields]:
        """The objects in the list under a key; what is none of them stays unread. A text in it becomes an object with
        the text under the key `text`, if that is given."""
        value = self.value.get(key)
        if isinstance(value, list) and key not in self._inner:
            each = [{text: item} if text and isinstance(item, str) else item for item in value]
            self._inner[key] = [self._of(item) if isinstance(item, dict) else item for item in each]
        return [item for item in self._inner.get(key, ()) if isinstance(item, Fields)]

    def _of(self, value: dict[str, Any]) -> Fields:
        inner = Fields(value)
        inner.skip_everywhere(self._noise)
        return inner

    def skip(self, *keys: str) -> None:
        """Leave fields out that say nothing of the conversation, or repeat it."""
        self._read.update(keys)

    def skip_everywhere(self, keys: Iterable[str]) -> None:
        """Leave such fields out of the objects in this one, too, as far as they are read."""
        self._noise = (*self._noise, *keys)
        self._read.update(self._noise)
        for inner in chain.from_iterable(self._inner.values()):
            if isinstance(inner, Fields):
                inner.skip_everywhere(self._noise)

    def unread(self) -> dict[str, Any]:
        """Every value that was not read and says something, by its path."""
        return {} if self._read.issuperset(self.value) else dict(self._unread(""))

    def _unread(self, path: str) -> Iterator[tuple[str, Any]]:
        for key, value in self.value.items():
            if key in self._read or is_empty(value):
                continue
            inner = self._inner.get(key)
            if not inner:
                yield path + key, value
                continue
            for number, item in enumerate(inner):
                place = f"{path}{key}[{number}]" if isinstance(value, list) else path + key
                if isinstance(item, Fields):
                    yield from item._unread(f"{place}.")
                elif not is_empty(item):
                    yield place, item


def kind_of(fields: Fields, *keys: str) -> str:
    """The kind of an entry, from the first of these keys; "unknown" if it has none."""
    return fields.text(*keys) or "unknown"


def as_text(value: Any) -> str:
    """The text of a number, or the text itself; "" for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else word(value)
