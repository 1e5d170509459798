"""The task stays, whatever an agent says in the user's name ahead of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.log.messages import Message, Text
from turnlog.view.program_prefaces import is_preface

TASK = "Move the invoices of Brixen into the new ledger, and leave those of 2019 alone."
STRATEGIES = ["sliding", "priority", "mask", "summarise", "spec", "codex", "gemini-cli", "auto"]
PREFACES = {
    "codex": [
        "# AGENTS.md instructions for /srv/ledger\n\n<INSTRUCTIONS>\n" + "Run make test. " * 120 + "\n</INSTRUCTIONS>",
        "<environment_context>\n  <cwd>/srv/ledger</cwd>\n  <shell>bash</shell>\n</environment_context>",
    ],
    "codex of 2025": ["<user_instructions>\nRun make test.\n</user_instructions>"],
    "claude": [
        "<local-command-caveat>Caveat: the messages below were made by the user.</local-command-caveat>",
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
    ],
    "none": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("agent", PREFACES)
def test_the_task_stays_behind_what_an_agent_says_in_the_users_name(tmp_path: Path, agent: str, strategy: str) -> None:
    """Codex begins with the folder and the rules of the project, in the user's name: that was taken for the task, and
    the real one was the first to leave. Or it stayed behind a summary of what followed from it."""
    aim = turnlog.target("openai-chat", "gpt-4o")
    path = tmp_path / "s.db"
    with turnlog.open("s", target=aim, store=path) as session:
        session.configure(budget=turnlog.Budget(max_tokens=3_000), strategy=strategy)
        for text in (*PREFACES[agent], TASK):
            session.user(text)
        for turn in range(45):
            session.assistant(f"Row {turn}: " + "booked as it was, with its date and its sum; " * 6)
            session.user(f"And row {turn + 1}? " + "I want it to be right, too, as the one before. " * 2)
            sent = session.request().body
    contents = [message["content"] for message in sent["messages"]]
    assert set(contents[: contents.index(TASK)]) <= set(PREFACES[agent])
    with turnlog.open("s", store=path) as again:
        assert again.request().body == sent


@pytest.mark.slow
@pytest.mark.parametrize("answers", [0, 60])
def test_a_log_that_is_opened_for_the_first_time_has_the_task_at_hand(tmp_path: Path, answers: int) -> None:
    """Of an imported session, whose first request is made from its ends, the rules of the project took all that was
    read of the beginning, or what the agent did for them: some word of the user's later on stood for the task then."""
    aim = turnlog.target("openai-chat", "gpt-4o")
    path = tmp_path / "s.db"
    rules = "# AGENTS.md instructions for /srv/ledger\n\n" + "Run make test before each commit. " * 300
    with turnlog.open("s", target=aim, store=path) as session:
        session.user(rules)
        for _ in range(answers):
            session.assistant("I write down how the tests are run here, and where the ledger stands. " * 20)
        session.user(TASK)
        for turn in range(400):
            session.assistant(f"Row {turn}: " + "booked as it was, with its date and its sum; " * 6)
            session.user(f"And row {turn + 1}?")
    with turnlog.open("s", store=path) as again:
        again.configure(budget=turnlog.Budget(max_tokens=6_000), strategy="sliding")
        assert TASK in json.dumps(again.request().body)


def _message(kind: str, nth: int) -> dict[str, object]:
    """A message of a history that may be damaged: calls that nobody answers, results that nobody asked for."""
    filler = f"Row {nth}: " + "booked as it was, with its date and its sum; " * 8
    function = {"name": "book", "arguments": json.dumps({"row": nth})}
    call = {"id": f"call_{nth // 2}", "type": "function", "function": function}
    messages: dict[str, dict[str, object]] = {
        "user": {"role": "user", "content": filler},
        "preface": {"role": "user", "content": PREFACES["claude"][nth % 2]},
        "assistant": {"role": "assistant", "content": filler},
        "call": {"role": "assistant", "content": None, "tool_calls": [call]},
        "result": {"role": "tool", "tool_call_id": f"call_{nth // 2}", "content": filler},
    }
    return messages[kind]


@given(
    prefaces=st.lists(st.sampled_from([text for texts in PREFACES.values() for text in texts]), max_size=3),
    behind=st.lists(st.sampled_from(["user", "preface", "assistant", "call", "result"]), max_size=60),
    strategy=st.sampled_from(STRATEGIES),
    room=st.integers(700, 6_000),
)
def test_no_damage_takes_the_task_away(prefaces: list[str], behind: list[str], strategy: str, room: int) -> None:
    """Whatever stands ahead of the task in the user's name, and whatever is missing behind it: a request without it
    has a model go on with something else. Where there is no room for it beside what must stay, that is said."""
    ahead = [{"role": "user", "content": text} for text in prefaces]
    messages = [*ahead, {"role": "user", "content": TASK}, *(_message(kind, nth) for nth, kind in enumerate(behind))]
    refused: turnlog.BudgetError | None = None
    try:
        made = turnlog.fit({"model": "gpt-4o", "messages": messages}, max_tokens=room, strategy=strategy)
    except turnlog.BudgetError as error:
        refused = error
    if refused is not None:
        assert sum(refused.floor.values()) > room and refused.floor["the task"] > 0
    else:
        assert TASK in json.dumps(made.body)
        assert made.tokens <= room


@pytest.mark.parametrize(
    "text", ["", "hi", "<b>Bold</b>", "<environment_context>a</environment_context> Mend it.", "# AGENTS.md"]
)
def test_words_of_the_users_own_are_no_preface(text: str) -> None:
    """What the user wrote beside such a text would be taken for the program's, and leave."""
    assert not is_preface(Message("user", (Text(text),)))
