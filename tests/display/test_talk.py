"""The talk of a session: nothing of the conversation is missing, and its Markdown stays in its place."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from turnlog.display.talk import ChangedFile, Talk, TalkItem
from turnlog.export.markdown import as_markdown
from turnlog.log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    UsageRecord,
)
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import MemoryStore
from turnlog.testing.histories import sound_history
from turnlog.testing.hostile import HOSTILE

TIME = "2025-01-01T12:00:00.000Z"


def store_of(*bodies: Body, title: str = "") -> MemoryStore:
    """A store with session `s` of these records, a second apart."""
    store = MemoryStore()
    store.create("s", title=title)
    store.append("s", [Draft(body, f"2025-01-01T12:00:{n:02}.000Z") for n, body in enumerate(bodies)])
    return store


def user(*parts: Part | str) -> MessageRecord:
    """A message of the user."""
    return MessageRecord(Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts)))


def model(*parts: Part | str) -> MessageRecord:
    """An answer."""
    return MessageRecord(
        Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts)), model="claude-x"
    )


def all_items(store: MemoryStore) -> list[TalkItem]:
    """The items of all turns, and of what stands before them."""
    talk = Talk(store, "s")
    return [item for number in range(len(talk.turns) + 1) for item in talk.items(number)]


def told(store: MemoryStore) -> list[str]:
    """The items in a few words each."""
    return [
        f"{item.kind}: {item.label} {item.text} {item.outcome}".replace("  ", " ").rstrip() for item in all_items(store)
    ]


@given(st.integers(0, 10_000))
def test_nothing_of_a_conversation_is_missing(seed: int) -> None:
    """A text, a result or a call that has no item: a reader is told less than was said. Each call has exactly one, in
    the order of the log."""
    messages = sound_history(random.Random(seed)).messages
    items = all_items(store_of(*map(MessageRecord, messages)))
    shown = "\n".join(f"{item.text}\n{item.folded}" for item in items)
    calls = []
    for message in messages:
        for part in message.parts:
            calls += [part.id] if isinstance(part, ToolCall) else []
            inside = part.parts if isinstance(part, ToolResult) else (part,)
            assert all(text.text in shown for text in inside if isinstance(text, Text))
            if isinstance(part, Reasoning):
                assert part.text in shown and all(text in shown for text in part.summary)
            assert not isinstance(part, Opaque) or part.kind in shown
            assert not isinstance(part, Media) or (part.mime or "unknown type") in shown
    assert [item.info.call.id for item in items if item.info is not None] == calls


def test_what_befell_the_talk_is_marked() -> None:
    """An answer that broke off, what a rewind took back, a compaction, another model, a call that waits: a reader would
    take what is left for the whole."""
    store = store_of(
        Configuration(provider="anthropic", model="a"),
        user("one"),
        PartialAnswer(Message("assistant", (Text("half"),)), "the connection broke", model="a"),
        user("two"),
        model("gone"),
        Decision("rewind", 4, 5, "by the user"),
        SummaryRecord("k", "made", text="what was said", summarizer="m"),
        Decision("compact", 2, 3, "too long", {"before": 900, "after": 30}),
        Configuration(provider="openai-chat", model="b"),
        Note("internal"),
        UsageRecord("p", "a", Usage()),
        user("three"),
        model(ToolCall("c1", "run", {"command": "ls -l"}), ToolCall("c2", "run", {"command": "rm x"})),
        Approval("c2", "asked", 13),
        user(ToolResult("gone", "look", (Text("orphan"),))),
        StreamCheckpoint(Message("assistant", (Text("begun"),))),
    )  # fmt: skip
    assert told(store) == [
        "user: one",
        "assistant: half",
        "mark: interrupted: the connection broke",
        "mark: failed: the connection broke",
        "mark: from here on taken back by decision 6",
        "user: two",
        "assistant: gone",
        "mark: up to here",
        "mark: decision 6: rewind, records 4 to 5: by the user",
        "mark: summary 7: made by m",
        "mark: decision 8: compact, records 2 to 3: too long 900 tokens became 30.",
        "mark: from here on with openai-chat b",
        "user: three",
        "call: run ls -l not on record whether it started",
        "call: run rm x waits for approval",
        "mark: a result without a call: look gone, ok",
        "mark: 5 characters of an answer had arrived; it is not finished",
        "mark: awaiting the result of run (c1), approval of run (c2)",
    ]


def test_a_call_has_its_result_and_what_it_changed() -> None:
    """Two calls in one message, of which the second one is answered first; one id that is used twice; a file that no
    call changed."""
    store = store_of(
        user("Go."),
        model(
            ToolCall("c1", "Edit", {"file_path": "/w/a.py", "old": "x"}),
            ToolCall("c2", "Write", {"file_path": "/w/b.py", "content": "1\n2\n"}),
        ),
        user(ToolResult("c2", "Write", (Text("second"),)), ToolResult("c1", "Edit", (Text("first"),), "failed")),
    )
    one, two = (store.put_blob(data) for data in (b"1\n", b"1\n2\n"))
    changes = [
        FileChange("b.py", "created", after=two, call_record=2, root="/w"),
        FileChange("a.py", "modified", one, two, call_record=2, root="/w"),
        FileChange("c.py", "deleted", before=two, root="/w"),
    ]
    more = [model(ToolCall("c1", "Read", {"path": "z"})), user(ToolResult("c1", "Read", (Text("third"),)))]
    store.append("s", [Draft(body, TIME) for body in [*changes, *more]])
    items = [item for item in all_items(store) if item.kind in ("call", "mark")]
    assert [(item.label, item.text, item.is_path, item.outcome, item.files, item.folded) for item in items] == [
        ("Edit", "/w/a.py", True, "failed", (ChangedFile("a.py", "+1 -0", 1, 0),), "first"),
        ("Write", "/w/b.py", True, "ok", (ChangedFile("b.py", "created +2 -0", 2, 0),), "second"),
        ("", "c.py deleted +0 -2", False, "", (), ""),
        ("Read", "z", True, "ok", (), "third"),
        ("", "no answer on record", False, "", (), ""),
    ]


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (ToolCall("", "Bash", {"command": "go test ./...", "description": "Run tests"}), "go test ./..."),
        (ToolCall("", "shell", {"command": ["bash", "-lc", "ls"]}), "ls"),
        (ToolCall("", "exec_command", {"cmd": "make"}), "make"),
        (ToolCall("", "Grep", {"pattern": "x+", "glob": "*.py"}), "x+"),
        (ToolCall("", "apply_patch", raw="*** Begin Patch\n*** Update File: a/b.py\n*** End Patch"), "a/b.py"),
        (ToolCall("", "weather", {"city": "Oslo", "days": 3}), "Oslo"),
        (ToolCall("", "add", {"a": 1}), '{"a":1}'),
        (ToolCall("", "now", {}), ""),
        (ToolCall("", "broken", raw='{"a": '), '{"a": '),
    ],
    ids=lambda value: value.name if isinstance(value, ToolCall) else "",
)
def test_what_a_call_is_about(call: ToolCall, about: str) -> None:
    """A line that says `Bash` and nothing else tells nobody what ran."""
    (item,) = (item for item in all_items(store_of(user("Go."), model(call))) if item.kind == "call")
    assert item.text == about


def test_text_of_a_program_is_no_word_of_the_user() -> None:
    """Instructions and reminders that an agent puts into the user's mouth hide what the user said."""
    store = store_of(
        MessageRecord(Message("system", (Text("Be brief."),))),
        user("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        user("Hello."),
        model("Hi."),
    )
    assert [(item.kind, item.label) for item in all_items(store)] == [
        ("program", "system"), ("program", "program"), ("user", ""), ("assistant", ""),
    ]  # fmt: skip


def test_a_page_of_a_talk(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a talk reads as Markdown; any change of the page is seen here."""
    store = store_of(
        user("Why *not*?\n\nSee [it](http://a/b)."),
        model(
            Reasoning("anthropic", "Hm."),
            "Look:\n\n# So\n```go\na < b\n```\n1. `x<y`",
            ToolCall("c", "Read", {"path": "a/b.go"}),
        ),
        ToolFinished("c", 2, "ok", 1.5),
        user(ToolResult("c", "Read", (Text("```\nfoo"),))),
        model("Done."),
        title="Why *not*?",
    )  # fmt: skip
    page = b"".join(as_markdown(store, "s", [])).decode()
    assert re.sub(r"\d\d:\d\d", "HH:MM", page) == PAGE


PAGE = """\
# Why \\*not\\*?

claude-x · 1 Jan 2025 · 1 turn

## 1 · HH:MM · 4 s

**You**

> Why *not*?
>
> See [it](http://a/b).

<details><summary>reasoning</summary>

```text
Hm.
```

</details>

**Claude**

Look:

### So
```go
a < b
```
1. <code>x&lt;y</code>

<details><summary>Read b.go - ok</summary>

```text
{"path":"a/b.go"}
```

````text
```
foo
````

</details>

Done.
"""

_PIECES = [
    *HOSTILE, "```", "````", "~~~", "`", "``", "\n", "\n\n", "    ", "> ", "- ", "1. ", "# x", "===", "---", "**You**",
    "<b>", "</details>", "<!--", "![x](http://e/p.png)", "[x](javascript:a)", "[x]: http://e", "[x]", "\\", "\\`",
    "<http://e>", "|a|b|\n|-|-|\n", "word", "``` `<i>", "<code>",
]  # fmt: skip
_OURS = re.compile(r"</?code>|</details>\n?|<details><summary>[^<>\n]*</summary>\n?")


@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=5), max_size=14).map("".join))
def test_prose_stays_in_its_place(text: str) -> None:
    """Markdown of a transcript that becomes HTML, fetches an image, closes what is folded, or looks like the words of
    somebody else. Judged by a parser of CommonMark that did not write the page."""
    call = ToolCall(text, text, {"command": text, "path": text})
    answers = model(text, Reasoning("p", text), call), user(ToolResult(text, text, (Text(text),))), model("The end.")
    page = b"".join(as_markdown(store_of(user(text), *answers, title=text), "s", [])).decode()
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inline = [child for token in tokens for child in token.children or ()]
    html = [token.content for token in [*tokens, *inline] if token.type in ("html_block", "html_inline")]
    assert [part for part in html if not _OURS.fullmatch(part)] == []
    assert [child for child in inline if child.type == "image"] == []
    hrefs = [str(child.attrs["href"]) for child in inline if child.type == "link_open"]
    assert [href for href in hrefs if not href.startswith(("http://", "https://"))] == []
    heads = [i + 1 for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag in ("h1", "h2")]
    assert len(heads) == 2 and tokens[heads[1]].content.startswith("1 · ")
    said = [token.content for token in tokens if token.type == "inline"]
    assert [text for text in said if re.match(r"\*\*(You|Claude|Assistant)", text)] == ["**You**", "**Claude**"]
    assert tokens[-2].content == "The end." and tokens[-2].level == 1


def test_bytes_of_blobs_are_named_by_hash() -> None:
    """A picture has no text: its type and size stand for it."""
    store = store_of(user("See:", Media("image", "image/png", sha256_hex(b"x"), 1)))
    assert told(store)[:2] == ["user: See:", "mark: image image/png 1 bytes"]
