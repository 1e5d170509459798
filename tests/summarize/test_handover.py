"""What a successor has to know of a conversation stands in its digest: what was asked and where it was answered, what
the agent reported, the state of the work, rules that were read, and notes that an agent wrote for its successor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_digest import assistant, call, digest, result, user
from test_digest_truth import section

from turnlog.log.messages import Message
from turnlog.summarize.instructions import line_of, standing
from turnlog.summarize.orders import orders_in

NOISE = [f"src/part_{n}/module_{n * 7}.py:{n * 31}: reads id_{n * 13}" for n in range(60)]


def looks(count: int) -> list[Message]:
    """So many calls that list files."""
    found = "\n".join(NOISE)
    return [part for n in range(count) for part in (call(f"l{n}", "bash", command=f"ls {n}"), result(f"l{n}", found))]


def test_a_report_stays_word_for_word_before_what_calls_printed() -> None:
    """Half of a digest were lines of listings, and of the agent's own reports, the best summaries there are, the
    beginning survived in 2 of 90."""
    report = "The import is mended. It failed since totals may be empty. One offer is open: the export has it, too."
    text = digest([user("Mend the import."), *looks(6), assistant(report), user("Thanks. Now the export.")], target=300)
    assert " ".join(section(text, "Reported")[:3]) == f"[14] {report}"
    assert text.index("## Reported") < text.index("## Done and found")


def test_a_request_says_where_it_was_answered_or_that_it_is_open() -> None:
    """The agent does again what was answered long ago, or thinks that nothing is left to do."""
    history = [user("Mend the import."), *looks(3), assistant("It is mended."), user("Now the export."), *looks(1)]
    asked = digest(history, target=400).partition("## Asked\n")[2].splitlines()
    assert asked[:2] == ["[1] Mend the import. → answered at [8]", "[9] Now the export. → open"]


def test_the_last_check_of_each_kind_says_the_state() -> None:
    """The agent that goes on does not know whether the tests pass, or takes an older failure for the state."""
    steps = [
        ("pytest tests/test_import.py", "E   KeyError: 'total'\n1 failed in 0.2s", "failed"),
        ("ruff check shop && cat a.py", "All checks passed!", "ok"),
        ("cd shop && pytest tests", "...\n12 passed in 0.4s", "ok"),
        ("git commit -m 'Mend it'", "[main 1a2b3c4] Mend it\n 2 files changed, 9 insertions(+)", "ok"),
        ("cat test_results.txt", "3 failed", "ok"),
    ]
    history = [user("Mend it.")]
    for n, (command, said, outcome) in enumerate(steps):
        history += [call(f"c{n}", "bash", command=command), result(f"c{n}", said, outcome=outcome)]
    assert section(digest(history, target=900), "State") == [
        "[5] ruff check shop: All checks passed!",
        "[7] pytest tests: 12 passed in 0.4s",
        "[9] git commit -m 'Mend it': [main 1a2b3c4] Mend it; 2 files changed, 9 insertions(+)",
    ]


def test_a_check_in_the_background_says_how_it_ended_and_a_branch_where_work_goes_on() -> None:
    """The state said "token count: 0" of a commit that ended later, and a branch that was left since."""
    frame = "Chunk ID: a1\nWall time: 1.0 seconds\n"
    running = f"{frame}Process running with session ID 7\nOriginal token count: 0\nOutput:\n"
    ended = f"{frame}Process exited with code 0\nOriginal token count: 9\nOutput:\n[cover b10a9f3] Add a cover\n"
    history = [
        user("Add it."),
        *(call("c1", "bash", command="git branch --show-current"), result("c1", "main")),
        *(call("c2", "bash", command="git switch -c cover"), result("c2", "Switched to a new branch 'cover'")),
        *(call("c3", "exec_command", cmd='git commit -m "Add a cover"'), result("c3", running)),
        *(call("c4", "write_stdin", session_id=7, chars=""), result("c4", ended)),
    ]
    assert section(digest(history, target=900), "State") == [
        "[5] git switch -c cover: Switched to a new branch 'cover'",
        "[9] git commit -m 'Add a cover': [cover b10a9f3] Add a cover",
    ]


@pytest.mark.parametrize(
    "beginning",
    [
        "This session is being continued from a previous conversation that ran out of context.",
        "Another language model started to solve this problem and produced a summary of its thinking process.",
        "<state_snapshot>",
    ],
)
def test_a_note_for_the_successor_stays_whole_and_is_not_the_users(beginning: str) -> None:
    """The note of an earlier compaction was told as asked by the user, in 300 characters, and was gone from the next
    digest."""
    facts = [f"Decision {n}: the field_{n} stays since reason_{n} holds." for n in range(12)]
    note = user("\n".join([beginning, *facts]))
    text = digest([note, *looks(6), user("Go on with the export.")], target=400)
    assert all(fact in text for fact in facts)
    assert "[1] handover:" in text and section(text, "Asked") == ["[14] Go on with the export."]


def test_rules_in_a_file_that_was_read_come_before_other_output() -> None:
    """The agent forgets the rules of AGENTS.md, or takes them for the user's own words."""
    rules = "# Rules\nNever edit generated files by hand.\nYou must run `make lint` before each commit.\n" + "\n".join(
        NOISE
    )
    history = [user("Mend it."), call("r", "Read", file_path="/w/AGENTS.md"), result("r", rules), *looks(6)]
    text = digest(history, target=200)
    assert "Never edit generated files by hand." in section(text, "Done and found")
    assert "[2] Read file_path=/w/AGENTS.md" in section(text, "Done and found")
    assert section(text, "Asked") == ["[1] Mend it."]


@given(
    st.lists(
        st.sampled_from(["Never touch the schema of the billing service, not even in tests", "It is late"])
        | st.text("ab c", min_size=40, max_size=200),
        min_size=1,
        max_size=12,
    )
)
def test_no_order_is_cut(pieces: list[str]) -> None:
    """Half of a rule says something else: `Never touch the schema … in tests` forbids less, or more."""
    text = ". ".join(pieces) + "."
    line = line_of(text)
    for order in orders_in(text):
        assert order in line or order[: len(order) // 2] not in line, line


def test_a_decision_that_a_later_one_replaces_does_not_stand() -> None:
    """A superseded proposal was told under "Decided", and the agent went back to it."""
    decisions = [
        "I decided to store totals as cents instead of floats.",
        "We will use a queue rather than a cron job.",
        "I decided to store totals as Decimal instead of floats.",
    ]
    assert standing(decisions) == [1, 2]
