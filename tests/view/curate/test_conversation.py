"""Outputs curated on their way into a view: once, the same in every later view, and pointing only to what is shown."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.errors import InputError
from turnlog.log.budget import PRESETS, Strategy
from turnlog.log.messages import Message, Text, Tool, ToolCall, ToolResult
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.view.curate.conversation import Curator, Rule
from turnlog.view.fold import select
from turnlog.view.types import Shown

SEARCH = "\n".join(f"src/module_{n // 40}.py:{n}:    value = compute({n}, other_argument)" for n in range(800))


def session_in(store: MemoryStore, budget: int | None = 100_000) -> Session:
    """A session with a target, a budget of which `SEARCH` takes more than a tenth, and the user's task."""
    made = turnlog.open("s", store=store, target=turnlog.target("anthropic", "claude-sonnet-4-5"), budget=budget)
    if not made.view():
        made.user("Find the error.")
    return made


def source(changed: int = 0, lines: int = 60, first: int = 1) -> str:
    """Numbered lines of a file, one of them changed."""
    return "\n".join(f"{n:6}→line {n} of the file{' now' * (n == changed)}" for n in range(first, first + lines))


def call(session: Session, name: str, text: str, **arguments: Any) -> int:
    """Have a tool called and answered: the record of the result."""
    made = ToolCall(f"call_{len(session.history())}", name, arguments)
    session.add(Message("assistant", (made,)))
    return session.tool_result(made, text).n


def shown(session: Session, n: int) -> str:
    """The text of a result as the next request has it; "" if it has none."""
    texts = [
        inner.text
        for one in session.view()
        if n in one.records
        for part in one.message.parts
        if isinstance(part, ToolResult)
        for inner in part.parts
        if isinstance(inner, Text)
    ]
    return "\n".join(texts)


@pytest.mark.parametrize("budget", [None, 200_000, turnlog.Budget(answer=10)])
def test_an_output_that_is_no_giant_stays_whole_until_room_is_needed(budget: Any) -> None:
    """An agent lost names that it needed from the only output of an empty window."""
    session = session_in(MemoryStore(), budget)
    ask = "\n".join(f"{n} {'abcdefgh'[n % 8] * 5} {n * 7}" for n in range(900))
    for name, text in (("grep", SEARCH), ("bash", ask), ("list_orders", SEARCH), ("query", f"[{'1, ' * 9_000}1]")):
        assert shown(session, call(session, name, text, command="docker ps")) == text
    if not isinstance(budget, int):
        assert shown(session, call(session, "grep", SEARCH * 2)) == SEARCH * 2


def test_an_output_loses_what_says_nothing_when_it_comes() -> None:
    """Escapes, progress and equal lines cost tokens in every request; what they say is kept."""
    session = session_in(MemoryStore(), None)
    bars = "\r".join(f"\x1b[32mdownloading {n}% {'=' * (n // 4):25}\x1b[0m" for n in range(101))
    n = call(session, "bash", "\n".join(["start", bars, *["waiting"] * 90, "exit code 3"]), command="make")
    assert shown(session, n).split("\n") == [
        "start",
        f"downloading 100% {'=' * 25}",
        "waiting",
        f"[... 89 equal lines left out, kept as record {n} ...]",
        "exit code 3",
    ]
    assert shown(session, call(session, "bash", "\x1b[0m" * 900, command="make")) == "[no text]"


def test_what_was_tidied_when_it_came_is_shortened_when_room_is_needed() -> None:
    """An output that had escapes would stay long for ever."""
    session = session_in(MemoryStore(), None)
    text = "\n".join(f"\x1b[31;1m{n}\x1b[0m {'abcdefgh'[n % 8] * 4}" for n in range(3_000))
    n = call(session, "bash", text, command="docker ps")
    assert "left out" not in shown(session, n) and "\x1b" not in shown(session, n)
    for word in ("one", "two", "three"):
        session.assistant(word)
        session.user(word)
    session.compact(strategy=Strategy(steps=("curate",)))
    assert f" lines left out, kept as record {n} ...]" in shown(session, n)


def test_a_giant_is_shortened_when_it_comes_and_kept_whole() -> None:
    """The view is short, the log is not, and the mark says where the rest is."""
    session = session_in(MemoryStore())
    n = call(session, "grep", SEARCH)
    assert len(shown(session, n)) < len(SEARCH) / 3
    assert f"left out, kept as record {n} ...]" in shown(session, n)
    assert session.read_back(n) == SEARCH
    account = session.explain().accounts[n]
    assert (account.fate, account.curator, account.by) == ("curated", "search", ()) and account.saved > 1_000
    assert dict(session.window.breakdown().curated) == {"search": account.saved}


def test_a_request_begins_with_the_one_before_it() -> None:
    """What was curated once is the same in every later request, also in another process."""
    store = MemoryStore()
    session = session_in(store)
    before: list[Any] = []
    for text in (SEARCH, source(), source(), source(7), SEARCH, source(7)):
        call(session, "read_file" if "→" in text else "grep", text, path="a.py")
        messages = [one.message for one in session.request().view]
        assert messages[: len(before)] == before
        again = turnlog.open(session.id, store=store, read_only=True)
        assert [one.message for one in again.request().view] == messages
        assert [one.message for one in select(session.history())[0]] == messages
        before = messages


def test_a_read_that_repeats_another_points_to_it() -> None:
    """Half of all reads in real sessions are of files that were read before."""
    session = session_in(MemoryStore())
    first, again = (call(session, "Read", source(), file_path="/src/a.py") for _ in range(2))
    other = call(session, "Read", source(), file_path="/src/b.py")
    assert shown(session, first) == shown(session, other) == source()
    assert shown(session, again) == f"[... lines 1-60 of /src/a.py unchanged since record {first} ...]"


def test_reads_that_share_an_id_are_told_apart() -> None:
    """Both results were taken for that of the second call, so the first file was shown as read again."""
    outputs = []
    for ids in ("xx", "xy"):
        session = session_in(MemoryStore())
        calls = [ToolCall(one, "read_file", {"path": path}) for one, path in zip(ids, ("a.py", "b.py"), strict=True)]
        call(session, "read_file", source(), path="b.py")
        session.add(Message("assistant", tuple(calls)))
        outputs.append([shown(session, session.tool_result(one, source(5)).n) for one in calls])
    assert outputs[0] == outputs[1]
    assert outputs[0][0] != outputs[0][1]


def test_what_changed_is_shown_between_marks_on_lines_of_their_own() -> None:
    """A changed line that is hidden, or a mark within a line, leads to a wrong edit."""
    session = session_in(MemoryStore())
    first = call(session, "Read", source(), file_path="a.py")
    again = call(session, "Read", source(changed=30), file_path="a.py")
    assert shown(session, again).split("\n") == [
        f"[... lines 1-29 of a.py unchanged since record {first} ...]",
        "    30→line 30 of the file now",
        f"[... lines 31-60 of a.py unchanged since record {first} ...]",
    ]


def test_overlapping_ranges_are_told_apart() -> None:
    """Lines that were not read before are shown, and each mark names the record that has its lines."""
    session = session_in(MemoryStore())
    one = call(session, "Read", source(lines=40), file_path="a.py")
    two = call(session, "Read", source(lines=40, first=41), file_path="a.py", offset=41)
    both = call(session, "Read", source(lines=90), file_path="a.py")
    assert shown(session, both).split("\n") == [
        f"[... lines 1-40 of a.py unchanged since record {one} ...]",
        f"[... lines 41-80 of a.py unchanged since record {two} ...]",
        *source(lines=10, first=81).split("\n"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Write", {"file_path": "a.py", "content": "all new"}),
        ("bash", {"command": "sed -i 's/x/y/' a.py"}),
        (
            "Edit",
            {
                "file_path": "a.py",
                "old_string": "\n".join(f"line {n} of the file" for n in range(61)),
                "new_string": "",
            },
        ),
    ],
)
def test_an_edit_in_between_ends_it(name: str, arguments: dict[str, Any]) -> None:
    """What the agent changed it wants to see, even if it is as it was."""
    session = session_in(MemoryStore())
    call(session, "Read", source(), file_path="a.py")
    call(session, name, "done", **arguments)
    assert shown(session, call(session, "Read", source(), file_path="a.py")) == source()


def test_an_edit_ends_it_for_the_lines_that_it_replaced() -> None:
    """The rest of the file is as it was, and known to be."""
    session = session_in(MemoryStore())
    first = call(session, "Read", source(), file_path="a.py")
    call(session, "Edit", "done", file_path="a.py", old_string="line 30 of the file", new_string="x")
    again = shown(session, call(session, "Read", source(), file_path="a.py")).split("\n")
    assert again[0] == f"[... lines 1-29 of a.py unchanged since record {first} ...]" and len(again) == 3


def test_a_read_points_only_to_what_the_view_shows() -> None:
    """If the first read leaves the view, the next one is shown in full, and a third one points to that."""
    session = session_in(MemoryStore())
    call(session, "Read", source(), file_path="a.py")
    session.assistant("Read.")
    session.user("Once more.")
    second, third = (call(session, "Read", source(), file_path="a.py") for _ in range(2))
    session.assistant("Done.")
    session.compact(keep=1)
    assert shown(session, second) == source()
    assert shown(session, third) == f"[... lines 1-60 of a.py unchanged since record {second} ...]"


def test_a_pinned_output_is_shown_whole() -> None:
    """Who pins a message wants it as it is."""
    session = session_in(MemoryStore())
    n = call(session, "grep", SEARCH)
    session.pin(n)
    assert shown(session, n) == SEARCH
    session.unpin(n)
    assert len(shown(session, n)) < len(SEARCH)


def test_repeated_reads_do_not_make_a_request_fail() -> None:
    """Of a file that was read three times, the last read must stay: if it does not fit in full, it is cut."""
    session = session_in(MemoryStore())
    for _ in range(3):
        call(session, "Read", source(lines=200), file_path="a.py")
    session.configure(budget=2_500)
    assert "left out" in str(session.request().body) and session.window.tokens <= 2_500


def test_another_strategy_changes_nothing_that_was_sent() -> None:
    """An output is curated by the strategy in force when it was recorded."""
    session = session_in(MemoryStore())
    curated = call(session, "grep", SEARCH)
    before = shown(session, curated)
    session.configure(strategy="mask")
    whole = call(session, "grep", SEARCH)
    session.configure(strategy=Strategy(steps=("curate",)))
    last = call(session, "grep", SEARCH)
    assert shown(session, curated) == before and shown(session, whole) == SEARCH
    assert shown(session, last) == before.replace(f"record {curated} ", f"record {last} ")


def test_a_tool_says_what_its_output_is() -> None:
    """It is on record, decides before the table does, and no provider sees it."""
    session = session_in(MemoryStore())
    schema = {"type": "object", "properties": {}}
    session.configure(tools=[Tool("ask", "", schema, output="search"), {"name": "grep", "output": "text"}])
    one, other = call(session, "ask", SEARCH), call(session, "grep", SEARCH)
    assert len(shown(session, one)) < len(SEARCH) and shown(session, other) == SEARCH
    assert "output" not in str(session.request().body["tools"])
    with pytest.raises(InputError, match=r"tool 'ask': output='serach': give one of build"):
        session.configure(tools=[Tool("ask", output="serach")])


def test_a_body_without_a_session_has_marks_without_records() -> None:
    """There is no record to read back."""
    messages = [{"role": "user", "content": "Find it."}]
    for n, (name, arguments, text) in enumerate(
        [("grep", "{}", SEARCH), ("read", '{"path": "a.py"}', source()), ("read", '{"path": "a.py"}', source())]
    ):
        function = {"name": name, "arguments": arguments}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}]}
        )  # type: ignore[dict-item]
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    for word in ("Found.", "Yes.", "Done."):
        messages += [{"role": "assistant", "content": word}, {"role": "user", "content": "Sure?"}]
    body = {"model": "gpt-4o", "messages": messages}
    assert turnlog.fit(body, max_tokens=100_000).body["messages"][2]["content"] == SEARCH
    made = turnlog.fit(body, max_tokens=8_000).body["messages"]
    assert "more lines of this file left out ...]" in made[2]["content"] and "record" not in made[2]["content"]
    assert made[6]["content"] == "[... lines 1-60 of a.py left out: unchanged since they were read above ...]"


def test_only_auto_curates_by_default() -> None:
    """A user of another preset has not asked for it."""
    assert [name for name, preset in PRESETS.items() if "curate" in preset.steps] == ["auto"]


def test_what_was_scrubbed_is_not_shown_from_memory() -> None:
    """Findings about outputs are kept while a session is open; a leaked secret must not come back from there."""
    seen = Curator(Rule(True, giant=1_000))
    asked = Shown(Message("assistant", (ToolCall("c", "grep", {}),)), (1,))
    seen.see(asked, asked)
    for text in (SEARCH.replace("value", "hunter2"), SEARCH.replace("value", "[redacted]")):
        result = Shown(Message("user", (ToolResult("c", parts=(Text(text),)),)), (2,))
        assert ("hunter2" in str(seen.see(result, result))) == ("hunter2" in text)
