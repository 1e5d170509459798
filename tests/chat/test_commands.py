"""What a chat does: says things, asks before tools run, and every slash command."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import turnlog
from turnlog.agent import Question
from turnlog.chat.choice import Choice, chosen
from turnlog.chat.commands import COMMANDS, completions, is_command, run_command
from turnlog.chat.conversation import Chat
from turnlog.errors import InputError, SessionNotFound, TurnlogError
from turnlog.log.messages import Media, ToolCall
from turnlog.runners import DEMO_MODEL, ProgramRunner, ScriptedRunner, SdkRunner
from turnlog.stores import MemoryStore

DEMO = turnlog.target("openai-chat", DEMO_MODEL)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


@pytest.fixture
def talk(tmp_path: Path) -> Chat:
    """A conversation with the built-in model, in an empty folder."""
    return talk_with(ScriptedRunner(), tmp_path)


def talk_with(runner: ScriptedRunner, folder: Path, allowed: tuple[str, ...] = ()) -> Chat:
    store = MemoryStore()
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    return Chat(store, start, start("s", target=DEMO), Choice(DEMO, runner), folder=folder, allowed=allowed)


def say(talk: Chat, text: str | None) -> str:
    """Say something; the whole answer."""

    async def answer() -> str:
        return "".join([event.text async for event in talk.say(text) if event.kind == "text"])

    return asyncio.run(answer())


def do(talk: Chat, line: str) -> str:
    return asyncio.run(run_command(talk, line))


def answering(*answers: str) -> Callable[[Question], object]:
    """Somebody who answers questions."""
    left = [*answers]

    async def ask(question: Question) -> str:
        return left.pop(0)

    return ask


def test_every_command_answers_in_words_in_a_new_session(talk: Chat) -> None:
    """A command that ends in a traceback where nothing was said yet ends the chat."""
    for name in COMMANDS:
        if name == "quit":
            continue
        with suppress(TurnlogError):
            assert do(talk, f"/{name}").strip(), name


def test_an_unknown_command_is_told_and_a_short_one_understood(talk: Chat) -> None:
    """A slip of the finger that is said to the model costs money."""
    assert do(talk, "/hel").startswith("| command |")
    for line in ("/unknown", "/"):
        with pytest.raises(InputError, match="/help lists them"):
            do(talk, line)
    with pytest.raises(InputError, match="it may be /rewind, /restore, /resume"):
        do(talk, "/re")
    assert not is_command("/usr/bin is a folder") and is_command("/model openai/gpt-4o")


def test_what_was_said_is_taken_back_marked_and_gone_back_to(talk: Chat) -> None:
    """A `/restore` or `/rewind` that leaves in the view what it says it took out."""
    say(talk, "one")
    assert do(talk, "/save base") == "Saved as `base`; `/restore base` comes back here."
    say(talk, "two")
    say(talk, "three")
    assert "2 messages taken back" in do(talk, "/rewind")
    assert "three" not in do(talk, "/history") and "two" in do(talk, "/history")
    do(talk, "/restore base")
    assert do(talk, "/history").splitlines()[-1].endswith("assistant: You said: one")
    with pytest.raises(InputError, match="nothing was saved as 'here'; saved are: base"):
        do(talk, "/restore")
    do(talk, "/clear")
    assert do(talk, "/history") == "Nothing was said yet."
    with pytest.raises(
        InputError, match=r"^turns: the conversation has 0 turns since it was cleared; go back to record "
    ):
        do(talk, "/rewind 2")
    do(talk, "/rewind")
    assert do(talk, "/history").splitlines()[-1].endswith("assistant: You said: one")


def test_a_fork_goes_on_apart_and_resume_goes_back(talk: Chat) -> None:
    """What is said in a copy must not reach the session that it was made of."""
    say(talk, "one")
    assert "session `other`" in do(talk, "/fork other") and talk.session.id == "other"
    say(talk, "two")
    resumed = do(talk, "/resume s")
    assert resumed.endswith("lists what was said.\n\n> one\n\n\nYou said: one") and talk.session.id == "s"
    assert "two" not in do(talk, "/history")
    rows = do(talk, "/sessions")
    assert re.search(r"\| s \(this one\) \| \S+ \| 2 \| one \|", rows) and "| othe |" in rows
    with pytest.raises(SessionNotFound):
        do(talk, "/resume none")
    assert talk.session.id == "s" and say(talk, "still here") == "You said: still here"


def test_the_model_changes_and_its_losses_are_told(talk: Chat) -> None:
    """A switch that is not told, or that the next request does not make."""
    assert do(talk, "/model").startswith("`openai-chat/scripted/demo`. `/model PROVIDER/MODEL` changes it")
    assert do(talk, "/model anthropic/claude-sonnet-4-5").startswith("The next answer is from `anthropic/claude-s")
    assert talk.session.target is not None and talk.session.target.provider == "anthropic"
    assert isinstance(talk.choice.runner, SdkRunner)
    for wrong in ("gpt-4o", "nobody/gpt-4o", "openai/"):
        with pytest.raises(InputError, match="a model is named PROVIDER/MODEL"):
            do(talk, f"/model {wrong}")
    assert say_error(talk) == "anthropic"


def test_a_local_server_stays_in_use_until_another_is_named(talk: Chat) -> None:
    """A conversation with a server at home that goes to a provider because its model has another name there."""
    do(talk, "/model openai/llama http://127.0.0.1:1/v1")
    assert do(talk, "/model openai/qwen") == "The next answer is from `openai-chat/qwen` at http://127.0.0.1:1/v1."
    assert do(talk, "/model openai/gpt-4o https://api.openai.com/v1").endswith("at https://api.openai.com/v1.")


def test_a_session_goes_on_with_its_own_model(talk: Chat, tmp_path: Path) -> None:
    """The request for one model that is sent to another, because a session was left for a second one; and a session
    without a model in which nothing can be said."""
    with turnlog.open("claude", store=talk.store, target=turnlog.target("anthropic", "claude-sonnet-4-5")):
        pass
    turnlog.open("none", store=talk.store).close()
    assert do(talk, "/resume claude").endswith("`/history` lists what was said.\n\nNothing was said in it yet.")
    assert isinstance(talk.choice.runner, SdkRunner)
    do(talk, "/resume s")
    assert talk.choice.target == DEMO and say(talk, "one") == "You said: one"
    do(talk, "/resume none")
    assert say(talk, "two") == "You said: two"


def test_a_command_that_changes_the_session_waits_for_the_answer(talk: Chat) -> None:
    """A session that is closed, cleared or switched under an answer that is still coming."""
    for line in ("/resume other", "/clear", "/rewind", "/model openai/gpt-4o", "/restore a", "/fork x", "/compact"):
        with pytest.raises(InputError, match=rf"^{line.split()[0]} cannot run while an answer streams"):
            asyncio.run(run_command(talk, line, answering=True))
    assert asyncio.run(run_command(talk, "/history", answering=True)) == "Nothing was said yet."


def test_what_a_command_takes_is_offered(talk: Chat) -> None:
    """Whoever has to know the name of a model or a session by heart mistypes it."""
    do(talk, "/save base")
    found = {line: [name for name, _ in completions(talk, line)] for line in OFFERED}
    assert found == OFFERED
    names = [name for name, _ in completions(talk, "/model openai/gpt-5")]
    assert "openai/gpt-5-mini" in names and all(name.startswith("openai/gpt-5") for name in names)
    assert chosen(names[0]).target.provider == "openai-responses"
    assert [name for name, _ in completions(talk, "/model google-interactions/gemini-2.5-p")][:1]


OFFERED = {
    "/res": ["restore", "resume"],
    "/model s": ["scripted/demo"],
    "/model op": ["openai/", "openai-chat/", "openai-responses/"],
    "/model nobody/x": [],
    "/restore ": ["base"],
    "/resume ": ["s"],
    "/export h": ["html"],
    "/help m": [],
    "/nonsense ": [],
    "say /mod": [],
}


def say_error(talk: Chat) -> str:
    """The provider of the request that the next word makes."""
    return talk.session.request().target.provider


def test_requests_are_made_smaller_and_why_tells(talk: Chat) -> None:
    """A compaction that nobody can see."""
    for n in range(6):
        say(talk, f"Part {n}. " + "And more words of it. " * 60)
    first = talk.session.view()[0].records[0]
    assert "tokens became" in do(talk, "/compact 1")
    assert "| record | decision | why |" in do(talk, "/why") and "tokens are sent." in do(talk, f"/why {first}")
    assert "| summary |" in do(talk, "/context") and do(talk, "/cost").endswith(" out, $0.0000")
    for line in ("/why 9999", "/compact x", "/rewind 0"):
        with pytest.raises(InputError):
            do(talk, line)


def test_the_room_in_the_window_is_explained(talk: Chat) -> None:
    """Two numbers for one window, and nobody who says where the difference went."""
    window = talk.session.window
    room = f"{window.tokens:,} of {window.tokens + window.available:,} tokens. "
    why = "The window has 128,000; the rest is room for the answer, and a margin, as counts are estimated.\n\n| what |"
    assert do(talk, "/context").startswith(room + why)
    talk.session.configure(budget=50_000)
    room = f"{window.tokens:,} of {window.tokens + window.available:,} tokens. "
    assert do(talk, "/context").startswith(
        f"{room}The budget has 50,000; the rest is a margin, as counts are estimated.\n"
    )


def test_an_unknown_price_is_said(talk: Chat) -> None:
    """A question mark that may be a price, or a broken chat."""
    target = turnlog.target("openai-chat", "nobody-knows-it", base_url="http://127.0.0.1:1/v1")
    talk.session.switch(target)
    say(talk, "one")
    assert do(talk, "/cost").endswith(" out, price unknown (no full price for nobody-knows-it)")


def test_an_export_is_written_where_the_chat_works(talk: Chat, tmp_path: Path) -> None:
    """A file that lands elsewhere, or a format that fails with a traceback."""
    say(talk, "one")
    assert do(talk, "/export markdown out.md") == "Written to out.md"
    assert "one" in (tmp_path / "out.md").read_text()
    with pytest.raises(InputError, match="formats are"):
        do(talk, "/export pdf out.pdf")


def test_tools_ask_first_and_change_files_on_record(tmp_path: Path) -> None:
    """A tool that runs without a yes, and a change that `/diff` does not show."""
    calls = [ToolCall(f"c{n}", "edit_file", {"path": f"{n}.txt", "old": "", "new": "x\n"}) for n in range(4)]
    talk = talk_with(ScriptedRunner([calls[0], "A.", calls[1], "B.", calls[2], "C.", calls[3], "D."]), tmp_path)
    talk.ask = answering("n", "not in this folder", "always")  # type: ignore[assignment]
    said = [say(talk, "go") for _ in range(4)]
    assert said == ["A.", "B.", "C.", "D."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.txt", "3.txt"]
    found = [(info.call.id, info.outcome) for info in talk.session.log.calls()]
    assert found == [("c0", "canceled"), ("c1", "canceled"), ("c2", "ok"), ("c3", "ok")]
    assert "+x" in do(talk, "/diff") and [one.path for one in talk.changed_since(0)] == ["2.txt", "3.txt"]


def test_images_are_sent_by_their_path(talk: Chat, tmp_path: Path) -> None:
    """An image that is named and not seen, or one that is not there and ends the chat."""
    (tmp_path / "shot.png").write_bytes(PIXEL)
    say(talk, "What is in @shot.png?")
    messages = (record.message for record in talk.session.history())
    [seen] = [part for message in messages if message for part in message.parts if isinstance(part, Media)]
    assert (seen.kind, seen.mime, seen.size) == ("image", "image/png", len(PIXEL))
    (tmp_path / "half.png").write_bytes(PIXEL[:40])
    (tmp_path / "text.png").write_text("no image")
    os.mkfifo(tmp_path / "pipe.png")
    for name, why in (
        ("none", ": No such file"),
        ("pipe", ": it is a pipe, not a file"),
        ("a\0b", ": embedded null byte"),
        ("half", " cannot be sent: its end"),
        ("text", " cannot be sent: it is"),
    ):
        with pytest.raises(InputError, match=rf"@{name}\.png{why}"):
            say(talk, f"And in @{name}.png?")
    assert len([one for one in talk.session.history() if one.message]) == 2


def test_an_interrupted_turn_goes_on(tmp_path: Path) -> None:
    """What a failure left open is lost, or answered as a new question."""
    talk = talk_with(ScriptedRunner([ValueError("down"), "Here."]), tmp_path)
    with pytest.raises(ValueError, match="down"):
        say(talk, "go")
    assert talk.goes_on and say(talk, None) == "Here." and not talk.goes_on


def test_who_answers_is_chosen_by_name_or_by_key() -> None:
    """A key that is not used, or three lines that do not help who has none."""
    assert chosen(environment={"GEMINI_API_KEY": "k"}).target.provider == "google"
    assert chosen("openai/gpt-4o").target.provider == "openai-responses"
    local = chosen("openai/llama", base_url="http://127.0.0.1:1/v1")
    assert (local.target.provider, local.target.base_url) == ("openai-chat", "http://127.0.0.1:1/v1")
    program = chosen(program="claude")
    assert isinstance(program.runner, ProgramRunner) and program.brings_tools
    with pytest.raises(InputError, match=r"which model is at http://127\.0\.0\.1:1/v1"):
        chosen(base_url="http://127.0.0.1:1/v1", environment={"OPENAI_API_KEY": "k"})
    with pytest.raises(InputError, match=r"begins with http:// or https://, unlike 'localhost'"):
        chosen("openai/llama", base_url="localhost")
    with pytest.raises(InputError) as raised:
        chosen(environment={})
    assert len(str(raised.value).splitlines()) == 3 and "--model scripted/demo" in str(raised.value)
