"""Records of every kind in which each text is another, made from their declared types."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from turnlog.log.records import Body

__all__ = ["bodies"]

_WORDS = st.uuids().map(str)
_JSONS = st.dictionaries(_WORDS, st.lists(_WORDS, min_size=1, max_size=2), min_size=1, max_size=2)
_SCALARS = {int: st.integers(0, 9), float: st.just(0.5), bool: st.booleans(), str: _WORDS, bytes: st.just(b"x")}


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a declared type in which each text is another."""
    arguments = typing.get_args(kind)
    match typing.get_origin(kind) or kind:
        case typing.Any:
            return _JSONS
        case typing.Union | types.UnionType:
            return st.one_of(*map(_values, arguments))
        case typing.Literal:
            return st.sampled_from(arguments)
        case origin if origin is dict:
            return _JSONS
        case origin if origin is tuple:
            return st.lists(_values(arguments[0]), max_size=2).map(tuple)
        case origin if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            hints = typing.get_type_hints(origin)
            return st.builds(origin, **{name: _values(hints[name]) for name in origin.__struct_fields__})
        case origin:
            return _SCALARS.get(origin, st.none())


bodies = _values(Body)
"""Bodies of records. Their texts are different UUIDs."""
