"""The service of docs/approvals.md, called as a server calls it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnlog
from page_programs import loaded_from
from turnlog import ToolCall
from turnlog.runners import ScriptedRunner

pytest.importorskip("starlette", reason="starlette is not installed: the service of the documentation is not run")
testclient = pytest.importorskip("starlette.testclient", reason="starlette's client for tests needs httpx")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "approvals.md"
BILLS = [ToolCall(f"c{n}", "pay", {"payee": f"<b>{n}</b>", "amount": n}) for n in (1, 2)]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program of the page, with a store of its own, and a model that wants to pay two bills."""
    monkeypatch.setenv("STORE", str(tmp_path / "bills.db"))
    module: Any = loaded_from(PAGE, "bills.py", tmp_path, monkeypatch)
    module.RUNNER = ScriptedRunner([["At once.", *BILLS], "Done."])
    yield module
    module.store.close()


def test_two_bills_are_decided_on_the_page(service: ModuleType) -> None:
    """A page that shows nothing, runs what it is told as HTML, decides twice, or an agent that does not go on."""
    client = testclient.TestClient(service.app, headers={"x-user": "ann"}, follow_redirects=False)
    assert client.post("/chats/house", json={"text": "Pay."}).json() == {"text": "", "stop": "awaiting_approval"}
    shown = client.get("/approvals").text
    assert (shown.count("<form"), "<b>" in shown) == (2, False)
    assert (
        "ann/house: pay {&quot;payee&quot;:&quot;&lt;b&gt;1&lt;/b&gt;&quot;,&quot;amount&quot;:1} (waits for app"
        in shown
    )
    which = [html.unescape(found) for found in re.findall(r'name="which" type="hidden" value="([^"]*)"', shown)]
    first = {"chat": "ann/house", "which": which[0], "says": "yes"}
    assert [client.post("/approvals", data=first).status_code for _ in range(2)] == [303, 409]
    assert client.get("/approvals").text.count("<form") == 1
    assert (
        client.post("/approvals", data={**first, "which": which[1], "says": "no", "reason": "in May"}).status_code
        == 303
    )
    with turnlog.open("ann/house", store=service.store, read_only=True) as session:
        (turn,) = session.log.turns()
        assert (turn.status, turn.answer) == ("completed", "Done.")
        assert [(info.approval, info.approved_by, info.outcome) for info in turn.calls] == [
            ("given", "ann", "ok"),
            ("denied", "ann", "canceled"),
        ]
