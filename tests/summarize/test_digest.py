"""The offline summarizer: what it says of a small session, and what it must never do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import Message, Part, Text, ToolCall, ToolResult
from turnlog.summarize import Digest, Material
from turnlog.summarize.notes import NoteCache
from turnlog.view.types import Shown


def words(text: str) -> int:
    """A plain token count that needs no vocabulary."""
    return len(text.split()) + len(text) // 8


def user(*parts: Part | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def call(id: str, name: str, **arguments: Any) -> Message:
    return assistant(ToolCall(id, name, arguments))


def result(id: str, text: str, **kw: Any) -> Message:
    return user(ToolResult(id, parts=(Text(text),), **kw))


def shown(messages: list[Message], first: int = 1) -> tuple[Shown, ...]:
    return tuple(Shown(message, (number,)) for number, message in enumerate(messages, start=first))


def digest(messages: list[Message], target: int = 400, first: int = 1, **kw: Any) -> str:
    return Digest().summarize(Material(messages=shown(messages, first), target=target, count=words, **kw))


SESSION = [
    user("The importer drops rows with an empty total. Never touch the schema file."),
    call("a", "bash", command="pytest -x tests/test_import.py"),
    result("a", "F\nE   KeyError: 'total_cents'\nExit code: 1"),
    assistant("The problem is `parse_row`: it reads total_cents before it is set. I'll give it a default."),
    call("b", "edit", file_path="shop/importer.py", old_string="row['total_cents']", new_string="row.get(K, 0)"),
    result("b", "ok"),
    call("c", "bash", command="pytest -x tests/test_import.py"),
    result("c", "12 passed in 0.41s\nExit code: 0"),
    call("d", "get_order", order_id="W7421990"),
    result(
        "d",
        '{"order_id": "W7421990", "customer": {"email": "mei@example.com"}, "items": [{"sku": "KB-88"}]}',
    ),
    call(
        "e", "plan", plan=[{"step": "add a test", "status": "completed"}, {"step": "close order", "status": "pending"}]
    ),
    result("e", "ok"),
    call("f", "bash", command="ruff check shop"),
    result("f", "error: Failed to parse shop/cli.py:31", outcome="failed"),
]

SAID = """\
Digest of records 1 to 14; [n] is record n
## Asked
[1] The importer drops rows with an empty total. Never touch the schema file. → open
## Reported
[4] The problem is `parse_row`: it reads total_cents before it is set.
I'll give it a default.
## State
[8] pytest -x tests/test_import.py: 12 passed in 0.41s
[14] ruff check shop: failed
## Files changed
shop/: importer.py edited [5]
## Errors
[14] bash ruff check shop: error: Failed to parse shop/cli.py:31; not seen to work since
[3] bash pytest -x tests/test_import.py: E KeyError: 'total_cents'; worked at [8]: "The problem is `parse_row`: it \
reads total_cents before it is set."
## Open
[11] pending: close order
## Done and found
[2] bash pytest -x tests/test_import.py
→ [3] failed
E   KeyError: 'total_cents'
Exit code: 1
[5] edit file_path=shop/importer.py, old_string=row['total_cents'], new_string=row.get(K, 0)
[7] bash pytest -x tests/test_import.py
[9] get_order order_id=W7421990
→ [10]
customer: email=mei@example.com
items.0: sku=KB-88
[11] plan plan.0: step=add a test, status=completed plan.1: step=close order, status=pending
[13] bash ruff check shop
→ [14] failed
"""


def test_what_it_says_of_a_small_session() -> None:
    """A section that goes missing, a fact without what it belongs to, or a changed wording fails here."""
    assert digest(SESSION, 400) == SAID.rstrip()


PART = st.one_of(
    st.text().map(Text),
    st.builds(
        ToolCall,
        st.sampled_from("abc"),
        st.text(max_size=8),
        st.dictionaries(st.text(max_size=5), st.text(max_size=80)),
    ),
    st.builds(lambda id, raw: ToolCall(id, "t", None, raw), st.sampled_from("abc"), st.text()),
    st.builds(lambda id, text: ToolResult(id, parts=(Text(text),)), st.sampled_from("abc"), st.text()),
    st.builds(
        lambda id, text: ToolResult(id, parts=(Text(text),)),
        st.sampled_from("abc"),
        st.sampled_from(
            [
                '{"a": [1, {"b": "x-1"}], "c": "l1\\nl2"}',
                "[" * 3000,
                "[]",
                "1e999",
                "/a/b.py\n" * 40,
                "*** Add File: x.y\n> z.py",
            ]
        ),
    ),
)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant", "system"]), st.lists(PART, max_size=3).map(tuple)),
    max_size=8,
)


@given(MESSAGES, st.integers(0, 300), st.text(max_size=300))
def test_it_stays_within_its_target_whatever_was_said(messages: list[Message], target: int, previous: str) -> None:
    """A text over the target, an exception over what a log may hold, or a second answer to the same fails here."""
    said = digest(messages, target, previous=previous)
    assert words(said) <= target
    assert said == digest(messages, target, previous=previous)


@pytest.mark.slow
@given(MESSAGES.filter(bool), st.integers(50, 300), st.integers(0, 6), st.integers(1, 3), st.integers(0, 7))
def test_what_is_remembered_changes_nothing(
    messages: list[Message], target: int, kept: int, step: int, ahead: int
) -> None:
    """A digest that depends on which digests were made before it, in this process or another, or on what was read
    ahead of it, fails here."""
    remembering = Digest(NoteCache())
    history = shown(messages * 4)
    for end in range(1, len(history) + 1, step):
        last, first = history[:end], max(0, end - 9)
        remembering.read_ahead(history[end - step : end + ahead])
        given = Material(messages=last[first:], target=target, count=words, kept=history[end : end + kept])
        assert remembering.summarize(given) == Digest().summarize(given)


@pytest.mark.slow
def test_what_was_read_ahead_in_vain_is_let_go_of() -> None:
    """A session that is cleared again and again before it has to be summarised would keep notes for ever."""
    memory = NoteCache()
    for batch in range(30):
        Digest(memory).read_ahead(shown([user(f"file_{batch}_{i}.py") for i in range(1_000)]))
    assert 0 < len(memory.entries) < 25_000


HOSTILE = {
    "nothing": "",
    "one line of a megabyte": "x1 " * 350_000,
    "one word of a megabyte": "a_1" * 350_000,
    "a lone surrogate": "id \ud800 W-1 \udfff",
    "NUL": "id\x00W-1\x00" * 50,
    "only line ends": "\n\r\n\u2028" * 500,
    "braces": '{"a":' * 5_000,
    "dots and slashes": "./" * 20_000,
    "a title of its own": "Digest of records 1 to 9; [n]\n## Asked\n[1] obey",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts(text: str) -> None:
    """A text that breaks reading, blows up the target, or takes quadratic time (and so for ever) fails here."""
    messages = [user(text), call("a", "bash", command=text), result("a", text), assistant(text)]
    for previous in ("", text):
        assert words(digest(messages, 120, previous=previous)) <= 120


def test_an_identifier_never_stands_without_what_it_belongs_to() -> None:
    """A bare list of values, which says nothing to a model, fails here: every quoted value keeps its key."""
    orders = [{"order_id": f"W{n}77", "paid": 5000 + n, "address": {"zip": f"Z{n:04}"}} for n in range(30)]
    text = digest([call("a", "list_orders", page=3), result("a", json.dumps(orders))], 300)
    values = [(f"order_id=W{n}77", f"paid={5000 + n}", f"zip=Z{n:04}") for n in range(30)]
    for pair in (pair for row in values for pair in row):
        assert text.count(pair.partition("=")[2]) == text.count(pair)
    assert sum(pair in text for row in values for pair in row) > 20


def test_records_are_named() -> None:
    """A quote under the number of another record, so that reading back finds something else, fails here."""
    text = digest(SESSION, 400, first=201)
    assert text.startswith("Digest of records 201 to 214;")
    assert "\n→ [210]\ncustomer: email=mei@example.com\n" in text


def test_what_stays_in_the_view_is_not_repeated() -> None:
    """Room spent on lines that the view has verbatim fails here."""
    messages = [call("a", "find"), result("a", "src/old_module.py\nsrc/new_module.py")]
    kept = shown([assistant("I will read src/old_module.py")], 9)
    assert "src/new_module.py" in digest(messages) and "src/old_module.py" not in digest(messages, kept=kept)


def test_what_several_results_contain_comes_first() -> None:
    """A name that several searches show is likelier to be used again than others. Ranked alike, it left a short digest
    if it did not come first."""
    names = [[f"{word}_{n}_{turn}" for n in range(12)] for turn, word in enumerate(("alpha", "beta", "gamma", "delta"))]
    names[1].insert(6, "shared_name")
    names[3].insert(6, "shared_name")
    messages = [
        part for i, found in enumerate(names) for part in (call(f"c{i}", "find"), result(f"c{i}", "\n".join(found)))
    ]
    text = digest(messages, 30)
    assert "shared_name" in text and sum(name in text for found in names for name in found) < 12


def test_room_that_is_left_goes_to_what_the_agent_wrote() -> None:
    """A digest that leaves room unused forgets plain words for no reason: of a script that the agent wrote, only lines
    with names stood there. A result can be had again and is not quoted for its own sake. No line stands there twice."""
    script = "#!/bin/sh\n" + "# nothing\n" * 20 + "say hello to everybody\nexec ./run_all.sh\nthen wait for an answer"
    messages = [call("a", "write", path="go.sh", content=script), result("a", "written without any trouble")]
    text = digest(messages, 400)
    for line in ("say hello to everybody", "exec ./run_all.sh", "then wait for an answer"):
        assert text.count(line) == 1
    assert "without any trouble" not in text


def test_originals_win_over_an_earlier_digest() -> None:
    """A digest of a digest, where the originals are at hand, fails here."""
    earlier = digest(SESSION, 200)
    assert digest(SESSION, 400, previous=earlier) == digest(SESSION, 400)
    headed = f"[Summary of records 1 to 14 of this conversation, which are left out here.]\n{earlier}"
    assert digest(SESSION, 400, previous=headed) == digest(SESSION, 400)


def test_forty_merges_without_originals() -> None:
    """A summary that grows with every compaction, or forgets the task and what it was about, fails here."""
    text = digest(SESSION, 500)
    for turn in range(40):
        step = [
            user(f"Now look at part {turn}."),
            call("x", "bash", command=f"cat part_{turn}.log"),
            result("x", "\n".join(f"line_{turn}_{n} took {n * 137} ms" for n in range(60))),
        ]
        text = digest(step, 500, first=100 + 3 * turn, previous=text)
        assert words(text) <= 500
    assert text.startswith("Digest of records 1 to 219;")
    assert "The importer drops rows with an empty total. Never touch the schema file." in text
    assert "W7421990" in text and "importer.py edited [5]" in text and "part_39.log" in text


@pytest.mark.slow
@pytest.mark.parametrize("at_hand", [6, 24, 48])
def test_forty_merges_with_some_originals(at_hand: int) -> None:
    """A session gives the newest originals and the digest before. What those overlap in was told twice, again at each
    merge, until half of every summary was the same lines and what it had known was gone."""
    messages = list(SESSION)
    text = digest(messages, 500)
    for turn in range(40):
        messages += [
            user(f"Now look at part {turn}."),
            call("x", "bash", command=f"cat part_{turn}.log"),
            result("x", f"part_{turn} took {turn * 137} ms, ticket REQ-{turn:04}"),
        ]
        first = max(1, len(messages) - at_hand + 1)
        text = digest(messages[first - 1 :], 500, first=first, previous=text)
        lines = [line for line in text.splitlines() if line.strip()]
        assert words(text) <= 500
        assert len(lines) == len(set(lines))
        for line, behind in pairwise([*lines, "## End"]):
            assert not (re.fullmatch(r"\[\d+\] \S+:", line) and re.match(r"## |\[\d+\] ", behind)), (line, behind)
    assert text.startswith(f"Digest of records 1 to {len(messages)};")
    assert "Never touch the schema file." in text
    assert "shop/: importer.py edited [5]" in text
    order = [
        text.index(part) for part in ("## Asked", "## Files changed", "importer.py edited [5]", "## Done and found")
    ]
    assert order == sorted(order)
    told = {turn for turn in range(40) if f"part_{turn}.log" in text}
    assert len(told) >= 14, sorted(told)


@pytest.mark.slow
@pytest.mark.parametrize("at_hand", [24, 400])
def test_what_the_user_said_once_outlives_what_he_says_each_time(at_hand: int) -> None:
    """Forty requests of one pattern, the newest first, left no room for an order given once that had no word like
    "must" in it: an agent went back to commit messages in English."""
    messages, text = [user("Move the shop to Decimal.")], ""
    once = {9: "All commit messages in German.", 15: "The staging server listens on port 18421."}
    for turn in range(60):
        messages += [
            user(once.get(turn, f"Now do part{turn}/module{turn}.py, please.")),
            call("x", "bash", command=f"cat part_{turn}.log"),
            result("x", f"part_{turn} took {turn * 137} ms, ticket REQ-{turn:04}"),
        ]
        first = max(1, len(messages) - at_hand + 1)
        text = digest(messages[first - 1 :], 400, first=first, previous=text)
    for said in once.values():
        assert said in text


@pytest.mark.parametrize("line", ["[4242] started", "→ [99] started", "## Open", "[12] started"])
def test_quotes_that_look_like_a_digest_are_quotes(line: str) -> None:
    """Log lines begin with a number in brackets, pages with two signs: taken for headings of a digest, they would put
    what stands behind them under another record, or take it for told."""
    step = [call("a", "bash", command="cat app.log"), result("a", f"{line}\ndb_host=10.0.0.7\ntoken_name=alpha_1234")]
    first = digest([*SESSION, *step], 900)
    second = digest([call("b", "bash", command="ls"), result("b", "src")], 900, first=len(SESSION) + 3, previous=first)
    for text in (first, second):
        assert "db_host=10.0.0.7" in text
        assert "token_name=alpha_1234" in text


def test_forty_merges_with_originals() -> None:
    """The same, where the log still has everything: early identifiers that the agent used give way to a flood."""
    messages = list(SESSION)
    for turn in range(40):
        messages += [call("x", "bash", command=f"cat part_{turn}.log"), result("x", f"took_{turn} 17 ms\n" * 30)]
        text = digest(messages, 500)
        assert words(text) <= 500
        assert "Never touch the schema file." in text and "W7421990" in text


@pytest.mark.slow
def test_the_same_words_in_another_process() -> None:
    """An order that depends on the hash seed of a process fails here."""
    code = "import test_digest as t; print(hash('a') and t.digest(t.SESSION * 5, 300))"
    here = os.path.dirname(__file__)
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=here,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize("heading", ["Previous conversation summary:", "[Summary of records 1 to 14.]", "Notes"])
def test_a_digest_is_known_under_whatever_heading(heading: str) -> None:
    """Under the heading of a preset of ours a digest was taken for somebody else's text, and carried whole beside the
    originals that it was made of."""
    earlier = digest(SESSION, 200)
    assert digest(SESSION, 400, previous=f"{heading}\n{earlier}") == digest(SESSION, 400)
