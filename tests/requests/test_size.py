"""What a session says of its size is the size of its requests, whatever happened to it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec
import pytest

import turnlog
from counted_apart import beyond
from turnlog.errors import BlobMissing
from turnlog.log.messages import Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.models.target import Target, target
from turnlog.providers import provider
from turnlog.redaction.scrub import scrub
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import sound_history
from turnlog.testing.histories import PIXEL
from turnlog.tokens.counters import count_message, counter_for
from turnlog.tokens.openai import OpenAICounter
from turnlog.tokens.protocol import BlobReader, Tally

CHAT = target("openai-chat", "gpt-4o")
RESPONSES = target("openai-responses", "gpt-5")
CLAUDE = target("anthropic", "claude-sonnet-4-5")
GEMINI = target("google", "gemini-2.5-pro")
PROXY = target("openai-chat", "claude-sonnet-4-5")
"""Claude behind an API that speaks chat: the counter of one provider, the rules of another."""
ALL = (CHAT, RESPONSES, CLAUDE, GEMINI, PROXY)


def opened(aim: Target) -> Session:
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.configure(strategy=turnlog.Strategy(steps=()))
    return session


def again(session: Session) -> Session:
    return Session(session._store, session._store.info(session.id))


def sent(session: Session, aim: Target) -> int:
    return turnlog.count(session.request().body, model=aim.model, provider=aim.provider).tokens


def notes(session: Session) -> None:
    """System text in mid-conversation: a user's, with a label, where it has no place."""
    session.user("Hello.")
    for n in range(10):
        session.assistant(f"ok {n}")
        session.system(f"note {n}")
        session.user(f"go {n}")


def broken(session: Session) -> None:
    """Answers that ended early carry a mark."""

    def chunks() -> Iterator[Any]:
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Half an answer"}}]}
        raise ConnectionError("gone")

    for n in range(10):
        session.user(f"question {n}")
        with pytest.raises(ConnectionError):
            session.receive(chunks(), CHAT)


def calls(session: Session, *calls: ToolCall) -> None:
    session.user("Go on.")
    for call in calls:
        session.add(Message("assistant", (call,)))
        session.add(Message("user", (ToolResult(call.id, call.name, (Text("done"),)),)))
    session.user("And now?")


def odd_arguments(session: Session) -> None:
    """Arguments that are no object are sent as one by some."""
    values: list[Any] = [["a", "list"], "a text", 7, None, "", {}]
    broken = ToolCall("broken", "list_files", raw='{"path": "unclosed')
    calls(session, broken, *(ToolCall(f"c{n}", "list_files", value) for n, value in enumerate(values)))


def odd_names(session: Session) -> None:
    """Tools that nobody gave are declared under a name that may be sent."""
    calls(session, *(ToolCall(f"c{n}", f"mcp.server {n}/read the tool", {"n": n}) for n in range(8)))


def several_results(session: Session) -> None:
    """Chat has a message for each result."""
    session.user("Read them all.")
    session.add(Message("assistant", tuple(ToolCall(f"c{n}", "read", {"n": n}) for n in range(12))))
    session.add(Message("user", tuple(ToolResult(f"c{n}", "read", (Text('say "x"\n' * n),)) for n in range(12))))
    session.assistant("Read.")
    session.user("Thanks.")


def blank_beside_results(session: Session) -> None:
    """What says nothing is not sent, beside results of calls made at once either."""
    session.user("Read them all.")
    session.add(Message("assistant", tuple(ToolCall(f"c{n}", "read", {"n": n}) for n in range(3))))
    for n in range(3):
        session.add(Message("user", (Text(" \n" * 40), ToolResult(f"c{n}", "read", (Text('{"a": "b"}' * 30),)))))
    session.user("Thanks.")


def thinking_between(session: Session) -> None:
    """Reasoning of others, in messages of its own between a call and its result, leaves nothing behind."""
    session.user("Think.")
    session.add(Message("assistant", (ToolCall("c1", "read", {}),)))
    for _ in range(8):
        session.add(Message("assistant", (Reasoning("acme", text="hmm " * 20),)))
    session.add(Message("user", (ToolResult("c1", "read", (Text("done"),)),)))
    session.user("Well?")


def late_results(session: Session) -> None:
    """A result that comes after another call still is one of several at once."""
    session.user("Read both.")
    session.add(Message("assistant", (ToolCall("c1", "read", {}), ToolCall("c2", "read", {}))))
    session.user("wait")
    session.add(Message("assistant", (ToolCall("c3", "read", {}),)))
    first, second = '{"a": "b\\n"}' * 20, 'say "x"\n' * 20
    results = (ToolResult("c1", "read", (Text(first),)), ToolResult("c2", "read", (Text(second),)))
    session.add(Message("user", results))
    session.add(Message("user", (ToolResult("c3", "read", (Text("done"),)),)))


def goes_on_behind_calls(session: Session) -> None:
    """What is said behind a call is an item of its own over the Responses API."""
    session.user("Look, and tell.")
    for n in range(8):
        call = ToolCall(f"c{n}", "look", {"n": n})
        session.add(Message("assistant", (Text("First."), call, Text("Then."))))
        session.tool_result(call, "seen")
    session.user("Thanks.")


def results_of_media_alone(session: Session) -> None:
    """Chat shows them in a user's message of their own, with words ahead of them and in their place."""
    image = picture(session)
    for n in range(8):
        session.add(Message("assistant", (ToolCall(f"c{n}", "look", {}),)))
        session.add(Message("user", (ToolResult(f"c{n}", "look", (image,)),)))


def failures_without_text(session: Session) -> None:
    """Anthropic refuses a failed result that says nothing."""
    image = picture(session)
    for n in range(20):
        session.add(Message("assistant", (ToolCall(f"c{n}", "look", {}),)))
        session.add(Message("user", (ToolResult(f"c{n}", "look", (image,) * (n % 2), outcome="failed"),)))


def images_of_unknown_type(session: Session) -> None:
    """They are sent by the type that their bytes have."""
    image = msgspec.structs.replace(picture(session), mime="")
    for _ in range(10):
        session.add(Message("user", (image, Text("look"))))


def files_that_are_images(session: Session) -> None:
    """A provider goes by the type of what was uploaded to it."""
    uploaded = Media("file", mime="image/png", file_id=f"{FILES}abc", provider="google")
    session.add(Message("user", (uploaded, Text("look"))))


def speaking_after_reasoning(session: Session) -> None:
    """What is said behind reasoning is an item of its own over the Responses API."""
    for n in range(20):
        session.user(f"go {n}")
        thought = Reasoning("openai-responses", summary=("s",), encrypted="ZW5j")
        session.add(Message("assistant", (Text("first"), thought, Text("then"))))


def shell_calls(session: Session) -> None:
    """Calls of a kind that few providers know, with arguments that are no object."""
    for n in range(20):
        session.add(Message("assistant", (ToolCall(f"c{n}", "run", ["ls"], kind="shell"),)))
        session.add(Message("user", (ToolResult(f"c{n}", "run", (Text("done"),), kind="shell"),)))


def ends_that_vanish(session: Session) -> None:
    """What is left of a conversation when its end cannot be sent may need another end."""
    session.user("question")
    session.assistant("answer")
    session.add(Message("user", (ToolCall("c1", "read", {}),)))


def nothing_said(session: Session) -> None:
    """An answer that says nothing is not sent, and something has to be."""
    session.add(Message("assistant", ()))


def picture(session: Session) -> Media:
    session._store.put_blob(PIXEL)
    return Media("image", mime="image/png", sha256=sha256_hex(PIXEL), size=len(PIXEL))


FILES = "https://generativelanguage.googleapis.com/v1beta/files/"

HAPPENINGS = (
    goes_on_behind_calls,
    notes,
    broken,
    odd_arguments,
    odd_names,
    several_results,
    blank_beside_results,
    thinking_between,
    late_results,
    results_of_media_alone,
    failures_without_text,
    images_of_unknown_type,
    files_that_are_images,
    speaking_after_reasoning,
    shell_calls,
    ends_that_vanish,
    nothing_said,
)


@pytest.mark.parametrize("happen", HAPPENINGS, ids=lambda happen: happen.__name__)
@pytest.mark.parametrize("aim", ALL, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_no_request_is_larger_than_was_counted(aim: Target, happen: Callable[[Session], None]) -> None:
    """What repair or rendering adds and nobody counts breaks the promise of a budget: found by users, each of these."""
    logging.disable(logging.CRITICAL)
    session = opened(aim)
    happen(session)
    logging.disable(logging.NOTSET)
    size = session.window.tokens
    assert size == again(session).window.tokens == session.window.breakdown().tokens
    assert sent(session, aim) <= size <= sent(session, aim) + beyond(session.request().body, aim)


@pytest.mark.parametrize("other", [aim for aim in ALL if aim is not CLAUDE], ids=lambda aim: aim.provider)
def test_sizes_do_not_outlive_the_rules_they_were_found_by(other: Target) -> None:
    """Two targets may share a counter and not their rules: what one leaves out counts for the other."""
    session = opened(CLAUDE)
    session.user("Question.")
    thought = Reasoning("anthropic", text="hmm " * 50, signature="x" * 90)
    patch = ToolCall("c1", "apply", None, raw='x "y"\n' * 20, kind="custom")
    session.add(Message("assistant", (thought, patch)))
    session.add(Message("user", (ToolResult("c1", "apply", (Text("done"),), kind="custom"),)))
    session.assistant("said")
    for aim in (CLAUDE, other, CLAUDE, other):
        session.request(aim)
        session.switch(aim)
        assert session.window.tokens == again(session).window.tokens


@pytest.mark.parametrize("aim", ALL, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_tools_of_another_provider_count_for_nothing(aim: Target) -> None:
    """A search that another provider runs is not sent; the tools that calls declare instead are."""
    session = opened(RESPONSES if aim is not RESPONSES else GEMINI)
    hosted = turnlog.Tool("search", kind="hosted", provider=session.target.provider, data={"type": "web_search"})  # type: ignore[union-attr]
    session.configure(tools=[hosted])
    calls(session, ToolCall("c1", "read", {"path": "a"}), ToolCall("c2", "write", {"path": "b"}))
    session.switch(aim)
    assert (
        sent(session, aim) == session.window.tokens == again(session).window.tokens == session.window.breakdown().tokens
    )


@pytest.mark.parametrize("aim", ALL, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_a_tool_of_free_text_counts_as_what_is_declared(aim: Target) -> None:
    """Where a provider knows no free text, such a tool goes as a function with a schema: counted without it, a request
    was up to 29 tokens a tool larger than was said, and than its budget; so was one with calls of it, made to fit."""
    tools = [Tool(f"patch_{n}", description="Apply a patch.", kind="custom") for n in range(3)]
    call = ToolCall("c1", "patch_0", None, '*** Begin\n+ "said"\n' * 9, kind="custom")
    with turnlog.open("s", store=":memory:", target=aim, tools=tools) as session:
        session.user("Go on.")
        session.assistant([call])
        session.tool_result("c1", "done")
        request = session.request().body
        counted = turnlog.count(request, model=aim.model, provider=aim.provider)
        assert (session.window.tokens, session.window.breakdown().tokens) == (counted.tokens, counted.tokens)
        assert turnlog.fit(request, model=aim.model, provider=aim.provider, max_tokens=20_000).tokens == counted.tokens


def test_a_body_with_free_text_for_a_model_without_fits_as_it_is_sent() -> None:
    """As above, where the body itself is spelled with tools that its model does not know."""
    said = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": 'a "quoted"\n' * 50}}
    body = {
        "model": "gpt-4o",
        "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "tool_calls": [said]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Apply a patch."}}],
    }
    fitted = turnlog.fit(body, max_tokens=5_000)
    assert fitted.tokens == turnlog.count(fitted.body).tokens


def test_the_end_of_a_request_counts_by_the_target_that_is_asked() -> None:
    """With thinking on, Claude wants a user's word at the end; without, none: asked about both in turn."""
    session = opened(CLAUDE)
    session.user("Question.")
    session.assistant("said")
    thinking = target(
        "anthropic", "claude-sonnet-4-5", max_tokens=8000, thinking={"type": "enabled", "budget_tokens": 2000}
    )
    for aim in (CLAUDE, thinking, CLAUDE):
        size = turnlog.count(session.request(aim).body, model=aim.model, provider=aim.provider).tokens
        assert session._context.tokens(aim).tokens == again(session)._context.tokens(aim).tokens == size


def test_a_scrubbed_result_is_counted_anew() -> None:
    """A secret leaves the log while a session is open: counted as before, its next request would be over its budget."""
    session = opened(CHAT)
    session.user("Read both.")
    session.add(Message("assistant", (ToolCall("c1", "read", {}), ToolCall("c2", "read", {}))))
    session.add(
        Message(
            "user",
            (ToolResult("c1", "read", (Text("AKIAIOSFODNN7EXAMPLE " * 30),)), ToolResult("c2", "read", (Text("ok"),))),
        )
    )
    assert session.window.tokens
    scrub(session._store, session.id)
    session.pin(4)
    assert session.window.tokens == again(session).window.tokens
    assert sent(session, CHAT) <= session.window.tokens


def test_a_budget_that_is_put_right_shows_everything_again() -> None:
    """What a small budget could never show is not at hand; once the budget is larger it must be, or most of the
    conversation would be missing from requests without a word, until the session is opened anew."""
    session = opened(CHAT)
    session.user("Task. Never touch the schema.")
    for n in range(100):
        session.assistant(f"answer {n} " + "blah " * 200)
        session.user(f"Question {n} " + "blub " * 200)
    before = session.request()
    size = session.window.tokens
    session.configure(budget=3_000)
    assert size - 3 <= session.window.tokens == session.window.breakdown().tokens
    session.configure(budget=128_000)
    after = session.request()
    assert after.json() == before.json() == again(session).request().json()
    assert session.window.tokens == size


def read_at_once(session: Session) -> Request:
    session.user("word " * 100)
    session.add(Message("assistant", tuple(ToolCall(f"c{n}", "read", {}) for n in range(5))))
    before = session.request()
    session.add(Message("user", (ToolResult("c0", "read", (Text("real"),)),)))
    return before


def goes_on(session: Session) -> Request:
    session.user("word " * 100)
    session.add(Message("assistant", (ToolCall("c1", "read", {}),)))
    before = session.request()
    session.assistant("And another thing.")
    return before


def started(session: Session) -> Request:
    session.user("word " * 100)
    call = ToolCall("c1", "read", {})
    session.add(Message("assistant", (call,)))
    session.user("wait")
    before = session.request()
    session.tool_started(call)
    return before


@pytest.mark.parametrize("happen", (read_at_once, goes_on, started), ids=lambda happen: happen.__name__)
@pytest.mark.parametrize("aim", ALL, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_a_cache_report_claims_no_more_than_is_there(aim: Target, happen: Callable[[Session], Request]) -> None:
    """A stand-in for a result is something else once another result is there, an answer goes on, or more is known: of
    the same size, at another place, or in other words."""
    session = opened(aim)
    session.configure(tools=[{"name": "read", "parameters": {"type": "object", "properties": {}}}])
    before, now = happen(session).body, session.request()
    key = provider(aim.provider).conversation
    common = [
        one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before[key], now.body[key], strict=False))
    ]
    there = turnlog.count({**before, key: common}, model=aim.model, provider=aim.provider).tokens
    use = now.cache
    assert use is not None and use.shared <= there
    assert use.shared < use.previous and use.why in ("a call has its result now", "answers are sent as one message now")


@pytest.mark.slow
@pytest.mark.parametrize("seed", (9, 13, 52))
def test_what_was_not_at_hand_is_not_missing_from_a_look(seed: int) -> None:
    """A session keeps at hand what its budget could show. Masked, more of it may be shown than was kept: a preview, or
    a request for another target, would leave that out without a word."""
    chance = random.Random(seed)
    session = opened(CHAT)
    session.user("Task.")
    for n in range(chance.randint(30, 70)):
        call = ToolCall(f"c{n}", "read", {"p": n})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, f"line {n} of it\n" * chance.choice((20, 40, 150, 250)))
        if n % 9 == 0:
            session.assistant(f"Note {n}.")
            session.user(f"Go {n}.")
    tools = [{"name": "read", "parameters": {"type": "object", "properties": {}}}]
    session.configure(budget=12_000, strategy="mask", tools=tools)
    looked_at = session.preview().json()
    for_another = session.request(target("openai-chat", "gpt-4o-mini")).body["messages"]
    made = session.request()
    assert looked_at == made.json()
    assert for_another == made.body["messages"]


def test_a_call_that_is_not_at_hand_can_be_answered() -> None:
    """A tool may end long after its call: what a small budget could not show is on record all the same."""
    session = opened(CHAT)
    session.user("Watch the build.")
    session.assistant("word " * 15_000)
    call = ToolCall("c1", "watch", {"path": "."}, item_id="i1")
    session.add(Message("assistant", (call,)))
    session.user("Meanwhile, tell me something.")
    session.assistant("word " * 30_000)
    session.user("Well?")
    session.configure(budget=3_000)
    kept = session.tool_result("c1", "built").message
    assert kept is not None and isinstance(kept.parts[0], ToolResult) and kept.parts[0].name == "watch"


def counted_messages(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages that OpenAI's counters are asked for, as they come."""
    counted: list[Message] = []
    count = OpenAICounter.messages

    def seen(counter: OpenAICounter, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        counted.extend(messages)
        return count(counter, messages, blob)

    monkeypatch.setattr(OpenAICounter, "messages", seen)
    return counted


@pytest.mark.parametrize("seed", range(40))
def test_a_message_is_counted_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a session, and every turn of tools called at once, would pay twice for what a message says if its record
    kept another size than the one that it is sent with; and a session would be of another size, said bit by bit or all
    at once, live or opened again."""
    history = sound_history(random.Random(seed))
    bit_by_bit, whole = opened(CHAT), opened(CHAT)
    for session in (bit_by_bit, whole):
        for data in history.blobs.values():
            session._store.put_blob(data)
    counted = counted_messages(monkeypatch)
    for message in history.messages:
        bit_by_bit.add(message)
        assert bit_by_bit.window.tokens >= 0
    assert [counted.count(message) for message in history.messages] == [1] * len(history.messages)
    whole.extend(history.messages)
    assert [record.body.count for record in bit_by_bit.history() if record.message] == [
        record.body.count for record in whole.history() if record.message
    ]
    counted.clear()
    assert (
        again(whole).window.tokens == whole.window.tokens == bit_by_bit.window.tokens == again(bit_by_bit).window.tokens
    )
    assert [message for message in counted if message in history.messages] == []


@pytest.mark.parametrize("aim", ALL, ids=lambda aim: f"{aim.provider} {aim.model}")
def test_sizes_where_bytes_are_gone(aim: Target) -> None:
    """A placeholder stands for an image whose bytes are gone. Its size taken from one that was counted with them, a
    session would count less than nothing, and be over its budget."""
    session = opened(aim)
    store = session._store
    for n in range(6):
        data = PIXEL + str(n).encode()
        store.put_blob(data)
        image = Media("image", mime="image/png", sha256=sha256_hex(data), size=len(data))
        session.add(Message("assistant", (ToolCall(f"a{n}", "look", {}), ToolCall(f"b{n}", "look", {}))))
        for side in "ab":
            session.add(Message("user", (ToolResult(f"{side}{n}", "look", (Text("seen"), image)),)))
    session.user("Well?")
    lacking = Lacking(store)
    reopened = Session(lacking, store.info(session.id))  # type: ignore[arg-type]
    assert (
        turnlog.count(reopened.request().body, model=aim.model, provider=aim.provider).tokens <= reopened.window.tokens
    )


class Lacking:
    """A store that lost its media."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_blob(self, sha256: str) -> bytes:
        raise BlobMissing(f"no media with hash {sha256}")


def test_a_second_result_counts_for_nothing() -> None:
    """It is not sent, though its record keeps the size that it has among others: a view would be cut for nothing."""
    session = opened(CHAT)
    session.user("Read both.")
    session.add(Message("assistant", (ToolCall("c1", "read", {}), ToolCall("c2", "read", {}))))
    session.add(Message("user", (ToolResult("c1", "read", (Text("first"),)),)))
    session.add(Message("user", (ToolResult("c2", "read", (Text("second"),)),)))
    before = session.window.tokens
    record = session.add(Message("user", (ToolResult("c1", "read", (Text('{"a": "b\\n"}' * 20),)),)))
    assert isinstance(record.body, MessageRecord)
    assert record.body.count is not None and record.body.count.at_once
    assert session.window.tokens == before == again(session).window.tokens == sent(session, CHAT)


@pytest.mark.parametrize("asked", [CHAT, PROXY], ids=lambda aim: aim.model)
def test_an_answer_is_counted_once_by_who_was_asked(asked: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer with its bill would be tokenised twice; or the bill of another model be compared with a size by the
    session's own counter, and teach it a wrong ratio."""
    session = opened(CHAT)
    session.user("Say something.")
    session.request(asked)
    said = {"role": "assistant", "content": "This is what there is to say. " * 20}
    bill = {"prompt_tokens": 20, "completion_tokens": 120, "total_tokens": 140}
    counted = counted_messages(monkeypatch)
    answer = session.receive(
        {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": bill}, asked
    )
    assert counted.count(answer.message) == 1
    *_, kept = session.history()
    assert isinstance(kept.body, UsageRecord)
    assert kept.body.answer == count_message(answer.message, counter_for(asked.provider, asked.model)).tokens
