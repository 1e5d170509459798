"""JSON schemas of tools, followed with a limit: they come from anywhere and may refer to themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEPTH = 6
_MOST = 5_000


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


class Following:
    """References of one document, resolved while its reader keeps within depth and number.

    A recursive schema has no end and a small one can unfold to millions: after 6 references below
    each other, or 5,000 schemas, `may` says no and the reader writes what it writes for anything.
    """

    def __init__(self, root: Any) -> None:
        self._root = mapping(root)
        self._seen = 0

    def may(self, depth: int) -> bool:
        """Whether to go into one more schema, `depth` deep."""
        self._seen += 1
        return depth <= _DEPTH and self._seen <= _MOST

    def referred(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a `$ref` stands for; a schema without one stands for itself."""
        for _ in range(_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            target: Any = self._root
            for key in reference.lstrip("#/").split("/"):
                target = mapping(target).get(key)
            schema = mapping(target)
        return schema
