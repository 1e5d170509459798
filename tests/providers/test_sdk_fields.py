"""Each field of the installed SDKs is known, passed through, or refused on purpose (scripts/sdk_fields.py)."""

from __future__ import annotations

import importlib.util
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest
import typing_extensions

from turnlog.providers.schema.shapes import ANY, OBJECT, Either, Many, ObjectShape, Tagged, record, words

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that walks the SDKs' types."""
    spec = importlib.util.spec_from_file_location("sdk_fields", ROOT / "scripts/sdk_fields.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # typing looks the module of a NamedTuple up
    spec.loader.exec_module(module)
    return module


APIS = ("anthropic", "google", "google-interactions", "openai-chat", "openai-responses")


@pytest.mark.slow
@pytest.mark.parametrize("name", APIS)
def test_somebody_has_decided_about_every_field(script: ModuleType, name: str) -> None:
    """A field of a newer SDK would be dropped from requests, or lost from answers, and nobody would know."""
    pytest.importorskip(script.APIS[name].sdk, reason=f"the SDK of {name} is not installed")
    decided = script.decisions()[name]
    assert script.request_of(name) == decided["request"].keys(), (
        f"run scripts/sdk_fields.py, decide, edit {script.DECISIONS}"
    )
    assert script.response_of(name) == decided["response"].keys(), f"run scripts/sdk_fields.py, edit {script.DECISIONS}"


@pytest.mark.parametrize("name", APIS)
def test_decisions_have_reasons(script: ModuleType, name: str) -> None:
    """A field that was only listed is not decided about; one that is `read` must occur in the code that reads."""
    folder = ROOT / "src/turnlog/providers" / name.replace("-", "_")
    code = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    code += (folder.parent / "error_bodies.py").read_text("utf-8")
    for side, decided in script.decisions()[name].items():
        for path, reason in decided.items():
            assert reason, path
            if reason == "read":
                assert side == "response" and path.partition(".")[2] in code, path


def test_the_script_knows_all_apis(script: ModuleType) -> None:
    """An API without a line would be checked by nobody."""
    assert sorted(script.APIS) == sorted(script.decisions()) == sorted(APIS)


class Inner(typing_extensions.TypedDict):
    type: typing.Literal["text", "new"]
    text: str
    added: str


class Outer(typing_extensions.TypedDict, total=False):
    known: str
    fresh: int
    parts: str | typing.Iterable[Inner]
    level: typing_extensions.Required[typing.Literal["low", "high", "huge"]]
    free: dict[str, int]
    nested: Inner


def test_what_is_new_is_found(script: ModuleType) -> None:
    """The walk would be silent on a new field, a new type of block, or a new word."""
    text = record("type! text!")
    shape = ObjectShape(
        {
            "known": record().keys.get("known", ANY),
            "parts": Either((Many(Tagged("type", {"text": text})),)),
            "level": words("low high"),
            "free": OBJECT,
            "nested": text,
        }
    )
    assert {*script.undecided(Outer, shape, "", set())} == {
        "fresh", "parts[]<text>.added", "parts[]<new>", "level=huge", "nested.added",
    }  # fmt: skip
