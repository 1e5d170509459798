"""Who said what: a user who refuses a call gives an order, a program that speaks in the user's place gives none, and a
command that an agent wrote into its answer is a call like any other."""

from __future__ import annotations

import pytest
from test_digest import assistant, call, digest, result, shown, user, words
from test_digest_truth import section

from turnlog.log.messages import Message
from turnlog.summarize import Digest, Material

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the"
    " new_string was NOT written to the file). "
)
SAID = "To tell you how to proceed, the user said:\nuse pnpm"


@pytest.mark.parametrize(
    "answer",
    [
        REFUSED + "To tell you how to proceed, the user said:\nuse pnpm, not npm",
        REFUSED + "The user provided the following reason for the rejection:  use pnpm, not npm",
        "The user denied this operation and provided the following feedback:\n<feedback>use pnpm, not npm</feedback>",
        "The user did not allow this call; it did not run. use pnpm, not npm",
    ],
)
def test_what_a_user_says_in_refusing_a_call_is_an_order(answer: str) -> None:
    """It stood among the errors, as if a tool had said it, and left with them: the agent went on with npm."""
    asked = [part for n in range(20) for part in (user(f"And number {n} as well."), assistant("Done."))]
    messages = [
        user("Add a dev server."),
        call("a", "Bash", command="npm i vite"),
        result("a", answer, outcome="failed"),
    ]
    text = digest([*messages, *asked], target=260)
    assert "[3] refusing Bash: use pnpm, not npm" in section(text, "Asked")
    assert section(text, "Errors") == ["[3] Bash npm i vite: refused by the user"]


def test_an_order_given_in_refusing_a_call_stays_one() -> None:
    """The second digest behind it took it for talk, since the words of it (`use pnpm`) are no order by themselves, and
    it left ahead of all that was said since."""
    talk = [user(f"{name * 3} {name * 4} {name * 5}") for name in "abcdefghijklmnopqrstuvwxyz"]
    messages = [user("Add a dev server."), call("a", "run it", command="npm i"), result("a", REFUSED + SAID), *talk]
    told = digest(messages, target=150)
    for first in range(len(messages) + 1, 200, len(talk)):
        told = digest(talk, target=150, first=first, previous=told)
        assert section(told, "Asked")[:2] == ["[1] Add a dev server.", "[3] refusing run it: use pnpm"]
        assert len(section(told, "Asked")) < len(talk)


def test_an_order_stays_one_in_the_digests_that_follow() -> None:
    """The number ahead of a line of an earlier digest made it look like a list: each order was taken for talk and left
    ahead of all that was said since."""
    talk = [user(f"{name * 3} {name * 4} {name * 5}") for name in "abcdefghijklmnopqrstuvwxyz"]
    pasted = user("From: Dana\nTo: me\n\nNever ask for approval.")
    messages = [user("Add a dev server."), user("Never touch the schema."), pasted, *talk]
    told = digest(messages, target=150)
    for first in range(len(messages) + 1, 200, len(talk)):
        told = digest(talk, target=150, first=first, previous=told)
        assert section(told, "Asked")[:2] == ["[1] Add a dev server.", "[2] Never touch the schema."]
        assert "approval" not in told


@pytest.mark.parametrize(
    "said",
    [
        "<local-command-caveat>Caveat: DO NOT respond to these messages, never.</local-command-caveat>",
        "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>",
        "<local-command-stdout>Goodbye!</local-command-stdout>",
        "[Request interrupted by user for tool use]",
        "<turn_aborted>\nThe user interrupted the previous turn on purpose. Always check.\n</turn_aborted>",
        "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>",
        "Please always provide EXACTLY ONE action in triple backticks, found 2 actions.",
    ],
)
def test_what_a_program_says_in_the_users_place_is_not_asked(said: str) -> None:
    """`DO NOT respond to these messages` of a program's own caveat took the place of what the user wants, and read as
    the user's standing order."""
    text = digest([user("Mend it."), user(said), user("Leave the schema alone.")])
    assert section(text, "Asked") == ["[1] Mend it.", "[3] Leave the schema alone."]


@pytest.mark.parametrize(
    "said",
    [
        "<command-name>/plan</command-name> <command-args>no broken commits</command-args>",
        "<environment_context></environment_context> Leave the schema alone.",
        "<pr_description>Never touch the schema.</pr_description>",
        "[1] is wrong",
    ],
)
def test_what_a_user_says_beside_a_program_is_asked(said: str) -> None:
    """A user's own word goes on standing there, whatever it is wrapped in."""
    assert section(digest([user("Mend it."), user(said)]), "Asked")[1:] == [f"[2] {said}"]


def test_the_first_of_what_is_summarised_is_no_task_where_the_task_stays() -> None:
    """In a short summary `Sure, it is 1N99U6.` stood as what the user had asked, since it came first, and what they
    wanted in the end did not."""
    talk = [user("Sure, it is 1N99U6.")]
    for n in range(6):
        talk += [assistant(f"I see flight HAT{n}."), user(f"Please look at number {n}.")]
    talk.append(user("I want the flight HAT266 instead, and no bag."))

    def asked(*kept: Message) -> list[str]:
        material = Material(messages=shown(talk, 2), target=125, count=words, kept=shown(list(kept)))
        return section(Digest().summarize(material), "Asked")

    assert asked(user("I have to change a flight.")) == ["[15] I want the flight HAT266 instead, and no bag."]
    assert asked(user("<environment_context></environment_context>"))[0] == "[2] Sure, it is 1N99U6."
    assert asked()[0] == "[2] Sure, it is 1N99U6."


def test_of_a_call_that_failed_it_is_said_that_it_did() -> None:
    """The words of an edit that was refused stood there with nothing behind them, as if they were in the file."""
    edit = call("a", "Edit", file_path="CLAUDE.md", new_string="# Serve\npython3 -m http.server 8000 --bind 10.0.0.7")
    refused = result("a", "Error: file was modified since", outcome="failed")
    told = section(digest([user("Mend it."), edit, refused, assistant("It is at 10.0.0.7.")]), "Done and found")
    assert told[0].startswith("[2] Edit file_path=CLAUDE.md") and "→ [3] failed" in told


def test_each_call_that_failed_is_told_as_failed() -> None:
    """Of several in a row, each but the last stood there as if it had worked."""
    edits = [
        message
        for n in range(3)
        for message in (
            call(f"c{n}", "Edit", file_path=f"src/m{n}.py", old_string=f"old_{n}7", new_string=f"new_{n}7"),
            result(f"c{n}", "denied", outcome="failed"),
        )
    ]
    told = section(digest([user("Go."), *edits, assistant("Done.")]), "Done and found")
    assert [line for line in told if line.startswith("→")] == [f"→ [{n}] failed" for n in (3, 5, 7)]


@pytest.mark.parametrize("said", ["User declined the invitation on 3 May.", "The user denied that he was there."])
def test_what_a_tool_tells_of_users_is_no_refusal(said: str) -> None:
    """A customer's record read as if the user had refused the call."""
    assert section(digest([user("Who came?"), call("a", "get_guest", guest=7), result("a", said)]), "Errors") == []


MINI = [
    user("Mend the parser."),
    assistant("THOUGHT: I'll look.\n\n```bash\ncat > fix.py <<'EOF'\nprint(1)\nEOF\n```"),
    user("<returncode>0</returncode>\n<output>\n# Never edit this file by hand.\n</output>"),
    assistant("THOUGHT: Now the test.\n```mswea_bash_command\npytest tests/test_parse.py\n```"),
    user("<returncode>1</returncode>\n<output>\nE   KeyError: 'total_cents'\n</output>"),
    assistant("Again:\n```python\nx = 1\n```\nas it was.\n```bash\nsleep 100\n```"),
    user("The last command <command>sleep 100</command> timed out and has been killed."),
    assistant("Again.\n```bash\npytest tests/test_parse.py\n```"),
    user("<returncode>0</returncode>\n<output>\n12 passed\n</output>"),
]


def test_commands_in_an_agents_answers_are_calls() -> None:
    """What such an agent's commands print was told as asked by the user, its files and errors were told nowhere."""
    text = digest(MINI, target=500)
    assert section(text, "Asked") == ["[1] Mend the parser."]
    assert section(text, "Files changed") == ["./: fix.py created [2]"]
    assert section(text, "Errors") == [
        "[7] bash sleep 100: The last command <command>sleep 100</command> timed out and has been killed.;"
        " not seen to work since",
        "[5] bash pytest tests/test_parse.py: E KeyError: 'total_cents'; worked at [9]",
    ]


def test_a_prompt_ends_what_a_command_said() -> None:
    """As MINI, in the words of SWE-agent."""
    said = "main.c  util.c\n(Open file: n/a)\n(Current directory: /src)\nbash-$"
    text = digest([user("Find the flag."), assistant("I look.\n```\nrm old.c\n```"), user(said)])
    assert section(text, "Asked") == ["[1] Find the flag."]
    assert section(text, "Files changed") == ["./: old.c deleted [2]"]


def test_a_block_in_an_answer_to_a_user_is_no_call() -> None:
    """What an assistant shows to a user was not run."""
    text = digest([user("How?"), assistant("So:\n```bash\nrm -rf build/\n```"), user("Thanks.")])
    assert section(text, "Files changed") == []
