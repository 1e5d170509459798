"""JSON values, a tool's arguments before all: what the redactor finds in their text is taken out of the value too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SECRETS, letters

import turnlog
from turnlog import Message, Redactor, ToolCall
from turnlog.log.messages import Opaque, Tool, parse_arguments
from turnlog.log.records import Configuration, MessageRecord, Note, PartialAnswer
from turnlog.log.store import Draft
from turnlog.redaction.drafts import redacted
from turnlog.redaction.json_text import EXACT
from turnlog.redaction.scrub import scan, scrub
from turnlog.stores import open_store
from turnlog.telemetry.content import Contents

MARK = "[redacted:authorization]"
OWN = Redactor({"staff-id": r"EMP-[0-9]{6}", "card": "4[0-9]{15}"})
HUB, UUID, BASIC = SECRETS["github classic"][0], SECRETS["heroku"][1], SECRETS["basic header"][1]
PLANTED = (HUB, "EMP-004711", 4111111111111111, f"\x1b[1;32m{HUB}\x1b[0m", f'say "{HUB}"\n', f"Basic {BASIC}")
SECRET = (HUB, "EMP-004711", "4111111111111111")

_KEYS = st.sampled_from(
    [*sorted(EXACT), "x", "password", "Authorization", "HEROKU", "name", "value", "input", "arguments", "--password"]
) | st.sampled_from(["DB_PASSWORD", "EMP-004711", HUB])
_LEAVES = (
    st.sampled_from(PLANTED)
    | st.sampled_from([884412345678, -5.25, True, None, 0, UUID, 'ab"cd1234ef', "hunter2hunter2"])
    | st.sampled_from(["next", "[redacted:jwt:12ab]", "\\", '"', "token = ", "password:", "HEROKU"])
    | st.text(max_size=6)
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)
_SPELLINGS: list[Callable[[Any], str]] = [
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    json.dumps,
    lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    lambda value: json.dumps(value).replace("_", "\\u005f"),
]


def kept(call: ToolCall, redactor: Redactor = OWN) -> tuple[ToolCall, dict[str, int]]:
    """A call as it is recorded, and what was counted."""
    body, counts = redacted(MessageRecord(Message("assistant", (call,))), redactor)
    assert isinstance(body, MessageRecord)
    found = body.message.parts[0]
    assert isinstance(found, ToolCall)
    return found, counts


@given(st.dictionaries(_KEYS, _VALUES, max_size=4), st.sampled_from(_SPELLINGS))
def test_arguments_hold_nothing_that_their_text_shows(value: dict[str, Any], spelled: Callable[[Any], str]) -> None:
    """A secret in a key, in a number or under `id` that stays in the arguments though the record counts it as gone; or
    arguments that say something else than their text."""
    arguments, raw = parse_arguments(spelled(value))
    call, counts = kept(ToolCall("c", "f", arguments, raw))
    text = call.raw_arguments
    assert json.loads(text) == call.arguments
    assert [secret for secret in SECRET if secret in text or secret in json.dumps(call.arguments)] == []
    assert OWN.spelled(text, {}, ids=False) == text
    assert kept(call) == (call, {})
    assert bool(counts) == (call.arguments != arguments)


@given(_VALUES)
def test_values_hold_nothing_that_their_text_shows(value: Any) -> None:
    """A secret that stays in a note, a setting or a provider's item; or an id of the provider that goes."""
    counts: dict[str, int] = {}
    clean = OWN.value(value, counts)
    text = json.dumps(clean, ensure_ascii=False)
    if not isinstance(value, str):
        assert OWN.spelled(text, {}) == text
    assert OWN.value(clean, {}) == clean and bool(counts) == (clean != value)


@pytest.mark.parametrize("key", sorted(EXACT))
def test_ids_of_a_provider_stay_and_those_of_a_tool_do_not(key: str) -> None:
    """A cipher that no provider takes back; or a key that a model handed to a tool under the name `id`."""
    mine, theirs = Opaque("p", "k", {key: HUB, "l": [{key: HUB}]}), Opaque("p", "k", {"input": {"x": [{key: HUB}]}})
    body = MessageRecord(Message("assistant", (mine, ToolCall("c", "f", {key: HUB, "x": {key: HUB}}), theirs)))
    clean, counts = redacted(body, OWN)
    assert isinstance(clean, MessageRecord)
    assert clean.message.parts[0] is mine and counts == {"github-token": 3}
    assert HUB not in str(clean.message.parts[1:])


@pytest.mark.parametrize(
    "value, clean",
    [
        ({"password": 884412345678}, {"password": "[redacted:password]"}),
        ({"card": 4111111111111111, "n": 5}, {"card": "[redacted:card]", "n": 5}),
        ({"EMP-004711": 1, "EMP-004712": 2}, {"[redacted:staff-id]": 1, "[redacted:staff-id]'": 2}),
        ([["Authorization", f"Basic {BASIC}"]], [["Authorization", f"Basic {MARK}"]]),
        (
            {"name": "Authorization", "value": f"Basic {BASIC}"},
            {"name": "Authorization", "value": f"Basic {MARK}"},
        ),
        ({"headers": {"authorization": f"Token {BASIC}"}}, {"headers": {"authorization": f"Token {MARK}"}}),
        ({"Authorization": "AWS4-HMAC-SHA256 Credential=x"}, {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}),
        ({"authorization": "granted by resource_owner2"}, {"authorization": "granted by resource_owner2"}),
    ],
)
def test_what_only_the_text_of_a_value_shows(value: Any, clean: Any) -> None:
    """A number, a short key or a header that is left because the texts are looked at one by one."""
    assert OWN.value(value, {}) == clean


def test_a_key_beside_a_secret_tells_what_it_is() -> None:
    """A shape that needs its key before it, found in texts and not in objects."""
    clean = OWN.value({"HEROKU": UUID, "b": UUID}, {})
    assert clean["HEROKU"].startswith("[redacted:heroku-key:") and clean["b"] == UUID


def test_headers_of_requests_and_hosted_tools_go() -> None:
    """Credentials that are configured: in `Authorization`, and in a hosted tool's own field for them."""
    bearer = letters("mcp", 40)
    headers = {"Authorization": f"Basic {BASIC}"}
    tool = Tool("docs", kind="hosted", provider="p", data={"headers": headers, "authorization": bearer})
    body = Configuration("p", "m", {"extra_headers": headers}, (tool,))
    clean, counts = redacted(body, Redactor())
    assert BASIC not in str(clean) and bearer not in str(clean)
    assert counts == {"authorization": 2, "token": 1}
    note, counts = redacted(Note("n", data={"h": {"Proxy-Authorization": f"Basic {BASIC}"}}), Redactor())
    assert BASIC not in str(note) and counts == {"authorization": 1}


def test_what_scrub_says_is_gone_is_gone() -> None:
    """A key that `scan` no longer finds and that still stands in the arguments of a call."""
    store = open_store(":memory:")
    store.create("s")
    arguments, raw = parse_arguments(json.dumps({"id": HUB, "deep": [{"signature": HUB}]}))
    store.append("s", [Draft(MessageRecord(Message("assistant", (ToolCall("c", "f", arguments, raw),))))])
    assert [leak.number for leak in scan(store, "s")] == [2]
    assert scrub(store, "s").redacted == {"github-token": 2}
    assert HUB.encode() not in b"".join(record.raw or b"" for record in store.read("s"))
    assert list(scan(store, "s")) == []


def test_what_a_provider_sends_is_recorded_without_it() -> None:
    """The same from an answer: a dict as Anthropic has it, and text as OpenAI has it."""
    use = {"type": "tool_use", "id": "c1", "name": "f", "input": {"id": HUB, "password": 884412345678}}
    answer = {"role": "assistant", "model": "m", "content": [use], "stop_reason": "tool_use"}
    with turnlog.open(store=":memory:", target=turnlog.target("anthropic", "claude-sonnet-4-5")) as session:
        session.user("go")
        assert session.receive(answer).tool_calls[0].arguments["id"] == HUB
        assert session.log.redacted == {"github-token": 1, "password": 1}
        kept = str(list(session.log.on_disk.records()))
        assert HUB not in kept and "884412345678" not in kept


def test_spans_hold_no_arguments_that_the_log_does_not() -> None:
    """A key under `id` in an attribute of a span, which leaves the machine."""
    said = Contents(Redactor(), wanted=True)
    call = ToolCall("c1", "f", {"id": HUB, "x": {"file_id": HUB}})
    assert HUB not in said.arguments(call)
    messages = said.messages([Message("assistant", (call,))])
    assert HUB not in messages and '"id":"c1"' in messages


def test_text_that_is_no_json_beside_arguments_loses_its_secrets() -> None:
    """A call of another program's log whose text is cut off: a key that stays in it, or a traceback."""
    for raw in (f'{{"a": "{HUB}', f'{{"a": "\\q {HUB}"}}', HUB):
        call, counts = kept(ToolCall("c", "f", {"a": 1}, raw))
        assert HUB not in call.raw_arguments and call.arguments == {"a": 1} and counts


TOLD_BY_MORE = (
    ({"env": [{"name": "DB_PASSWORD", "value": "hunter2hunter2"}], "then": {"x": [1, None, "y"]}}, "hunter2hunter2"),
    ({"args": ["--password", "hunter2hunter2", "--user", "me"]}, "hunter2hunter2"),
    ({"headers": [{"key": "Authorization", "value": f"Basic {BASIC}"}], "to": "b\\x\u00e9\U0001f600"}, BASIC),
    ({"name": "API_KEY", "value": "a8f7k2m9q4x1z6", "of": [True, -2.5]}, "a8f7k2m9q4x1z6"),
)


@pytest.mark.parametrize(("arguments", "secret"), TOLD_BY_MORE)
@pytest.mark.parametrize("spelled", _SPELLINGS)
def test_half_of_a_call_holds_no_whole_secret(arguments: Any, secret: str, spelled: Callable[[Any], str]) -> None:
    """A password on disk for good, as the call that it was given to had half come when the answer broke off, or when
    what had come of it was put on record: only the key beside it says that it is one."""
    text = spelled(arguments)
    for end in range(len(text)):
        begun = text[:end]
        (call,) = redacted(_broken_off(begun), Redactor())[0].fragments
        assert isinstance(call, ToolCall) and call.raw is not None
        assert secret not in call.raw
        assert ("[redacted:" in call.raw) or secret not in begun
        assert redacted(_broken_off(call.raw), Redactor())[0] == _broken_off(call.raw), "redacting twice"
        if "[redacted:" not in call.raw:
            assert call.raw == begun


def _broken_off(raw: str) -> PartialAnswer:
    return PartialAnswer(Message("assistant", ()), "cut", fragments=(ToolCall("c", "run", None, raw=raw),))


@given(_VALUES, st.sampled_from(_SPELLINGS), st.integers(0, 500))
def test_the_beginning_of_a_call_is_told_as_it_came(value: Any, spelled: Callable[[Any], str], end: int) -> None:
    """What a model had said of a call, changed or cut where there was no secret in it; or an error in its place, which
    loses all that had come of the answer."""
    begun = spelled(value)[:end]
    body, counts = redacted(_broken_off(begun), OWN)
    if not counts:
        assert body == _broken_off(begun)
    assert redacted(body, OWN) == (body, {})
