"""A provider is one folder and one row: one that nobody has is added so, and everything runs with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from parrot.sample import BODY, TRICK

from turnlog.errors import InputError
from turnlog.models.makers import PROVIDER_ROWS
from turnlog.runners import SdkRunner

ROOT = Path(__file__).resolve().parents[2]
MODELS = {name: {"provider": "aviary", "input": 50_000, "output": 1_000} for name in ("polly-1", "budgie")}


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of everything that `with_parrot.py` does."""
    folder = tmp_path_factory.mktemp("parrot")
    (folder / "models.json").write_text(json.dumps({"models": MODELS}), "utf-8")
    places = {"TURNLOG_MODELS": str(folder / "models.json"), "TURNLOG_STORE": str(folder / "log.db")}
    program = Path(__file__).with_name("with_parrot.py")
    run = subprocess.run(
        [sys.executable, str(program), str(folder)], env={**os.environ, **places}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads((folder / "came.json").read_text("utf-8"))
    return found


@pytest.mark.slow
def test_a_body_is_recognised_checked_counted_and_imported(came: dict[str, Any]) -> None:
    """A body of the new provider would be taken for another's, or not at all."""
    assert came["check"] == []
    assert came["count"] == [True, "estimated", "unknown-polly-1:5"]
    assert came["import"] == ["parrot", ["system", "user", "assistant", "user", "assistant"]]
    assert came["tools"] == [[TRICK["trick"], TRICK["about"]]]
    assert came["commands"] == [0, 0]


def test_a_conversation_comes_back_from_another_provider(came: dict[str, Any]) -> None:
    """What another provider's format has of the conversation would be lost on the way back."""
    assert came["again"] == BODY
    assert came["convert"] == BODY["squawks"][-1]
    turns = [{"role": "keeper", "beak": [{"type": "words", "words": "hi"}]}]
    assert came["export"] == {"model": "polly-1", "squawks": turns}


def test_the_chat_and_the_sdk_reach_it(came: dict[str, Any]) -> None:
    """A table of keys, words, SDKs or calls without the provider would end them in a KeyError."""
    assert came["chat"] == {"said": "Polly.", "by_key": "parrot polly-1", "by_name": "parrot polly-1"}
    assert came["sdk"] == {
        "events": [["text", "Pretty "], ["text", "Polly"], ["usage", ""], ["done", ""]],
        "sent": True,
        "kept": ["Pretty Polly", True, 9],
    }


def test_summaries_are_asked_for_in_its_words(came: dict[str, Any]) -> None:
    """The question at the end of the session's own request would have another provider's form, or the summary would be
    written by a model that this one does not have."""
    assert came["summaries"] == {"asked": ["keeper", ["words"]], "models": ["budgie"]}


def test_spans_have_its_name_and_settings(came: dict[str, Any]) -> None:
    """A dashboard would show another maker, and no limit."""
    assert came["spans"] == {
        "gen_ai.provider.name": "aviary.example",
        "gen_ai.request.model": "polly-1",
        "gen_ai.request.max_tokens": 99,
    }


def test_a_client_for_no_maker_is_refused() -> None:
    """A maker that is spelled wrong would have its client ignored, and requests go out with another key."""
    with pytest.raises(InputError, match="'antropic' makes no models; give clients for anthropic, openai, google"):
        SdkRunner(antropic=object())


def test_no_table_outside_the_folders_has_a_row_for_each_provider() -> None:
    """A fact of providers is kept beside them: the next one would be forgotten there. A file that names three providers
    has such a table; pi's and other frameworks' names of them, and what histories hold, are facts of these."""
    source = ROOT / "src/turnlog"
    files = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] != "providers"]
    named = {
        str(path.relative_to(source))
        for path in files
        if sum(f'"{name}"' in path.read_text("utf-8") for name in PROVIDER_ROWS) > 2
    }
    theirs = {"importers/framework_messages.py", "importers/pi.py"}
    assert named == {"models/makers.py", "testing/histories.py", *theirs}
