"""The schema language of all wire formats, and the walker that applies a schema to a value.

Each provider states each object once, in its own `schema.py`: parsers check the JSON types that they rely on,
sanitizers remove what would be refused, and both report the path. The provider folders beside it import this package.
"""

from __future__ import annotations

from .shapes import (
    ANY,
    CALL_OPTIONS,
    FLAG,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TYPES,
    Each,
    Either,
    Many,
    NamedShape,
    ObjectShape,
    Read,
    Schema,
    Shape,
    Tagged,
    Value,
    WordShape,
    maybe,
    record,
    words,
)
from .walk import check_depth, check_types, fit, fits, fitted, prune

__all__ = [
    "ANY",
    "CALL_OPTIONS",
    "Each",
    "Either",
    "FLAG",
    "INTEGER",
    "Many",
    "NUMBER",
    "NamedShape",
    "OBJECT",
    "ObjectShape",
    "Read",
    "STRING",
    "Schema",
    "Shape",
    "TYPES",
    "Tagged",
    "Value",
    "WordShape",
    "check_depth",
    "check_types",
    "fit",
    "fits",
    "fitted",
    "maybe",
    "prune",
    "record",
    "words",
]
