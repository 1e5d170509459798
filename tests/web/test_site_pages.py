"""The pages of a store as files: they lead to each other, fetch and run nothing, and may be without secrets."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from planted import SECRETS

from pages import Page
from turnlog.cli import main
from turnlog.display.past_request import requests_of
from turnlog.errors import InputError
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration, MessageRecord, UsageRecord
from turnlog.log.store import Draft, Problem, Store
from turnlog.log.usage import Usage
from turnlog.stores import MemoryStore, open_store
from turnlog.testing.histories import PIXEL
from turnlog.testing.hostile import hostile_session
from turnlog.web.site import write_site


def fill(store: Store, also: str = "") -> None:
    """A hostile session, a session with images and its subagent, and one that asks again and again."""
    hostile_session(store, "../every/<b>", 5_000)
    store.create("asks", title="Ask & answer")
    store.create("asks.agent-1", parent="asks")
    picture = Media("image", mime="image/png", sha256=store.put_blob(PIXEL), size=len(PIXEL))
    said: list[object] = [Configuration(provider="anthropic", model="claude-sonnet-4-5")]
    for n in range(4):
        said += [
            MessageRecord(Message("user", (Text(f"Part {n} {also}"), picture))),
            MessageRecord(Message("assistant", (ToolCall(f"c{n}", "look", {}),)), model="claude-sonnet-4-5"),
            UsageRecord("anthropic", "claude-sonnet-4-5", Usage(input=100 + n, output=5)),
            MessageRecord(Message("user", (ToolResult(f"c{n}", "look", (Text("seen"),)),))),
        ]
    store.append("asks", [Draft(body) for body in said])  # type: ignore[arg-type]
    store.append("asks.agent-1", [Draft(MessageRecord(Message("user", (Text("Help."),))))])


def test_pages_lead_to_each_other(tmp_path: Path) -> None:
    """A link leads to a file that is not there, a page fetches or runs something, or a session has no page."""
    store = MemoryStore()
    fill(store)
    problems: list[Problem] = []
    files = write_site(store, tmp_path / "out", problems, requests=2)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert len(names) == files
    assert {"index.html", "figures.html", "asks.html", "asks.requests.html", "asks.changes.html"} <= names
    newest = [one.n for one in requests_of(store, "asks").requests[-2:]]
    assert {name for name in names if re.fullmatch(r"asks\.requests\.\d+\.html", name)} == {
        f"asks.requests.{n}.html" for n in newest
    }
    for name in names:
        page = Page((tmp_path / "out" / name).read_text("utf-8"))
        assert page.wrong == []
        assert page.policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
        scripts = [tag for tag, _ in page.elements if tag in ("script", "form", "iframe", "link")]
        assert scripts == (["script"] if name.endswith(".trajectory.html") else [])
        for tag, attributes in page.elements:
            to = attributes.get("href") or ""
            if tag == "a" and not to.startswith("#"):
                assert unquote(to.partition("#")[0]) in names, (name, to)


@pytest.mark.parametrize("name", ["mine.txt", "index.html"])
def test_a_folder_with_other_files_stays(name: str, tmp_path: Path) -> None:
    """Files of the user, such as a web site of their own, are lost or stand between pages."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"has other files, such as {name}"):
        write_site(MemoryStore(), tmp_path, [])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_pages_of_an_earlier_run_go(tmp_path: Path) -> None:
    """A page with secrets, or of a deleted session, stays in a folder that was written again."""
    store = MemoryStore()
    fill(store)
    write_site(store, tmp_path, [], requests=3)
    assert (tmp_path / "asks.html").exists()
    store.delete("asks")
    files = write_site(store, tmp_path, [], requests=1)
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == files and not any(re.match(r"asks\.(?!agent)", name) for name in names)


def test_a_site_without_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key is in a folder that somebody sends to others, although they asked for pages without; or the store loses
    it."""
    said, secret = next(iter(SECRETS.values()))
    place = str(tmp_path / "log.db")
    store = open_store(place)
    fill(store, said)
    store.close()
    for option, is_there in (("--redact", False), ("--requests=0", True)):
        folder = tmp_path / option.strip("-=0")
        assert main(["--store", place, "site", str(folder), option]) in (0, 1)
        assert f"begin with {folder / 'index.html'}" in capsys.readouterr().err
        assert any(secret in path.read_text("utf-8") for path in folder.iterdir()) == is_there
