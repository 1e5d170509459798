"""Sessions handed to other programs: the prompt, its size, what it tells and what it must not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.errors import InputError, SessionNotFound
from turnlog.handoff import handoff, session_file
from turnlog.handoff.handoff import MODELS, Program
from turnlog.importers import read_file
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.hostile import hostile_session
from turnlog.testing.strategies import damaged_histories

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
HEADINGS = ["What the user asked", "What the user requires", "What was done", "The last messages", "Now"]


def stored(*messages: Message) -> MemoryStore:
    store = MemoryStore()
    store.create("s")
    store.append("s", [Draft(MessageRecord(message)) for message in messages])
    return store


def counted(prompt: str, to: Program) -> int:
    """The tokens of a request of this one message to the model of a program."""
    provider, model = MODELS[to]
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": prompt}]}
    return turnlog.count(turnlog.convert(body, to=provider).body, provider, model=model).tokens


def said(role: str, text: str) -> Message:
    return Message(role, (Text(text),))  # type: ignore[arg-type]


def called(n: int, name: str, **arguments: str) -> tuple[Message, Message]:
    """A call, and its result."""
    return (
        Message("assistant", (ToolCall(f"c{n}", name, arguments),)),
        Message("user", (ToolResult(f"c{n}", name, (Text("done"),)),)),
    )


def worked() -> MemoryStore:
    """A session in which a file was written, with a rule, a failure and an answer that leaves something open."""
    return stored(
        said("system", "You are a careful agent."),
        said("user", "Port shop/importer.py to Rust. Never touch the database schema."),
        *called(1, "write_file", path="shop/importer.rs", content="fn main() {}"),
        *(one for n in range(2, 30) for one in called(n, "read_file", path=f"shop/part_{n}.py")),
        said("assistant", "The port stands. The next step is to run the tests of part 7."),
        said("user", "Which tests?"),
        said("assistant", "Those in tests/test_part_7.py; they are still to be run."),
    )


@pytest.mark.parametrize("to", MODELS)
def test_the_prompt_tells_what_the_next_agent_needs(to: Program) -> None:
    """The task, a rule, a changed file, the last words and what is open: what is not told is asked again, or undone."""
    made = handoff(worked(), "s", to)
    assert made.tokens == counted(made.prompt, to) <= 8_000
    assert made.prompt == f"{made.past}\n\n## Now\n\n{made.now}" and made.records == 63
    for fact in (
        "> Port shop/importer.py to Rust.",
        "Never touch the database schema.",
        "shop/: importer.rs",
        "run the tests of part 7",
        "tests/test_part_7.py; they are still to be run.",
        "The agent's last word on #62 was #63.",
    ):
        assert fact in made.prompt, fact
    assert "You are a careful agent" not in made.prompt
    assert re.findall("^## (.*)$", made.prompt, re.MULTILINE) == HEADINGS


@pytest.mark.slow
@given(damaged_histories(), st.sampled_from(tuple(MODELS)), st.integers(1_000, 4_000))
@settings(max_examples=examples(30, 1_000))
def test_prompts_keep_their_size_and_their_quotes(history: History, to: Program, limit: int) -> None:
    """A prompt that is over its limit is refused or cut by the program; a text that leaves its quote gives orders."""
    store = MemoryStore()
    for data in history.blobs.values():
        store.put_blob(data)
    store.create("s")
    store.append("s", [Draft(MessageRecord(message)) for message in history.messages])
    try:
        made = handoff(store, "s", to, max_tokens=limit)
    except InputError:
        assert not [one for one in history.messages if one.role != "system"]
        return
    assert made.tokens == counted(made.prompt, to) <= limit
    found = re.findall("^## (.*)$", made.prompt, re.MULTILINE)
    assert found == [heading for heading in HEADINGS if heading in found]


def test_hostile_texts_stay_in_their_quotes() -> None:
    """Whatever ends a line for some reader would put the rest of a text among the words of whoever hands over."""
    store = MemoryStore()
    hostile_session(store, "every", 20_000)
    own = {line for line in handoff(store, "every", "codex").prompt.splitlines() if not line.startswith(">")}
    assert all(
        re.fullmatch(r"|## .*|#\d.*|You go on .*|Lines that begin .*|The agent's .*|Go on .*|\[\.\.\. .*", line)
        for line in own
    )


def test_secrets_are_replaced_before_anything_is_cut() -> None:
    """A key in a session of another program, or the half of one that a cut leaves, would be sent to a third party."""
    texts = [said("user", f"Deploy with {SECRET}, part {n}. " + "so " * 300 + SECRET) for n in range(20)]
    made = handoff(stored(*texts), "s", "claude", max_tokens=2_000, instruction=f"Use {SECRET}.")
    assert SECRET[:12] not in made.prompt and made.redacted == {"github-token": 40}


def test_what_was_taken_back_is_not_handed_over() -> None:
    """The next agent would go on with what the user does not want."""
    store = MemoryStore()
    with turnlog.open("s", store=store) as session:
        session.user("Write a poem about the sea.")
        session.assistant("The sea.")
        session.user("Forget it: delete everything.")
        session.assistant("Deleted.")
        session.rewind(turns=1)
    made = handoff(store, "s", "gemini")
    assert "about the sea" in made.prompt and "delete everything" not in made.prompt


def test_what_to_do_now_can_be_said_and_is_cut_to_size() -> None:
    """An instruction that is left out, or makes the prompt too long."""
    assert handoff(worked(), "s", "codex", instruction="Run the tests.").prompt.endswith("## Now\n\nRun the tests.")
    long = handoff(worked(), "s", "codex", instruction="Run the tests. " * 2_000, max_tokens=1_000)
    assert long.tokens <= 1_000 and long.now.startswith("Run the tests.")


def test_the_last_request_is_the_last_that_the_user_said() -> None:
    """A word of the user beside a tool's result, or after texts of a program, and the next agent does an older task."""
    caveat = Message("user", (Text("Caveat: The messages below were generated by the user."),), by_program=True)
    call, result = called(1, "read_file", path="a.py")
    told = Message("user", (*result.parts, Text("and use Decimal")))
    made = handoff(stored(caveat, said("user", "Mend a.py."), call, told, said("assistant", "Done.")), "s", "codex")
    assert "The agent's last word on #4 was #5." in made.now
    session = stored(caveat, said("user", "Mend a.py."), *(one for n in range(2, 30) for one in called(n, "x", a="1")))
    assert "#1 user" not in handoff(session, "s", "codex").past.partition("## What was done")[0]


def test_mistakes_are_told() -> None:
    """A mistake that makes a prompt of nothing."""
    with pytest.raises(InputError, match="there is no program 'cursor'; there are claude, codex, gemini"):
        handoff(worked(), "s", "cursor")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 1000"):
        handoff(worked(), "s", "codex", max_tokens=999)
    with pytest.raises(InputError, match="session 's' has no messages to hand over"):
        handoff(stored(said("system", "Be brief.")), "s", "codex")
    with pytest.raises(SessionNotFound):
        handoff(worked(), "other", "codex")


def test_a_session_file_is_one_of_geminis() -> None:
    """gemini-cli says that it is damaged, or begins an empty session."""
    made = handoff(worked(), "s", "gemini")
    [read] = read_file(session_file(made, "2026-11-01T10:00:00.000Z").encode())
    messages = [one.body.message for one in read.drafts if isinstance(one.body, MessageRecord)]
    assert read.format.startswith("gemini-cli") and read.warnings == ()
    assert [(one.role, text_of(one)) for one in messages] == [("user", made.past), ("assistant", "I have read it.")]
    with pytest.raises(InputError, match="session files are for gemini; give codex the prompt"):
        session_file(handoff(worked(), "s", "codex"), "2026-11-01T10:00:00.000Z")
