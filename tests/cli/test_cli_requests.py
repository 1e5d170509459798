"""`turnlog request` and `turnlog check`: what a model would be sent, and whether it would be taken."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnlog.testing.histories import PIXEL

GOOD = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
BAD = {
    "model": "gpt-4o",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": "well?"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
}
JUDGES = {
    "openai-chat": "check_openai_chat",
    "openai-responses": "check_openai_responses",
    "anthropic": "check_anthropic",
    "google": "check_gemini",
}


def write(path: Path, body: Any) -> str:
    """A JSON file; returns its name."""
    path.write_text(json.dumps(body), "utf-8")
    return path.name


@pytest.mark.parametrize("provider", JUDGES)
@pytest.mark.parametrize("source", ["demo-invoice-rounding", "transcript.jsonl", "-"])
def test_requests_are_accepted(turnlog: Any, transcript: Path, oracle: ModuleType, provider: str, source: str) -> None:
    """From a session, a file or standard input: the same request, and the provider would take it."""
    turnlog("import", "transcript.jsonl")
    ended = turnlog("request", source, "--to", provider, stdin=transcript.read_bytes())
    body = json.loads(ended.out)
    judged = {"model": "gemini-2.5-pro"} if provider == "google" else {}
    assert (ended.code, getattr(oracle, JUDGES[provider])(body, **judged)) == (0, [])
    assert json.loads(turnlog("request", "demo-invoice-rounding", "--to", provider).out) == body
    assert (
        "edit unanswered: call of 'Bash' (toolu_demo_5) has no result on record: it may have run (record 14)"
        in ended.err.splitlines()
    )


def test_a_request_of_one_provider_for_another(turnlog: Any, tmp_path: Path) -> None:
    """A request body is a source too; what was changed is said on stderr, the request alone on stdout."""
    ended = turnlog("request", write(tmp_path / "bad.json", BAD), "--to", "anthropic", "--model", "claude-sonnet-4-5")
    body = json.loads(ended.out)
    assert ended.code == 0
    assert body["model"] == "claude-sonnet-4-5"
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "user"]
    assert ended.err.splitlines()[0] == "bad.json: openai-chat"
    assert ended.err.splitlines()[-1].startswith("anthropic claude-sonnet-4-5: ")


def test_explained(turnlog: Any, tmp_path: Path) -> None:
    """The readable list: every message sent with its records and treatment, then what changed."""
    name = write(tmp_path / "bad.json", BAD)
    ended = turnlog("request", name, "--to", "openai-chat", "--explain")
    assert ended.out == (
        "openai-chat gpt-4o: 4 messages, 1 edit, 0 losses\n"
        "        2  user       verbatim     hi\n"
        "        3  assistant  verbatim     [calls look]\n"
        "        3  user       synthetic    [result look lost]\n"
        "        4  user       verbatim     well?\n"
        "edit unanswered: call of 'look' (c1) has no result on record: it may have run (record 3)\n"
    )
    rows = turnlog("request", name, "--to", "openai-chat", "--explain", "--json").rows
    detail = "call of 'look' (c1) has no result on record: it may have run"
    assert rows[0] == {"change": "edit", "kind": "unanswered", "detail": detail, "records": [3], "path": ""}
    assert [row["change"] for row in rows] == ["edit"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("absent.json", "--to", "google"), 4, "absent.json: no such file, and there is no store at"),
        (("good.json", "--to", "nobody"), 2, "unknown provider 'nobody'"),
        (("noise.json", "--to", "google"), 2, "noise.json"),
        (("good.json", "--to", "google", "--model", "nova-1"), 0, "model 'nova-1' is not in the table"),
        (("good.json",), 2, "the following arguments are required: --to"),
    ],
)
def test_sources_and_targets_that_cannot_be(
    turnlog: Any, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    """Each mistake has its exit code and names what was wrong; a model nobody knows is no mistake."""
    write(tmp_path / "good.json", GOOD)
    (tmp_path / "noise.json").write_bytes(b"\0\1\2")
    ended = turnlog("request", *words)
    assert ended.code == code
    assert said in ended.err


def test_a_request_that_cannot_fit(turnlog: Any, tmp_path: Path) -> None:
    """The newest turn alone is over the model's limit: exit code 7, with the figures."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 200_000}]}
    ended = turnlog("request", write(tmp_path / "long.json", body), "--to", "openai-chat")
    assert (ended.code, ended.out) == (7, "")
    assert "the request cannot fit" in ended.err


def test_check(turnlog: Any, tmp_path: Path) -> None:
    """0 and nothing on stdout for a request that would be taken; 1 and the violations otherwise."""
    good, bad = write(tmp_path / "good.json", GOOD), write(tmp_path / "bad.json", BAD)
    accepted = turnlog("check", good, "--as", "openai-chat")
    assert accepted == (0, "", "good.json: no violations, checked as openai-chat\n")
    assert turnlog("check", bad, "--as", "openai-chat") == (
        1,
        "unanswered: call of 'look' (c1) has no result on record: it may have run (message 2)\n",
        "bad.json: 1 violation, checked as openai-chat\n",
    )
    ended = turnlog("check", "-", "--json", stdin=json.dumps(BAD).encode())
    assert ended.code == 1
    assert json.loads(ended.out) == {
        "kind": "unanswered",
        "detail": "call of 'look' (c1) has no result on record: it may have run",
        "messages": [2],
        "path": "",
    }
    assert turnlog("check", good, "--model", "gpt-5").code == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "x.json: not JSON: "),
        (b"[1]", "x.json: a request must be a JSON object, not list"),
        (b"\xff{}", "x.json: byte 0 is not UTF-8"),
        ("[1]".encode("utf-16"), "x.json: a request must be a JSON object, not list"),
        (b"[" * 100_000, "x.json: the JSON is nested too deeply"),
        (b'{"a": 1}', "name the provider with --as"),
        (None, "x.json: cannot be read (No such file or directory)"),
    ],
)
def test_check_of_what_is_no_request(turnlog: Any, tmp_path: Path, data: bytes | None, said: str) -> None:
    """What is no request at all ends with 2 and says what is wrong with the file."""
    if data is not None:
        (tmp_path / "x.json").write_bytes(data)
    ended = turnlog("check", "x.json")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert turnlog("check", "x.json", "--as", "nobody").code == 2


def test_a_stored_session_with_an_image_can_be_sent_to_each(turnlog: Any) -> None:
    """A body that is put together when the store is closed, and its images with it."""
    png = base64.b64encode(PIXEL + bytes(5_000)).decode()
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
    ]
    body = {"id": "s", "request": {"messages": [{"role": "user", "content": content}]}}
    assert turnlog("import", "-", stdin=json.dumps(body).encode()).code == 0
    for provider in ("openai-chat", "openai-responses", "anthropic", "google"):
        ended = turnlog("request", "s", "--to", provider)
        assert (ended.code, png in ended.out) == (0, True), provider
