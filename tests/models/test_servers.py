"""Servers that imitate OpenAI: which one a target means, rows of one's own, the page about them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from msgspec.structs import replace

import turnlog
from turnlog.errors import InputError
from turnlog.models.catalog import VARIABLE
from turnlog.models.servers import Server, _shipped, recognised, server_given, server_row, server_rows
from turnlog.models.target import target
from turnlog.providers.protocol import Stop

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("base_url", "model", "server"),
    [
        ("https://api.mistral.ai/v1", "x", "mistral"),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "groq"),
        ("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", "x", "bedrock"),
        ("https://mine.openai.azure.com/openai/v1", "deployment", "azure"),
        ("https://notmistral.ai/v1", "x", ""),
        ("https://api.openai.com/v1", "gpt-4o", ""),
        ("http://localhost:11434/v1", "llama3.2", "ollama"),
        ("http://127.0.0.1:1234/v1", "llama3.2", "lmstudio"),
        ("http://example.com:1234/v1", "llama3.2", ""),
        ("http://[", "x", ""),
        ("http://gpu:9/v1", "Qwen/Qwen3.6-27B", "vllm"),
        ("", "qwen3:8b", "ollama"),
        ("", "deepseek-v4-pro", "deepseek"),
        ("", "mistral-large-latest", "mistral"),
        ("", "mistralai/Mistral-7B-Instruct-v0.3", "vllm"),
        ("", "kimi-k2.6", "moonshot"),
        ("", "MiniMax-M2", "minimax"),
        ("", "openai/gpt-5.2", "openrouter"),
        ("", "openai/gpt-oss-20b:free", "openrouter"),
        ("", "openai.gpt-oss-120b-1:0", "bedrock"),
        ("", "accounts/fireworks/models/kimi-k2p5", "fireworks"),
        ("", "ft:gpt-4o-mini-2024-07-18:acme::id", ""),
        ("", "gpt-4o", ""),
        ("", "some-model", ""),
    ],
)
def test_the_address_tells_the_server_and_else_the_model(base_url: str, model: str, server: str) -> None:
    """Requests by the rules of another server are refused, or lose what theirs would take."""
    assert recognised(base_url, model) == server


def test_a_server_is_named_by_any_of_its_words() -> None:
    """Users know a server by its maker, its model or its product."""
    assert [server_given(word) for word in ("Kimi", "moonshot", "glm", "LM-Studio")] == [
        "moonshot", "moonshot", "zai", "lmstudio"
    ]  # fmt: skip
    assert target("openai-chat", "x", server="kimi").server == "moonshot"
    with pytest.raises(InputError, match=r"no server 'nobody'; use one of vllm, .*docs/servers\.md"):
        target("openai-chat", "x", server="nobody")
    with pytest.raises(InputError, match=r"server='groq' is for openai-chat, not for anthropic"):
        target("anthropic", "claude-sonnet-4-5", server="groq")


def test_every_row_can_be_read_for_every_model() -> None:
    """A slip in a variant or a pattern would show only when somebody uses that model."""
    for name, entry in _shipped().items():
        assert len(entry["source"]) > 15, name
        for variant in entry.get("variants", ()):
            assert re.compile(variant["models"]) and variant.keys() <= {*Server.__struct_fields__}, name
        assert server_row(name, "") == server_rows()[name]


def test_what_differs_for_some_models_holds_for_these() -> None:
    """Settings that one model of a server refuses would be dropped for all, or for none."""
    assert server_row("deepseek", "deepseek-chat").ranges["max_tokens"].high == 8192
    assert server_row("deepseek", "deepseek-v4-pro").ranges["max_tokens"].high == 393_216
    assert server_row("xai", "grok-4").refused == ("presence_penalty", "frequency_penalty", "stop", "reasoning_effort")
    assert server_row("xai", "grok-4.3").refused == ("presence_penalty", "frequency_penalty", "stop")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that writes the user's own rows."""

    def write(rows: Any) -> Path:
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.json"
        path.write_text(json.dumps({"servers": rows}), "utf-8")
        monkeypatch.setenv(VARIABLE, str(path))
        return path

    return write


def test_a_row_of_ones_own_keeps_what_it_does_not_name(own: Any) -> None:
    """A gateway in front of a known server would have to be described in every field."""
    own({"gateway": {"like": "mistral", "hosts": ["llm.example.com"], "one_system": False}})
    at_gateway = target("openai-chat", "any", base_url="https://llm.example.com/v1")
    assert at_gateway.server == "gateway"
    row, like = at_gateway.server_row, server_row("mistral", "")
    assert (row.one_system, row.call_ids, row.alternates) == (False, like.call_ids, like.alternates)
    assert (row.title, row.models) == ("", "") and recognised("", "mistral-large") == "mistral"


def test_a_row_of_ones_own_wins(own: Any) -> None:
    """Facts that are out of date could not be mended."""
    own({"groq": {"refused": ["seed"]}})
    assert server_row("groq", "x").refused == ("seed",)
    assert target("openai-chat", "x", base_url="https://api.groq.com/openai/v1").server_row.names is False


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ({"mine": {"one_sistem": True}}, r"\.json: server 'mine': .*one_sistem"),
        ({"mine": {"like": "nobody"}}, r"\.json: server 'mine': like must be one of vllm, .*, not 'nobody'"),
        ({"mine": 3}, r"\.json: server 'mine': expected an object"),
        ([], r"\.json: expected \{.*\"servers\""),
        ({"mine": {"variants": [{"models": "x", "texts": 1}]}}, r"\.json: server 'mine': .*texts"),
        ({"mine": {"variants": [{"texts": ["tool"]}]}}, r"\.json: server 'mine': variants: each needs `models`"),
        ({"mine": {"variants": 3}}, r"\.json: server 'mine': .*array.*variants"),
        ({"mine": {"variants": [3]}}, r"\.json: server 'mine': .*object.*variants"),
        ({"": {}}, r"\.json: a server needs a name"),
        ({"mine": {"details": {"": "("}}}, r"\.json: server 'mine': details: '\(' is no pattern"),
        ({"mine": {"too_long": ["fine", "("]}}, r"\.json: server 'mine': too_long: '\(' is no pattern"),
        ({"mine": {"stops": {"done": "finished"}}}, r"\.json: server 'mine': .*'finished'.*stops"),
    ],
)
def test_a_bad_row_is_named(own: Any, rows: Any, error: str) -> None:
    """A field with a slip in it would be ignored in silence, or end as an error in turnlog itself."""
    own(rows)
    with pytest.raises(InputError, match=error):
        server_rows()


def test_the_ends_of_answers_are_those_of_all_providers() -> None:
    """A word of a row would mean an end that nobody handles."""
    hints = get_type_hints(Server)["stops"]
    assert get_args(get_args(hints)[1]) == get_args(Stop)


def test_a_session_goes_on_with_its_server(tmp_path: Path) -> None:
    """Opened again, a session would make other requests than before."""
    place = str(tmp_path / "log.db")
    with turnlog.open("s", store=place, target=target("openai-chat", "any-model", server="mistral")) as session:
        session.user("hi")
        body = session.request().body
    with turnlog.open("s", store=place) as session:
        assert session.target is not None and session.target.server == "mistral"
        assert session.request().body == body


def test_a_session_from_before_servers_had_names_is_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every program that opens its old session would be told that its model was not taken over."""
    place = str(tmp_path / "log.db")
    aim = target("openai-chat", "x", base_url="https://api.mistral.ai/v1")
    with turnlog.open("s", store=place, target=replace(aim, server="")) as session:
        session.user("hi")
        assert session.configuration.server == ""
    for again, told in ((aim, False), (replace(aim, server="vllm"), True)):
        with turnlog.open("s", store=place, target=again) as session:
            assert session.target is not None and session.target.server == "mistral"
            assert ("not taken over" in caplog.text) is told


def test_the_page_has_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was added or changed would not be in docs/servers.md: run scripts/servers_table.py."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from servers_table import PAGE, written

    page = PAGE.read_text("utf-8")
    assert written(page) == page
    sys.modules.pop("servers_table")
