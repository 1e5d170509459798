"""References in JSON schemas lead somewhere when a provider reads them, and nothing else changes."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.references import with_references

NAMES = st.sampled_from(["A", "B", "a/b", "50%25", "~0"])
REFERENCES = st.one_of(
    st.sampled_from(
        "# #/ #/$defs/A #/$defs/B #/definitions/A #/definitions/B #/$defs/a~1b #/$defs/50%2525 #/$defs/~00 "
        "#/$defs/A/properties/B #/properties/A #/properties/A/$defs/B #/$defs/A/anyOf/0 #node #gone #/$defs "
        "#/properties/A/items/3 https://x.test/a.json a.json b.json#/$defs/A b.json http://[".split()
    )
)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda ref: {"$ref": ref}, REFERENCES),
    st.builds(lambda ref: {"$ref": ref, "description": "d", "default": {"$ref": "#/no"}}, REFERENCES),
    st.builds(
        lambda ref: {"oneOf": [{"$ref": ref}], "discriminator": {"propertyName": "k", "mapping": {"a": ref, "b": "B"}}},
        REFERENCES,
    ),
    st.sampled_from([{"type": "string"}, {"type": "integer"}, True, {"enum": [{"$ref": "#/nowhere"}]}, "text", {}]),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "$defs": named,
            "definitions": named,
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "$id": st.sampled_from(["https://x.test/a.json", "b.json", "#node", "http://["]),
            "$schema": st.just("https://json-schema.org/draft/2020-12/schema"),
            "$anchor": st.just("node"),
            "$ref": REFERENCES,
            "$comment": st.just("c"),
        },
    )


SCHEMAS = st.recursive(LEAVES, _larger, max_leaves=25).map(
    lambda one: {"type": "object", **(one if isinstance(one, dict) else {"properties": {"A": one}})}
)


@given(SCHEMAS)
def test_every_reference_leads_somewhere(oracle: ModuleType, schema: dict[str, Any]) -> None:
    """A provider refuses the whole request for one reference that leads nowhere, or guesses."""
    given_schema = copy.deepcopy(schema)
    mended, changes = with_references(schema)
    assert schema == given_schema
    assert oracle.schema_refs(mended) == []
    assert bool(changes) == (mended is not schema) == (mended != schema)
    assert with_references(mended) == (mended, ())
    assert all(one.path and one.detail and one.rule for one in changes)


@given(
    SCHEMAS.filter(lambda one: not any(word in str(one) for word in ("$id", "$schema", "'#/$defs'", "#node", "b.json")))
)
def test_a_sound_schema_stays_the_same_object(oracle: ModuleType, schema: dict[str, Any]) -> None:
    """Other bytes than yesterday miss the prompt cache, and a body that is fine must come back as it was."""
    names = [one for one in ("'$defs': {", "'definitions': {") if str(schema).count(one) > 1]
    if not oracle.schema_refs(schema) and not names:
        assert with_references(schema)[0] is schema


def below(name: str, kind: str, **more: Any) -> dict[str, Any]:
    """A schema as pydantic makes it: its definitions stand where it begins."""
    return {"$defs": {name: {"type": kind, **more}}, "$ref": f"#/$defs/{name}"}


TREE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "two definitions of one name stay two, three equal ones become one": (
        {"properties": {"a": below("I", "string"), "b": below("I", "null"), "c": below("I", "null")}},
        {
            "properties": {"a": {"$ref": "#/$defs/I"}, "b": {"$ref": "#/$defs/I_2"}, "c": {"$ref": "#/$defs/I_2"}},
            "$defs": {"I": {"type": "string"}, "I_2": {"type": "null"}},
        },
        [
            ".properties.a.$defs.I moved to '#/$defs/I'",
            ".properties.b.$defs.I moved to '#/$defs/I_2'",
            ".properties.c.$defs.I left out: '#/$defs/I_2' is the same",
        ],
    ),
    "what reads the same may mean something else": (
        {
            "properties": {
                "a": {"$ref": "#/$defs/O", "$defs": {"O": {"items": {"$ref": "#/$defs/I"}}, "I": {"type": "null"}}},
                "b": {"$ref": "#/$defs/O", "$defs": {"O": {"items": {"$ref": "#/$defs/I"}}, "I": {"type": "string"}}},
            }
        },
        {
            "properties": {"a": {"$ref": "#/$defs/O"}, "b": {"$ref": "#/$defs/O_2"}},
            "$defs": {
                "O": {"items": {"$ref": "#/$defs/I"}},
                "I": {"type": "null"},
                "O_2": {"items": {"$ref": "#/$defs/I_2"}},
                "I_2": {"type": "string"},
            },
        },
        [
            ".properties.a.$defs.O moved to '#/$defs/O'",
            ".properties.a.$defs.I moved to '#/$defs/I'",
            ".properties.b.$defs.O moved to '#/$defs/O_2'",
            ".properties.b.$defs.I moved to '#/$defs/I_2'",
        ],
    ),
    "the nearest definition is meant, not the one at the root": (
        {"properties": {"a": below("I", "string"), "b": {"$ref": "#/$defs/I"}}, "$defs": {"I": {"type": "null"}}},
        {
            "properties": {"a": {"$ref": "#/$defs/I_2"}, "b": {"$ref": "#/$defs/I"}},
            "$defs": {"I": {"type": "null"}, "I_2": {"type": "string"}},
        },
        [".properties.a.$defs.I moved to '#/$defs/I_2'"],
    ),
    "a recursive model": (
        {"properties": {"tree": {"$defs": {"Tree": TREE}, "$ref": "#/$defs/Tree"}}},
        {"properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}},
        [".properties.tree.$defs.Tree moved to '#/$defs/Tree'"],
    ),
    "a document inside another, relative to itself": (
        {"properties": {"tree": {"$schema": "s", "properties": {"kids": {"items": {"$ref": "#"}}}}}},
        {
            "properties": {"tree": {"$ref": "#/$defs/tree"}},
            "$defs": {"tree": {"properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}}},
        },
        [".properties.tree moved to '#/$defs/tree'", ".properties.tree.$schema dropped"],
    ),
    "by `$id`": (
        {
            "$defs": {"B": {"$id": "b.json", "type": "null"}},
            "properties": {"a": {"$id": "https://x.test/a.json", "items": {"$ref": "b.json"}}, "b": {"$ref": "b.json"}},
        },
        {
            "$defs": {"B": {"type": "null"}},
            "properties": {"a": {"items": {"$ref": "#/$defs/B"}}, "b": {"$ref": "#/$defs/B"}},
        },
        [
            ".properties.a.items.$ref 'b.json' sent as '#/$defs/B'",
            ".properties.b.$ref 'b.json' sent as '#/$defs/B'",
            ".$defs.B.$id dropped",
            ".properties.a.$id dropped",
        ],
    ),
    "siblings stay, and so do names that look like keywords": (
        {"properties": {"$ref": {**below("I", "string"), "description": "d"}, "$defs": {"type": "object"}}},
        {
            "properties": {"$ref": {"$ref": "#/$defs/I", "description": "d"}, "$defs": {"type": "object"}},
            "$defs": {"I": {"type": "string"}},
        },
        [".properties.$ref.$defs.I moved to '#/$defs/I'"],
    ),
    "a mapping of a discriminator goes with its definitions": (
        {
            "properties": {
                "a": below("C", "null"),
                "b": {
                    "oneOf": [{"$ref": "#/$defs/C"}],
                    "discriminator": {"propertyName": "k", "mapping": {"c": "#/$defs/C", "d": "#/$defs/D"}},
                    "$defs": {"C": {"type": "object"}},
                },
            }
        },
        {
            "properties": {
                "a": {"$ref": "#/$defs/C"},
                "b": {
                    "oneOf": [{"$ref": "#/$defs/C_2"}],
                    "discriminator": {"propertyName": "k", "mapping": {"c": "#/$defs/C_2"}},
                },
            },
            "$defs": {"C": {"type": "null"}, "C_2": {"type": "object"}},
        },
        [
            ".properties.a.$defs.C moved to '#/$defs/C'",
            ".properties.b.$defs.C moved to '#/$defs/C_2'",
            ".properties.b.discriminator.mapping.d dropped: '#/$defs/D' leads nowhere",
        ],
    ),
    "a definition under the other keyword": (
        {"properties": {"a": {"$ref": "#/definitions/I"}}, "$defs": {"I": {"type": "null"}}},
        {"properties": {"a": {"$ref": "#/$defs/I"}}, "$defs": {"I": {"type": "null"}}},
        [".properties.a.$ref '#/definitions/I' sent as '#/$defs/I'"],
    ),
    "equal definitions of which one closes a circle": (
        {
            "properties": {
                "a": {"$defs": {"B": {"$ref": "#/$defs/C"}}},
                "b": {"definitions": {"C": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"$ref": "#/$defs/C"}}},
            }
        },
        {
            "properties": {"a": {}, "b": {}},
            "$defs": {"B": {"$ref": "#/definitions/C"}, "B_2": {}},
            "definitions": {"C": {"$ref": "#/$defs/B_2"}},
        },
        [
            ".properties.a.$defs.B moved to '#/$defs/B'",
            ".properties.b.definitions.C moved to '#/definitions/C'",
            ".properties.b.$defs.B moved to '#/$defs/B_2'",
            ".properties.b.$defs.B.$ref dropped: '#/$defs/C' leads to itself without end, so any value is allowed",
        ],
    ),
    "nowhere, and in a circle": (
        {
            "properties": {"a": {"$ref": "#/$defs/Gone", "title": "t"}, "b": {"$ref": "#/$defs/B"}},
            "$defs": {"B": {"$ref": "#/$defs/B"}},
        },
        {"properties": {"a": {"title": "t"}, "b": {"$ref": "#/$defs/B"}}, "$defs": {"B": {}}},
        [
            ".properties.a.$ref dropped: '#/$defs/Gone' leads nowhere",
            ".$defs.B.$ref dropped: '#/$defs/B' leads to itself without end, so any value is allowed",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_a_schema(name: str) -> None:
    """A reference that leads to another definition than was meant has the model give values that the tool refuses."""
    schema, wanted, said = CASES[name]
    mended, changes = with_references(schema)
    assert mended == wanted
    assert [f"{one.path} {one.detail}" for one in changes] == said


def test_google_spells_references_without_a_sign() -> None:
    """Google's typed schemas have `ref` and `defs`, which no other reader knows."""
    schema = {"properties": {"a": {"ref": "#/defs/I", "defs": {"I": {"type": "STRING"}}}}}
    assert with_references(schema) == (schema, ())
    assert with_references(schema, "ref")[0] == {
        "properties": {"a": {"ref": "#/defs/I"}},
        "defs": {"I": {"type": "STRING"}},
    }
