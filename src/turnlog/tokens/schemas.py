"""Resolve references in JSON schemas of tools, within limits: a schema may refer to itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..log.references import keys_of, step

_DEPTH = 6


_MOST = 5_000


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


class References:
    """The references of one schema document.

    A recursive schema never ends, and a small schema can expand to millions: after 6 nested references or 5,000
    schemas, `may_enter` is false, and the caller treats the schema as unknown.
    """

    def __init__(self, root: Any) -> None:
        self._root = mapping(root)
        self._seen = 0

    def may_enter(self, depth: int) -> bool:
        """Whether to read one more schema at this depth."""
        self._seen += 1
        return depth <= _DEPTH and self._seen <= _MOST

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema that `$ref` refers to; a schema without one is returned as it is."""
        for _ in range(_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            target: Any = self._root if reference.startswith("#") else None
            for key in keys_of(reference):
                target = step(target, key)
            schema = mapping(target)
        return schema
