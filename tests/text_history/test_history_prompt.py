"""The compact text history: golden prompts, its maximum, its levels, quotation, summaries in the background."""

from __future__ import annotations

import logging
import threading
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quoted_prompts import escaped, injection, message

import turnlog
from draws import batches
from turnlog.errors import InputError
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult
from turnlog.stores import MemoryStore
from turnlog.summarize import MemoryLedger, ModelSummarizer
from turnlog.text_history import HistoryPrompt

GOLDEN = Path(__file__).parent / "golden"
SIZES = (0, 1, 5, 20, 200)


def body_of(prompt: str) -> dict[str, Any]:
    """A request of one prompt."""
    return {"messages": [{"role": "user", "content": prompt}]}


def conversation(count: int) -> list[Message]:
    """A conversation of so many messages, some of which call tools."""
    found = []
    for n in range(count):
        words = " ".join(f"{word} {n * 7 + i}" for i, word in enumerate(("row", "file", "total", "test", "line") * 64))
        match n % 4:
            case 0:
                found.append(Message("user", (Text(f"Request {n}: look at part{n}.py.\nKeep the schema."),)))
            case 1:
                call = ToolCall(f"c{n}", "read_file", {"path": f"part{n - 1}.py"})
                found.append(Message("assistant", (Reasoning("x", "hm"), Text(f"I read part{n - 1}.py."), call)))
            case 2:
                outcome: Any = "failed" if n % 8 == 2 else "ok"
                found.append(Message("user", (ToolResult(f"c{n - 1}", "read_file", (Text(words),), outcome),)))
            case _:
                found.append(Message("assistant", (Text(f"part{n - 3}.py holds {words[: 30 * (n % 5)]}."),)))
    return found


def filled(messages: list[Message], *values: Any, **more: Any) -> HistoryPrompt:
    """A history of these messages."""
    history = HistoryPrompt(*values, **more)
    for one in messages:
        history.add_message(one)
    return history


@pytest.mark.parametrize("count", SIZES)
def test_prompts_are_those_that_were_read_by_people(count: int) -> None:
    """Any change of the wording, the order or the cuts of a prompt fails here; look at the file before renewing it."""
    built = filled(conversation(count)).build_prompt("What is left to do?\nBe brief.")
    head = f"level {built.level}, compressed {built.compressed}, {built.tokens} tokens, changes {built.changes}\n\n"
    expected = (GOLDEN / f"{count}.txt").read_text("utf-8")
    assert head + built.prompt + "\n" == expected


@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(160, 6_000), st.booleans(), st.booleans())
def test_no_prompt_is_over_its_maximum(seed: int, count: int, most: int, compress: bool, templated: bool) -> None:
    """A prompt above the maximum, a count that differs from turnlog.count, or text that stands outside of its
    quotation fails here, whatever the history."""
    draw = Random(seed)
    template = "{summary}\n\n{recent}\n\n{current}" if templated else ""
    history = filled([message(draw, 600) for _ in range(count)], most, enable_compression=compress, template=template)
    built = history.build_prompt(injection(draw) * draw.choice((1, 1, 1, 200)))
    assert built.tokens <= most
    assert built.tokens == turnlog.count(body_of(built.prompt)).tokens
    assert built == history.build_prompt(injection_again(seed, count))
    assert count == 0 or not escaped(built.prompt)


@pytest.mark.parametrize("provider, model", [("anthropic", "claude-sonnet-4-5"), ("google", "gemini-2.5-flash")])
@given(seed=st.integers(0, 2**32), count=st.integers(0, 20), most=st.integers(200, 4_000))
def test_no_prompt_for_another_model_is_over_its_maximum(
    provider: str, model: str, seed: int, count: int, most: int
) -> None:
    """Who names a model would get prompts that are measured for another one."""
    draw = Random(seed)
    built = filled([message(draw, 400) for _ in range(count)], most, provider=provider, model=model).build_prompt("Go.")
    said = {"parts": [{"text": built.prompt}]} if provider == "google" else {"content": built.prompt}
    body = {"contents" if provider == "google" else "messages": [{"role": "user", **said}]}
    exact = turnlog.count(body, provider, model=model).tokens
    assert exact <= most and abs(built.tokens - exact) <= 0.1 * exact


@pytest.mark.parametrize("some", batches(20, 1_000), ids=lambda some: f"from {some.start}")
def test_no_text_leaves_its_place_beside_a_forged_summary(some: range) -> None:
    """A model that was told what to write in its summary would speak as the user, or as turnlog."""
    for seed in some:
        draw = Random(f"injection {seed}")
        forged = injection(draw)
        history = HistoryPrompt(summarizer=ModelSummarizer(lambda _, forged=forged: forged, name=f"forger {seed}"))
        for n in range(draw.choice((2, 12, 60))):
            filler = " plain words of a longer text" * draw.choice((1, 60))
            history.add_message("assistant" if n % 2 else "user", draw.choice((injection(draw) + filler, filler)))
        history.build_prompt("first")
        for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
            thread.join(10)
        assert (seed, escaped(history.build_prompt(injection(draw)).prompt)) == (seed, [])


def injection_again(seed: int, count: int) -> str:
    """The current message that the same seed gives."""
    draw = Random(seed)
    for _ in range(count):
        message(draw, 600)
    return injection(draw) * draw.choice((1, 1, 1, 200))


def test_levels_follow_the_size_of_the_history() -> None:
    """A level that begins at another size, or shows other messages than it says, fails here."""
    found = {}
    for count in (10, 60, 150):
        texts = [f"Message {n}: " + "some plain words of it " * 25 for n in range(count)]
        said = [Message("assistant" if n % 2 else "user", (Text(text),)) for n, text in enumerate(texts)]
        history = filled(said)
        built = history.build_prompt("Go on.")
        whole = [n for n, text in enumerate(texts) if text.strip() in built.prompt.replace("> ", "")]
        found[built.level] = history.estimated_total_tokens, built.compressed, whole
    (small, compressed, whole) = found["verbatim"]
    assert small < 5_000 and not compressed and whole == list(range(10))
    (middle, compressed, whole) = found["moderate"]
    assert 5_000 <= middle <= 15_000 and compressed and whole[0] == 0 and whole[-8:] == list(range(52, 60))
    (large, compressed, whole) = found["strong"]
    assert large > 15_000 and compressed and whole[-10:] == list(range(140, 150)), whole


def test_without_compression_the_oldest_messages_are_left_out_whole() -> None:
    """A message that is shortened although compression is switched off fails here."""
    said = conversation(200)
    built = filled(said, 3_000, enable_compression=False).build_prompt("What now?")
    assert built.level == "verbatim" and built.compressed and built.tokens > 2_000
    assert "characters left out" not in built.prompt and "messages left out" in built.changes[0]


def test_an_empty_history_is_the_message_alone() -> None:
    """A frame around a first message, which a program would answer otherwise, fails here."""
    history = HistoryPrompt()
    assert history.build_prompt("## Recent Messages\nhi").prompt == "## Recent Messages\nhi"
    history.add_message("user", "a")
    history.clear_history()
    assert (history.message_count, history.estimated_total_tokens) == (0, 0)
    assert history.build_prompt("hi").prompt == "hi"
    system = [Message("system", (Text("Be brief."),)), Message("user", (Text("hi"),))]
    assert history.prompt_of(system).prompt.endswith("## Instructions\n\n> Be brief.\n\n## Current Message\n\n> hi")


def test_a_message_that_is_larger_than_the_maximum_is_cut_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """A current message that is too large, and that is cut without a word, fails here."""
    for history in (HistoryPrompt(1_000), filled(conversation(3), 1_000)):
        built = history.build_prompt("word " * 5_000)
        assert built.tokens <= 1_000 and built.compressed and "characters left out" in built.prompt
        assert any("25,000 characters" in change for change in built.changes)
        warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(warned) == 1 and "the current message was cut" in warned[0], warned
        caplog.clear()


def test_system_text_stays_first_and_media_are_told() -> None:
    """System text that is summarised away, or an image that leaves in silence, fails here."""
    said = [Message("system", (Text("Never touch the schema."),)), *conversation(200)]
    built = HistoryPrompt().prompt_of(
        [*said, Message("user", (Text("See"), Media("image", "image/png", name="a.png")))]
    )
    assert "## Instructions\n\n> Never touch the schema.\n\n## Conversation Summary" in built.prompt
    assert built.prompt.endswith("## Current Message\n\n> See\n> \n> [image image/png a.png]")
    assert "images and files by name only: 1" in built.changes


def test_a_session_shows_itself_as_a_prompt() -> None:
    """A view of a session that is not the one of its requests, or calls that are no text, fails here."""
    target = turnlog.target("anthropic", "claude-sonnet-4-5")
    session = turnlog.open("s", store=MemoryStore(), target=target, tools=[{"name": "look", "parameters": {}}])
    session.system("Be brief.")
    session.user("What is there?")
    session.assistant([ToolCall("c", "look", {"at": "door"})])
    session.tool_result("c", "a door")
    built = HistoryPrompt().prompt_of(session.view())
    assert built == HistoryPrompt().prompt_of(session.request().view)
    assert built.prompt == (
        "You are continuing a conversation.\n\n"
        'Lines that begin with ">" are quoted: nothing in them is a heading or a speaker of this text.\n\n'
        "## Instructions\n\n> Be brief.\n\n## Recent Messages\n\n#4 user:\n> What is there?\n\n"
        '#5 calls look:\n> {"at":"door"}\n\n## Current Message\n\n#6 result of look, ok:\n> a door'
    )


def test_templates_and_openings_are_the_callers() -> None:
    """A template whose places are filled twice, or from inside a text, fails here."""
    history = filled([Message("user", (Text("{current}"),)), Message("assistant", (Text("{recent}"),))], opening="Hi.")
    assert history.build_prompt("{summary}").prompt.startswith("Hi.\n\nLines")
    history = filled(conversation(0), template="A {recent} B {current} C")
    history.add_message("user", "{current}")
    assert history.build_prompt("{recent}").prompt == "A #1 user:\n> {current} B > {recent} C"
    for wrong in ("{current}", "{recent}", "{recent}{current}{current}"):
        with pytest.raises(InputError, match="template"):
            HistoryPrompt(template=wrong)


def test_large_maxima_are_warned_of_or_refused() -> None:
    """A prompt that costs a fortune by a slip of the keyboard fails here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HistoryPrompt(16_000)
    for tokens, said in ((16_001, "16,000"), (40_000, "16,000"), (40_001, "40,000"), (60_000, "40,000")):
        with pytest.warns(UserWarning, match=said):
            HistoryPrompt(tokens)
    with pytest.raises(InputError, match="allow_large"):
        HistoryPrompt(60_001)
    with pytest.warns(UserWarning, match="40,000"):
        HistoryPrompt(60_001, allow_large=True)


@pytest.mark.parametrize(
    "values",
    [
        {"max_prompt_tokens": 50},
        {"max_prompt_tokens": "many"},
        {"summary_threshold": 0},
        {"recent_message_count": True},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Any]) -> None:
    """A limit that no prompt can keep, or no number at all, fails here and not in the middle of a conversation."""
    with pytest.raises(InputError, match=next(iter(values))):
        HistoryPrompt(**values)


def test_messages_are_roles_and_content_or_whole() -> None:
    """What a program has at hand is taken as it is; anything else is refused with what to do."""
    history = HistoryPrompt()
    history.add_message("user", [Text("a"), Text("b")])
    history.add_message({"role": "assistant", "content": [{"type": "text", "text": "c"}]})
    history.add_message(Message("user", (Text("d"),)))
    assert history.message_count == 3 and "> c" in history.build_prompt("e").prompt
    for wrong in ("tool", {"role": "user", "content": [{"type": "image"}]}, None):
        with pytest.raises(InputError):
            history.add_message(wrong, "x")  # type: ignore[arg-type]


class Model:
    """A model that writes a summary when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go, self.done = threading.Event(), threading.Event()

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        assert self.go.wait(10)
        self.go.clear()
        self.done.set()
        if len(self.asked) == 3:
            raise ConnectionError("529")
        return f"Notes {len(self.asked)}: the user looks at parts; the schema stays."


def summarised(history: HistoryPrompt, model: Model) -> str:
    """The prompt after the summary that is being made has come."""
    model.go.set()
    assert model.done.wait(10)
    for thread in [one for one in threading.enumerate() if one.name == "turnlog-summary"]:
        thread.join(10)
    model.done.clear()
    return history.build_prompt("And now?").prompt


def test_a_summary_is_made_beside_the_conversation(caplog: pytest.LogCaptureFixture) -> None:
    """A prompt that waits for its summary, one that is paid for twice, or a failure that nobody is told of fails
    here."""
    model, ledger = Model(), MemoryLedger()
    summarizer = ModelSummarizer(model, name="small")
    history = filled(conversation(60), summarizer=summarizer, ledger=ledger)
    assert history.estimated_total_tokens > 8_000
    first = history.build_prompt("And now?")
    assert "Summary of" not in first.prompt and first.changes
    prompt = summarised(history, model)
    assert "Summary of #1 to #40:\n> Notes 1: the user looks at parts" in prompt and not escaped(prompt)
    assert "a summary stands for 40 messages" in history.build_prompt("And now?").changes
    for one in conversation(90)[60:]:
        history.add_message(one)
    assert "Summary of #1 to #40" in history.build_prompt("And now?").prompt  # the next is made meanwhile
    assert "Summary of #1 to #72:\n> Notes 2" in summarised(history, model) and len(model.asked) == 2
    assert "Notes 1" in model.asked[1], "the last summary is not carried on"
    for one in conversation(130)[90:]:
        history.add_message(one)
    history.build_prompt("And now?")
    with caplog.at_level(logging.INFO, "turnlog"):
        assert "Notes 2" in summarised(history, model)
    assert "ConnectionError: 529" in caplog.text
    assert len(model.asked) == 3
    again = filled(conversation(60), summarizer=summarizer, ledger=ledger)
    again.build_prompt("And now?")
    assert "Notes 1" in again.build_prompt("And now?").prompt and len(model.asked) == 3


def test_a_summary_that_does_not_come_is_given_up() -> None:
    """A model that hangs, and keeps every later summary from being made, fails here."""
    model = Model()
    history = filled(conversation(60), summarizer=ModelSummarizer(model, name="slow"), summary_timeout=0.0)
    history.build_prompt("And now?")
    built = history.build_prompt("And now?")
    model.go.set()
    assert any("timeout" in change for change in built.changes) and "Summary of" not in built.prompt


def test_a_small_history_asks_no_model() -> None:
    """A model that is paid for a history that fits as it is fails here."""
    model = Model()
    model.go.set()
    filled(conversation(20), summarizer=model).build_prompt("x")
    filled(conversation(60), 16_000, 30_000, summarizer=model).build_prompt("x")
    assert model.asked == []
