"""A record of each kind with another secret in each of its fields that may hold words, made from the declared types."""

from __future__ import annotations

import types
import typing
from decimal import Decimal
from typing import Any

import msgspec
from planted import letters

from turnlog.log.records import Body, SealedRecord, UnknownRecord

__all__ = ["KINDS", "Planted"]

KINDS = tuple(kind for kind in typing.get_args(Body) if kind not in (SealedRecord, UnknownRecord))
"""The kinds of records that are made of fields. Encrypted records, and those of a newer version, are bytes."""

_SCALARS: dict[Any, Any] = {int: 1, float: 0.5, bool: False, type(None): None, Decimal: Decimal("0.5")}


class Planted:
    """Makes secrets, and knows of each in which field it is (`Media.mime`)."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}

    def secret(self, field: str) -> str:
        """A new secret, which is in that field."""
        tail = letters(f"{field} {len(self.fields)}", 36)
        self.fields[tail[12:].lower()] = field
        return f"ghp_{tail}"

    def body(self, kind: type, field: str = "") -> list[Any]:
        """Values of a declared type: one for each type that it may have, with a secret in each field of it."""
        arguments = typing.get_args(kind)
        match typing.get_origin(kind) or kind:
            case typing.Union | types.UnionType:
                kinds = [one for one in arguments if one is not type(None)]
                return [value for one in kinds for value in self.body(one, field)]
            case typing.Literal:
                return [arguments[-1]]
            case origin if origin is tuple:
                return [tuple(self.body(arguments[0], field))]
            case origin if origin is dict or origin is Any:
                return [{"of": [self.secret(field)], self.secret(field): 1}]
            case origin if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
                return [self._struct(origin)]
            case origin:
                return [self.secret(field) if origin is str else _SCALARS[origin]]

    def _struct(self, kind: type) -> Any:
        hints = typing.get_type_hints(kind)
        names = [name for name in kind.__struct_fields__ if name in hints]  # type: ignore[attr-defined]
        return kind(**{name: self.body(hints[name], f"{kind.__name__}.{name}")[-1] for name in names})

    def found_in(self, data: bytes) -> set[str]:
        """The fields whose secrets are in these bytes, in any case of letters."""
        text = data.decode("latin-1").lower()
        return {field for tail, field in self.fields.items() if tail in text}
