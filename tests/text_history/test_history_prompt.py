"""The compact text history: golden prompts, its maximum, its levels, quotation, summaries in the background."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quoted_prompts import escaped, injection, message

import turnlog
from draws import batches
from turnlog.errors import InputError
from turnlog.log.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult, text_of
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


def plain(count: int) -> list[Message]:
    """So many messages of about 140 tokens."""
    texts = [f"Message {n}: " + "some plain words of it " * 25 for n in range(count)]
    return [Message("assistant" if n % 2 else "user", (Text(text),)) for n, text in enumerate(texts)]


def whole_in(prompt: str, messages: list[Message]) -> list[int]:
    """The messages whose whole text stands in a prompt."""
    shown = prompt.replace("> ", "")
    return [n for n, one in enumerate(messages) if text_of(one).strip() in shown]


def test_levels_follow_the_size_of_the_history() -> None:
    """A level that begins at another size, or that shortens what has room, fails here."""
    found = {}
    for count in (10, 60, 150):
        history = filled(plain(count))
        built = history.build_prompt("Go on.")
        found[built.level] = history.estimated_total_tokens, built.compressed, whole_in(built.prompt, plain(count))
    (small, compressed, whole) = found["verbatim"]
    assert small < 5_000 and not compressed and whole == list(range(10))
    (middle, compressed, whole) = found["moderate"]
    assert 5_000 <= middle <= 15_000 and not compressed and whole == list(range(60))
    (large, compressed, whole) = found["strong"]
    assert large > 15_000 and compressed and whole[-10:] == list(range(140, 150)), whole


def test_levels_show_what_they_say_where_there_is_no_room() -> None:
    """The first message and the newest eight, or the last three exchanges, that are cut for the sake of others."""
    for count, level, kept in ((60, "moderate", [0, *range(52, 60)]), (150, "strong", [*range(140, 150)])):
        built = filled(plain(count), 4_000).build_prompt("Go on.")
        assert (built.level, built.compressed) == (level, True)
        assert set(kept) <= set(whole_in(built.prompt, plain(count)))


@pytest.mark.parametrize("tokens", [15_500, 40_000])
@pytest.mark.parametrize("words", [(100,), (5, 30, 100, 600), (20, 8_000)], ids=["even", "mixed", "giants"])
def test_without_a_summarizer_the_room_is_used(tokens: int, words: tuple[int, ...]) -> None:
    """A prompt that drops two texts of three and leaves two thirds of its maximum empty fails here."""
    draw, history = Random(tokens), HistoryPrompt()
    while history.estimated_total_tokens < tokens:
        said = " ".join(draw.choice(("row", "file", "src/a.py", "café")) for _ in range(draw.choice(words)))
        history.add_message("assistant" if history.message_count % 2 else "user", said)
    built = history.build_prompt("What now?")
    assert 0.85 * 16_000 <= built.tokens <= 16_000


def test_a_prompt_leaves_room_for_the_answer_in_the_models_window() -> None:
    """A prompt that fills a small model's window, so that no answer has room, fails here."""
    assert HistoryPrompt().prompt_limit == HistoryPrompt(model="gpt-4o").prompt_limit == 16_000
    assert HistoryPrompt(model="gpt-4").prompt_limit == 8_192 - 4_000
    assert HistoryPrompt(model="gpt-4", answer_tokens=1_000).prompt_limit == 8_192 - 1_000
    assert HistoryPrompt(model="a model that nobody knows").prompt_limit == 16_000
    built = filled(conversation(200), model="gpt-4").build_prompt("Go on.")
    assert 0.85 * 4_192 <= built.tokens <= 4_192
    with pytest.raises(InputError, match="answer_tokens and the window of 'gpt-4'"):
        HistoryPrompt(model="gpt-4", answer_tokens=8_150)


def test_growing_conversations_are_warned_of_once_for_each_size(caplog: pytest.LogCaptureFixture) -> None:
    """A conversation that nobody notices to be large, or a warning at every prompt, fails here."""
    history, found = HistoryPrompt(), []
    for one in plain(560):
        history.add_message(one)
        if history.message_count % 20 == 0:
            history.build_prompt("Go on.")
            found += [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
            caplog.clear()
    assert [text.split(" or more")[0].split(", ", 1)[1].split()[-1] for text in found] == ["16,000", "40,000", "60,000"]


def test_an_empty_current_message_is_refused() -> None:
    """A prompt that asks nothing, which is paid for, fails here."""
    history = filled(conversation(4))
    for nothing in ("", " \n", [], [Text("")]):
        with pytest.raises(InputError, match="current message is empty"):
            history.build_prompt(nothing)
    with pytest.raises(InputError, match="current message is empty"):
        history.prompt_of(conversation(4))


@given(st.integers(0, 2**32), st.integers(0, 30))
def test_a_saved_history_is_the_same_when_it_is_loaded(seed: int, count: int) -> None:
    """A program that ends, and whose next prompt differs from what it would have been, fails here."""
    draw = Random(seed)
    history = filled([message(draw, 200) for _ in range(count)])
    with TemporaryDirectory() as folder:
        history.save(Path(folder) / "history.jsonl")
        loaded = HistoryPrompt.load(Path(folder) / "history.jsonl")
    assert loaded.message_count == count
    assert loaded.build_prompt("Go on.") == history.build_prompt("Go on.")


def test_a_saved_summary_is_not_paid_for_again(tmp_path: Path) -> None:
    """A summary that is lost with the process, or one that cannot be had at once, fails here."""
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "Notes: the user looks at parts; the schema stays."

    history = filled(conversation(60), summarizer=ModelSummarizer(ask, name="small"))
    assert (
        history.summarize_history()
        == history.summarize_history()
        == "Notes: the user looks at parts; the schema stays."
    )
    built = history.build_prompt("And now?")
    assert "Summary of #1 to #" in built.prompt and len(asked) == 1
    history.save(tmp_path / "history.jsonl")
    loaded = HistoryPrompt.load(tmp_path / "history.jsonl", summarizer=ModelSummarizer(ask, name="small"))
    assert loaded.build_prompt("And now?") == built and len(asked) == 1


def test_a_summary_of_another_conversation_is_not_saved(tmp_path: Path) -> None:
    """One history serves two conversations, and the saved one tells of what was said in the other."""
    history = filled(conversation(60), summarizer=ModelSummarizer(lambda prompt: "They spoke of bolts.", name="small"))
    assert history.summarize_history() == "They spoke of bolts."
    other = [Message("user", (Text(f"Another matter, {n}. " * 30),)) for n in range(60)]
    history.clear_history()
    for one in other:
        history.add_message(one)
    history.save(tmp_path / "history.jsonl")
    assert "bolts" not in (tmp_path / "history.jsonl").read_text()
    assert "bolts" not in HistoryPrompt.load(tmp_path / "history.jsonl").build_prompt("And now?").prompt


def test_a_summary_by_rules_where_no_model_makes_one(caplog: pytest.LogCaptureFixture) -> None:
    """A summary that is asked for and missing because a model failed, or a failure that nobody is told of."""

    def fails(prompt: str) -> str:
        raise ConnectionError("529")

    by_rules = filled(conversation(60)).summarize_history()
    assert by_rules.startswith("Digest of") and HistoryPrompt().summarize_history() == ""
    assert not caplog.records
    history = filled(conversation(60), summarizer=ModelSummarizer(fails, name="broken"))
    assert history.summarize_history() == by_rules
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "ConnectionError: 529" in caplog.text


@pytest.mark.parametrize(
    "line", ["nothing", "{}", '{"v":1,"n":1,"t":"","body":{"kind":"summary","key":"x","state":"made"}}']
)
def test_a_file_that_is_no_history_is_refused(tmp_path: Path, line: str) -> None:
    """A damaged file that is taken for a shorter conversation fails here."""
    place = tmp_path / "history.jsonl"
    filled(conversation(2)).save(place)
    place.write_text(place.read_text("utf-8") + line + "\n", "utf-8")
    with pytest.raises(InputError, match="line 3"):
        HistoryPrompt.load(place)
    with pytest.raises(InputError, match="cannot be read"):
        HistoryPrompt.load(tmp_path / "none.jsonl")


@pytest.mark.parametrize("model, whole", [("o3-mini", False), ("gpt-4o", True)])
def test_summaries_for_models_that_reason_hold_requests_alone(model: str, whole: bool) -> None:
    """A prompt for o3 whose summary is made of quoted answers fails here."""
    asked: list[str] = []
    ask = ModelSummarizer(lambda prompt: asked.append(prompt) or "Notes.", name="small")  # type: ignore[func-returns-value]
    filled(conversation(60), model=model, summarizer=ask).summarize_history()
    assert ("I read part0.py." in asked[0]) is whole and "look at part0.py" in asked[0]


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
        {"answer_tokens": 0},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Any]) -> None:
    """A limit that no prompt can keep, or no number at all, fails here and not in the middle of a conversation."""
    with pytest.raises(InputError, match=next(iter(values))):
        HistoryPrompt(**values)


def test_messages_are_roles_and_content_or_whole() -> None:
    """What a program has at hand is taken as it is; anything else is refused with what to do."""
    history = HistoryPrompt()
    history.add_user_message([Text("a"), Text("b")])
    history.add_assistant_message("whole")
    history.add_message({"role": "assistant", "content": [{"type": "text", "text": "c"}]})
    history.add_message(Message("user", (Text("d"),)))
    assert history.message_count == 4 and "assistant:\n> whole" in history.build_prompt("e").prompt
    assert "> c" in history.build_prompt("e").prompt
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
    assert "Summary of" not in first.prompt and not first.compressed
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
    caplog.clear()
    assert "Notes 2" in summarised(history, model)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and "ConnectionError: 529" in warned[0]
    assert len(model.asked) == 3
    again = filled(conversation(60), summarizer=summarizer, ledger=ledger)
    again.build_prompt("And now?")
    assert "Notes 1" in again.build_prompt("And now?").prompt and len(model.asked) == 3


def test_a_summary_that_does_not_come_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """A model that hangs, and keeps every later summary from being made, fails here."""
    model = Model()
    history = filled(conversation(60), summarizer=ModelSummarizer(model, name="slow"), summary_timeout=0.0)
    history.build_prompt("And now?")
    built = history.build_prompt("And now?")
    model.go.set()
    assert "Summary of" not in built.prompt
    (change,) = [change for change in built.changes if "no summary" in change]
    assert change == "no summary: slow/prompt-3/100000: timeout: no answer in 0 s"
    assert [record.levelname for record in caplog.records if change in record.getMessage()] == ["WARNING"]


def test_a_small_history_asks_no_model() -> None:
    """A model that is paid for a history that fits as it is fails here."""
    model = Model()
    model.go.set()
    filled(conversation(20), summarizer=model).build_prompt("x")
    filled(conversation(60), 16_000, 30_000, summarizer=model).build_prompt("x")
    assert model.asked == []
