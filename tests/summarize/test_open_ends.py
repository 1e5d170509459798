"""What a digest says is open: the agent's own tasks, next steps and offers, and nothing that is done or answered."""

from __future__ import annotations

import pytest
from test_digest import assistant, call, result, user

from turnlog.log.messages import Message
from turnlog.summarize.errors import first_statement, is_process, sentences_of
from turnlog.summarize.events import open_ends
from turnlog.summarize.notes import NoteCache, NoteReader
from turnlog.summarize.reading import Said
from turnlog.view.types import Shown


def said(*messages: Message, first: int = 1) -> list[Said]:
    return NoteReader(NoteCache()).read([Shown(message, (n,)) for n, message in enumerate(messages, start=first)])


def test_a_list_that_a_tool_returns_is_one() -> None:
    """Tasks that an agent keeps with a tool, one by one, were told nowhere: its arguments hold no list."""
    listed = "#1 [completed] Read the code\n#2 [in_progress] Add the column\n#3 [pending] Run the tests [blocked by #2]"
    messages = (user("Go."), call("a", "TaskList"), result("a", listed, name="TaskList"))
    assert open_ends(said(*messages)) == ["[3] in_progress: Add the column", "[3] pending: Run the tests"]
    done = (call("b", "TaskUpdate", taskId="2", status="completed"), result("b", "Updated", name="TaskUpdate"))
    assert open_ends(said(*messages, *done)) == ["[3] pending: Run the tests"]
    newer = (call("c", "TaskList"), result("c", listed, name="TaskList"))
    assert open_ends(said(*messages), said(*newer, first=9)) == []


def test_tasks_that_are_made_one_by_one_add_up() -> None:
    """The same without a list: each call makes a task, or says how one stands."""
    messages = [user("Go.")]
    for n, subject in enumerate(("Add the column", "Run the tests"), start=1):
        messages += [call(f"c{n}", "TaskCreate", subject=subject, description="...")]
        messages += [result(f"c{n}", f"Task #{n} created successfully: {subject}", name="TaskCreate")]
    messages += [call("d", "TaskUpdate", taskId="1", status="completed"), result("d", "Updated task #1 status")]
    assert open_ends(said(*messages)) == ["[5] pending: Run the tests"]


def test_a_list_in_a_text_is_one() -> None:
    """Agents without a tool for tasks write them into their answers."""
    text = "The plan:\n- [x] Read the code\n- [ ] Add the column\n* [ ] Run the tests\n"
    assert open_ends(said(user("Go."), assistant(text), call("a", "ls"))) == [
        "[2] to do: Add the column",
        "[2] to do: Run the tests",
    ]
    newer = said(assistant(text.replace("[ ]", "[x]")), first=9)
    assert open_ends(said(user("Go."), assistant(text), call("a", "ls")), newer) == []
    assert open_ends(said(user("Go."), assistant("As in `- [ ] x`, a box."), call("a", "ls"))) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("The tests pass.\n\nNext: bring the docs up to date.", ["Next: bring the docs up to date."]),
        ("Done. The Windows build is not yet tested.", ["The Windows build is not yet tested."]),
        ("Still to do: the index. All else works.", ["Still to do: the index."]),
        (
            "All is in place.\n\n## Next steps\n1. Push the branch\n2. Open a request\n\nIt works.",
            ["Next steps: Push the branch", "Next steps: Open a request"],
        ),
        (
            "The handler prints err instead of initErr. Want me to fix that as well?",
            ["The handler prints err instead of initErr. Want me to fix that as well?"],
        ),
        ("Waiting.", []),
        ("Let me run the next step now.", []),
        ("Now I'll look at what is not yet done:", []),
        ("All tests pass, and nothing else is to be said.", []),
        ("```\nNext: this is a line of a program\n```\nIt works.", []),
    ],
)
def test_what_the_agent_names_as_open(text: str, lines: list[str]) -> None:
    """`said last: Waiting.` stood under what is open, and the step that the agent had named did not."""
    assert open_ends(said(user("Go."), assistant(text))) == [f"[2] {line}" for line in lines]


def test_an_offer_is_open_until_it_is_answered() -> None:
    """An offer that the user took up or turned down was told as open; one that was passed over, not at all."""
    offer = assistant("The mails are sent twice. Should I also remove the old queue?")
    line = "[2] Should I also remove the old queue?"
    other = "Translate the welcome page into Portuguese, and keep the headings as they are in the draft."
    assert open_ends(said(user("Go."), offer)) == [line]
    assert open_ends(said(user("Go."), offer), said(user(other), first=3)) == [line]
    for answer in (
        "yes",
        "No, leave it.",
        "The queue has to stay for the reports of last year, so do nothing there now.",
    ):
        assert open_ends(said(user("Go."), offer, user(answer))) == []
        assert open_ends(said(user("Go."), offer), said(user(answer), first=3)) == []


def test_what_stays_beside_it_is_not_said_again() -> None:
    """Room for what a reader sees anyway."""
    text = "Still to do: the index."
    assert open_ends(said(user("Go."), assistant(text)), said(user("Well."), assistant(f"So. {text}"), first=3)) == []


def test_sentences_are_whole() -> None:
    """Half a sentence says something else, or nothing."""
    text = (
        "Great! The version, e.g. 4.2, is `a.b: c`. See **src/x.py** for it!\n\n- **Next**: the third point…\n1. Done"
    )
    assert [*sentences_of(text)] == [
        "The version, e.g. 4.2, is `a.b: c`.",
        "See src/x.py for it!",
        "Next: the third point…",
    ]
    assert [one for one in sentences_of(text) if is_process(one)] == ["Next: the third point…"]
    assert first_statement("Let me look. I'll try again with more. The port is taken by another server.", 60) == (
        "The port is taken by another server."
    )
    assert first_statement("The port is taken by another server, which nobody started.", 30) == ""
