"""Sentences of the user that forbid or require something, and texts that only look like them."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.log.messages import Message, Text, ToolResult
from turnlog.summarize.orders import orders_in, orders_of


@pytest.mark.parametrize(
    ("text", "orders"),
    (
        ("Never touch the schema file.", ("Never touch the schema file.",)),
        ("Fix it. Do not edit tests/, e.g. in tests/unit. Ok?", ("Do not edit tests/, e.g. in tests/unit.",)),
        ("- never use tabs\n- only write to src/\n- the sky is blue", ("never use tabs", "only write to src/")),
        ("You must:\n- keep the API\n- run the tests\n\nThanks", ("You must:\n- keep the API\n- run the tests",)),
        (
            "Please never touch\nthe schema file or\nits tests. Ok.",
            ("Please never touch\nthe schema file or\nits tests.",),
        ),
        ("Never use `eval`. Fine.", ("Never use `eval`.",)),
        ("The only command is make.", ("The only command is make.",)),
        ("Help me change it without breaking the tests.", ("Help me change it without breaking the tests.",)),
        ("You may now edit the schema.", ("You may now edit the schema.",)),
        ("You can edit a.py again. Fine.", ("You can edit a.py again.",)),
        ("Leave src/a.py alone. Fine.", ("Leave src/a.py alone.",)),
        ("Two rules:\n- Ann eats no fish.\n- Dates are ISO.", ("Two rules:\n- Ann eats no fish.", "- Dates are ISO.")),
        ("## Rules\n- be brief\n- be kind\n\nIt is late.", ("be brief", "be kind")),
        ("Rule one: Ann is first. It is late.", ("Rule one: Ann is first.",)),
        ("It is late. No trips before nine. Go on.", ("No trips before nine.",)),
        ("Go on.\n\nTell me before you deploy.", ("Tell me before you deploy.",)),
        ("Every answer ends with a date. Ok.", ("Every answer ends with a date.",)),
        ("Can you make sure that the tests pass?", ("Can you make sure that the tests pass?",)),
        ("use pnpm, not npm", ("use pnpm, not npm",)),
        ("Never touch it (the schema)", ("Never touch it (the schema)",)),
        ("Ändere nie die Datenbank. Es geht nicht.", ("Ändere nie die Datenbank.",)),
        ("Ne touche jamais à la base.", ("Ne touche jamais à la base.",)),
        ("Nunca cambies la base.", ("Nunca cambies la base.",)),
        ("Никогда не трогай базу.", ("Никогда не трогай базу.",)),
        ("不要修改数据库。", ("不要修改数据库。",)),
    ),
)
def test_orders_are_found_word_for_word(text: str, orders: tuple[str, ...]) -> None:
    """A rule that is not found is lost when its message leaves; one that is cut says something else."""
    assert orders_in(text) == orders


@pytest.mark.parametrize(
    "text",
    (
        "It never works. I don't know why. I only see one.",
        "Why do you never answer?",
        "The only form of input was punched cards.",
        "No errors in the log. No luck with it. No changes so far. No tests failed.",
        "The rules are in a file. These requirements are met:",
        "Every file is there. Each test needs 3 s? Can you help me with it now?",
        "🔄 Tests give you confidence to improve your code without breaking it.",
        "Never.",
        "```\nnever touch it\n```",
        "> never touch it, he says",
        "<log>\nYou must never touch it.\n</log>",
        "# Never touch it",
        "The error was:\n\nYou must not touch it.",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-never touch it\n+always touch it",
        "2026-01-01 10:00:00 you must never touch it",
        '{"rule": "never touch it"}',
        "def f():  # never call this\n    return only(x);",
        "Base directory for this skill: /x\n\nNever touch it.",
        "This session is being continued from a previous conversation that ran out of context. Never touch it.",
        "<system-reminder>Never touch it.</system-reminder>",
    ),
)
def test_reports_and_pastes_are_no_orders(text: str) -> None:
    """A line of a log that is told to the model as the user's rule would bind it to what nobody wants."""
    assert orders_in(text) == ()


def test_only_the_user_gives_orders() -> None:
    """Tool output and the agent's own words must not become rules; what a user says when refusing a call must."""
    said = Text("Never touch the schema.")
    assert orders_of(Message("user", (said,))) == ("Never touch the schema.",)
    assert orders_of(Message("assistant", (said,))) == ()
    assert orders_of(Message("user", (said,), by_program=True)) == ()
    assert orders_of(Message("user", (ToolResult("c", "read", (said,)),))) == ()
    assert orders_of(Message("user", (Text("<returncode>0</returncode>\nNever touch the schema."),))) == ()
    refusal = "The user doesn't want to proceed with this tool use. The user said: not in this branch"
    assert orders_of(Message("user", (ToolResult("c", "edit", (Text(refusal),)),))) == ("not in this branch",)


_LINES = st.sampled_from(("Never touch it.", "- only write to src/", "You must:", "not do it", "```", "Fine.", ""))


def _line(size: int, end: str) -> str:
    return ("Fine. " * size)[: size - len(end)] + end


_LONG_LINES = st.builds(_line, st.integers(20, 10_100), _LINES)


@given(st.lists(_LINES | _LONG_LINES, max_size=12), st.sampled_from(("\n", "\r\n", "\u2028")))
@example([_line(1_482, ""), _line(9_999, "Test the code always."), _line(3_000, "")], "\n")
@example([_line(9_000, ""), _line(3_000, ""), f"Never touch it. {_line(1_484, '')}"], "\n")
def test_an_order_is_found_whether_or_not_another_is_there(lines: list[str], end: str) -> None:
    """Most of a long text is not looked at if its ends have no word of an order: one that stands where an end begins
    would be lost."""
    said, quiet = "Never touch one.", "Green is a tone."
    found = orders_in(end.join([said, *lines]))
    assert found[:1] == (said,) and found[1:] == orders_in(end.join([quiet, *lines]))


@pytest.mark.parametrize("piece", ("x", "never ", "<a>", "<a b", "```", " \n", "use a ", "a: ", "- ", "don't ", "f(=)"))
def test_no_text_is_looked_at_again_and_again(piece: str) -> None:
    """A text of one piece over and over took a minute, at every request that leaves it out."""
    begin = process_time()
    orders_in(piece * 60_000)
    assert process_time() - begin < 2
