"""The schema of a request to Parrot."""

from __future__ import annotations

from turnlog.providers.schema.shapes import ANY, OBJECT, Each, Many, Tagged, record, words
from turnlog.providers.spelling import Forms

NAME = "parrot"
FORMS = Forms(NAME)

_WORDS = record("type! *words!")
BLOCKS = {
    "words": _WORDS,
    "ask": record("type! *id! *tool!", {"args!": Each(ANY)}),
    "reply": record("type! *id! failed:flag", {"*beak!": Many(_WORDS)}),
}
TURN = record("", {"role!": words("keeper bird house"), "*beak!": Many(Tagged("type", BLOCKS))})
TOOL = record("trick! about", {"needs": OBJECT})
BODY = record(
    "model bit_by_bit:flag",
    {
        "*squawks!": Many(TURN),
        "*tools": Many(TOOL),
        "manner": record("max_tokens:int temperature:num"),
        "mould": OBJECT,
        "perform": words("auto none required"),
    },
)
