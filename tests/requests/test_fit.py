"""Plain bodies made to fit: what counts them, and what is told of what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnlog
from scripted import Scripted
from turnlog.errors import BudgetError, InputError
from turnlog.tokens import counter_for

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def body(steps: int) -> dict[str, Any]:
    """A chat of so many exchanges, some 50 tokens each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Port the billing module."}]
    for n in range(steps):
        messages.append({"role": "assistant", "content": f"Step {n} is done. " * 5})
        messages.append({"role": "user", "content": f"Go on with step {n + 1}. " * 5})
    return {"model": "gpt-4o", "messages": messages}


class Silent:
    """Shaped as a counter, but counts nothing."""

    id = "silent:1"

    def text(self, text: str) -> None: ...

    def messages(self, messages: Any, blob: Any = None) -> None: ...

    def tools(self, tools: Any, choice: str = "auto") -> None: ...

    def frame(self, *, system: bool, tools: bool) -> None: ...


@pytest.mark.parametrize(
    ("counter", "told"),
    [
        (5, r"5 has no 'id', 'text'"),
        (0, r"0 has no"),
        (lambda messages: None, "returned None"),
        (lambda messages: -1, "returned -1"),
        (lambda messages: 2.5, "returned 2.5"),
        (Silent(), r"messages\(\) returned None"),
    ],
    ids=["number", "nothing", "none", "negative", "broken", "silent"],
)
def test_what_cannot_count_is_told(counter: Any, told: str) -> None:
    """A bare AttributeError or TypeError from within says nothing of the argument that was wrong; a request that was
    counted as less than nothing would have been taken for one that fits."""
    with pytest.raises(InputError, match=told):
        turnlog.fit(body(3), max_tokens=500, counter=counter)


def test_what_counts_is_asked() -> None:
    """A check that took a right counter for a wrong one would take away every counter but the built-in one."""
    assert turnlog.fit(body(3), counter=lambda messages: 7 * len(messages)).tokens == 49
    ours = counter_for("openai-chat", "gpt-4o")
    assert turnlog.fit(body(3), counter=ours).tokens == turnlog.fit(body(3)).tokens


def test_decisions_that_later_ones_hide_wholly_are_no_edits() -> None:
    """A history of hundreds of steps had a change for every summary that was ever merged into the next one."""
    fitter = turnlog.Fitter(max_tokens=900)
    for steps in range(2, 60):
        fitted = fitter.fit(body(steps))
    assert len(fitted.decisions) > 3
    assert [(edit.kind, edit.detail) for edit in fitted.edits] == [("compact", fitted.decisions[-1].why)]


def test_a_summarizer_that_fails_is_told() -> None:
    """Who pays for a model and gets the summaries of none has to hear why."""

    def broken(prompt: str) -> str:
        raise ConnectionError("529 overloaded")

    fitter = turnlog.Fitter(max_tokens=600, strategy="summarise", summarizer=broken)
    fitted = fitter.fit(body(30))
    assert [edit.kind for edit in fitted.edits] == ["compact"]
    assert len(fitted.failures) == 1 and "ConnectionError: 529 overloaded" in fitted.failures[0]
    assert fitter.fit(body(31)).failures[:1] == fitted.failures
    assert turnlog.fit(body(30), max_tokens=600, strategy="summarise").failures == ()


NOTES = "Notes: the module is being ported, step by step. " * 3


def grown(fitter: turnlog.Fitter, model: Scripted, change: str) -> tuple[int, int]:
    """A conversation of 90 exchanges that is changed now and then in a way that agents do: how often the summarizer was
    asked, and how many requests did not begin with the one before."""
    history: list[dict[str, Any]] = []
    system, before, moved = "Answer briefly.", list[Any](), 0
    for n in range(90):
        history += body(1)["messages"][: 1 if n == 0 else 0]
        said = [{"role": "system", "content": system}, *history]
        sent = fitter.fit({"model": "gpt-4o", "messages": said}).body["messages"][1:]
        moved += sent[: len(before)] != before
        before = sent[:-1]
        if n % 7 == 6 and change == "the last message":
            history[-1] = {"role": "user", "content": f"No: do step {n} otherwise. " * 5}
        elif n % 7 == 6 and change == "system text":
            system = f"Answer briefly. It is {n} o'clock."
        history += [
            {"role": "assistant", "content": f"Step {n} is done. " * 8},
            {"role": "user", "content": f"Go on with step {n + 1}. " * 8},
        ]
    return len(model.asked), moved


@pytest.mark.slow
def test_what_was_decided_holds_where_something_later_changes() -> None:
    """A turn that is tried again, a clock in the system text: each made all decisions again, paid for another summary
    and moved the prefix, though nothing that they cover had changed."""
    found = {}
    for change in ("nothing", "the last message", "system text"):
        model = Scripted(NOTES)
        found[change] = grown(turnlog.Fitter(max_tokens=2_000, summarizer=model), model, change)
    assert 1 < found["nothing"][0] == found["nothing"][1]
    assert found["the last message"][0] <= found["nothing"][0] + 1
    assert found["system text"] == found["nothing"]


def test_conversations_by_turns_keep_their_decisions() -> None:
    """One Fitter for two conversations decided everything again at each request."""
    both, moved = Scripted(NOTES), 0
    one = turnlog.Fitter(max_tokens=2_000, summarizer=both)
    before: dict[str, list[Any]] = {"a": [], "b": []}
    said: dict[str, list[Any]] = {name: [{"role": "user", "content": f"The task of {name}."}] for name in before}
    for n in range(60):
        for name, messages in said.items():
            made = one.fit({"model": "gpt-4o", "messages": messages})
            other = "b" if name == "a" else "a"
            assert f"task of {other}" not in str(made.body)
            sent = made.body["messages"]
            moved += sent[: len(before[name])] != before[name]
            before[name] = sent
            messages += [
                {"role": "assistant", "content": f"Step {n} of {name} is done. " * 8},
                {"role": "user", "content": f"Go on with step {n + 1}. " * 8},
            ]
    assert 1 < len(both.asked) == moved < 12


def test_a_message_that_was_changed_is_nowhere_as_it_was() -> None:
    """What covers a message that the caller changed since has to be decided again: a summary would go on telling it."""
    fitter = turnlog.Fitter(max_tokens=1_500)
    told = body(40)
    told["messages"][6]["content"] = "The password of the test system is swordfish-77."
    assert "swordfish-77" in str(fitter.fit(told).body)
    told["messages"][6]["content"] = "Go on."
    assert "swordfish-77" not in str(fitter.fit(told).body)


def looked_at(steps: int) -> dict[str, Any]:
    """A chat that ends with an image."""
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    told = body(steps)
    told["messages"].append({"role": "user", "content": [{"type": "text", "text": "Like this?"}, image]})
    return told


@pytest.mark.parametrize("limit", (500, 600, 700))
@pytest.mark.parametrize("steps", range(1, 8))
def test_the_same_history_gives_the_same_request(steps: int, limit: int) -> None:
    """An image that had to go at once counted among what cannot go when the goal was set: nothing more was left out
    then, but all the rest at the next look, and the prompt cache lost its prefix for nothing new."""
    strategy = turnlog.Strategy(steps=("slide",), max_history_images=0)
    fitter = turnlog.Fitter(max_tokens=turnlog.Budget(max_tokens=limit, trigger=0.5), strategy=strategy)
    assert fitter.fit(looked_at(steps)) == fitter.fit(looked_at(steps))


@pytest.mark.parametrize("limit", range(60, 150, 5))
def test_only_what_cannot_fit_is_refused(limit: int) -> None:
    """While the calls of a batch waited for their results, their stand-ins took room; a Fitter kept that free ever
    after, many times over where the request was refused, and refused what fitted."""
    waiting = [*body(0)["messages"], {"role": "assistant", "tool_calls": batch()}]
    answered = [*waiting, *({"role": "tool", "tool_call_id": one["id"], "content": "ok"} for one in batch())]
    fitter = turnlog.Fitter(max_tokens=limit)
    found = []
    for messages in (waiting, answered):
        history = {"model": "gpt-4o", "messages": messages}
        kept, once = (attempt(way, history) for way in (fitter.fit, lambda one: turnlog.fit(one, max_tokens=limit)))
        found.append((kept, once))
    assert [kept for kept, _ in found] == [once for _, once in found]


@pytest.mark.parametrize("limit", range(140, 220, 4))
def test_what_may_go_goes_before_a_request_is_refused(limit: int) -> None:
    """What stand-ins of results take is found out when all is put together. Twice as much was left free at each try,
    until what had to stay did not fit beside it."""
    task, done, word = body(1)["messages"]
    waiting = {"role": "assistant", "tool_calls": batch()}
    whole, stays = (
        attempt(
            lambda history: turnlog.fit(history, max_tokens=limit, strategy="sliding"),
            {"model": "gpt-4o", "messages": messages},
        )
        for messages in ([task, done, word, waiting], [task, word, waiting])
    )
    assert isinstance(whole, str) is isinstance(stays, str)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({"model": "gpt-5", "input": "hello"}, {"role": "user", "content": "hello"}),
        ({"contents": {"parts": [{"text": "hello"}]}}, {"parts": [{"text": "hello"}]}),
    ],
    ids=["text", "message"],
)
def test_a_text_in_the_place_of_messages_is_one(history: dict[str, Any], message: dict[str, Any]) -> None:
    """Its characters were taken for messages: a counter of one's own was given those, and a cache was to be marked
    behind the fifth."""
    given: list[Any] = []
    made = turnlog.fit(history, max_tokens=100, counter=lambda messages: given.append(messages) or 1)
    assert given == [[message]] * len(given) != []
    assert (made.body, made.marks) == (history, (0,))


def batch() -> list[dict[str, Any]]:
    """Calls that are made at once."""
    return [{"id": f"call_{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(3)]


def attempt(fit: Callable[[dict[str, Any]], turnlog.requests.Fitted], history: dict[str, Any]) -> Any:
    """The request, or that it was refused."""
    try:
        return fit(history).body
    except BudgetError as error:
        return str(error)


def test_sizes_are_those_of_the_model_that_is_asked_now() -> None:
    """Counted for one model and sent to another, a history would be cut too late, or too much."""
    messages = [
        {"role": role, "content": f"{n} 请把账单模块移植到十进制，并检查所有测试。"}
        for n in range(60)
        for role in ("user", "assistant")
    ]
    told = {"model": "gpt-4", "messages": [*messages, {"role": "user", "content": "然后呢？"}]}
    fitter = turnlog.Fitter(max_tokens=2_500)
    fitter.fit({"model": "gpt-4o", "messages": messages[:41]})
    assert fitter.fit(told).body == turnlog.fit(told, max_tokens=2_500).body


@pytest.mark.slow
def test_no_request_is_larger_than_a_known_window() -> None:
    """A budget for a large model went along to a small one: the request was refused by the provider."""
    session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"), budget=32_000)
    for message in body(200)["messages"]:
        session.add(turnlog.Message(message["role"], (turnlog.Text(message["content"]),)))
    assert turnlog.count(session.request().body).tokens > 8_192
    session.switch(turnlog.target("openai-chat", "gpt-4"))
    assert turnlog.count(session.request().body).tokens < 8_192 > session.window.available
    assert turnlog.fit({**body(200), "model": "gpt-4"}, max_tokens=32_000).tokens < 8_192
    unknown = turnlog.fit({**body(200), "model": "my-own"}, max_tokens=200_000)
    assert unknown.body["messages"] == body(200)["messages"]


WANTED = {
    "type": "object",
    "properties": {f"field_{n}": {"type": "string", "description": "What the invoice says of it."} for n in range(30)},
}
CALLED = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


@pytest.mark.parametrize(
    "body",
    [
        {"model": "gpt-4o", "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": WANTED}}},
        {"model": "gpt-5", "input": [], "text": {"format": {"type": "json_schema", "name": "x", "schema": WANTED}}},
        {"model": "claude-sonnet-4-5", "output_config": {"format": {"type": "json_schema", "schema": WANTED}}},
        {"model": "claude-sonnet-4-5", "tools": [CALLED], "tool_choice": {"type": "any"}},
        {"model": "claude-sonnet-4-5", "tools": [CALLED], "tool_choice": {"type": "none"}},
    ],
)
def test_what_settings_take_is_counted(body: dict[str, Any]) -> None:
    """A schema of the answer is billed like any text, a forced tool choice has a longer hidden prompt: left out, a
    request is refused or billed above the limit that it was said to fit."""
    claude = body["model"].startswith("claude")
    talk = [{"role": role, "content": f"{role} {n} " * 40} for n in range(10) for role in ("user", "assistant")]
    given = {**body, **({"max_tokens": 100} if claude else {}), "input" if "input" in body else "messages": talk[:-1]}
    provider = "openai-responses" if "input" in body else "anthropic" if claude else "openai-chat"
    whole = turnlog.fit(given, provider=provider)
    assert whole.tokens == turnlog.count(given, provider=provider).tokens
    fitted = turnlog.fit(given, provider=provider, max_tokens=whole.tokens - 300, strategy="sliding")
    assert turnlog.count(fitted.body, provider=provider).tokens == fitted.tokens <= whole.tokens - 300
