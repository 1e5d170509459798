"""`turnlog demo`: the first thing that a new user runs."""

from __future__ import annotations

import re
import tempfile
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnlog.cli.demo import run_demo
from turnlog.models.makers import PROVIDER_ROWS, default_model
from turnlog.models.target import target
from turnlog.providers import PROVIDERS
from turnlog.session.session import Session
from turnlog.stores import open_store


@pytest.mark.slow
def test_it_runs_and_leaves_nothing(turnlog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with 0, says nothing on stderr, and leaves no file, here or in the temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = turnlog("demo")
    assert (ended.code, ended.err) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_shows_what_it_claims(turnlog: Any) -> None:
    """Every claim of the demo is checked on its output: a kill that was none, a violation, a log that
    changed, or an answer invented for the killed tool would show here."""
    out = turnlog("demo").out
    titles = re.findall(r"(?m)^(\d\. .*)\n-+$", out)
    assert [title[0] for title in titles] == list("12345678")
    assert "Imported once more, it is unchanged." in out
    assert re.search(r"It was killed there: exit status (-9|1)\.", out)
    assert "Run Bash again? it may have run before the program was interrupted." in out
    assert re.search(r"[\d,]+ tokens became [\d,]+", out) and "Digest of records" in out
    assert "The same log gives the same bytes again: yes." in out
    assert "reasoning: reasoning of anthropic left out" in out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in PROVIDERS]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        (name, row.model, "0") for name, row in PROVIDER_ROWS.items()
    ]
    assert "0 problems found." in out
    assert "\x1b" not in out


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a demo that was run once for all tests that only look at it."""
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder)
    return folder / "demo.db"


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDER_ROWS)
def test_its_requests_are_accepted(store: Path, oracle: ModuleType, provider: str) -> None:
    """What the demo's table counts are requests that the providers take."""
    body = made(store, provider)
    judges = {
        "openai-chat": oracle.check_openai_chat,
        "openai-responses": oracle.check_openai_responses,
        "anthropic": oracle.check_anthropic,
        "google-interactions": oracle.check_interactions,
        "google": lambda body: oracle.check_gemini(body, model=default_model("google")),
    }
    assert judges[provider](body) == []


def made(path: Path, provider: str) -> dict[str, Any]:
    """The request of the demo's session for a provider."""
    with closing(open_store(path)) as store:
        return Session(store, store.sessions()[0]).request(target(provider, default_model(provider))).body


@pytest.mark.slow
def test_it_says_the_same_each_time(turnlog: Any) -> None:
    """No clock, no chance, no path of this machine in what it shows."""
    assert turnlog("demo").out == turnlog("demo").out
