"""A session as an HTML page: what it shows is what the log holds, and it can do nothing."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from pages import Page, strange
from turnlog._platform.visible import visible
from turnlog.display.frame import Ways
from turnlog.display.page import as_html, whole_page
from turnlog.export.markdown import as_markdown, as_markdown_records
from turnlog.log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import Decision, FileChange, MessageRecord, Note, PartialAnswer, Record, UsageRecord
from turnlog.log.store import Draft, Problem, Store
from turnlog.log.usage import Usage
from turnlog.stores import MemoryStore, PastDamage
from turnlog.stores.wrapper import StoreWrapper
from turnlog.testing.histories import PIXEL, History
from turnlog.testing.hostile import HOSTILE, hostile_session, hostile_text
from turnlog.testing.strategies import damaged_histories

_WORD = re.compile(r"[a-z]{3,}|\d{2,}")
_NUMBER = re.compile(r'<li value="(\d+)">')
_MARKDOWN = (
    *(
        "alpha",
        "beta",
        "gamma",
        "42",
        " ",
        "\n",
        "\n\n",
        "# ",
        "* ",
        "17. ",
        "18) ",
        "> ",
        "**",
        "_",
        "`",
        "```",
        "~~~",
        "~~",
    ),
    *(
        "[alpha]: http://delta.org\n",
        "[alpha]",
        "![eta](zeta.png)",
        '[iota](kappa "lambda")',
        "<theta omega=12>",
        "    ",
    ),
    *("| alpha | beta |\n|---|--:|\n| gamma | 99 |\n", "---\n", "===\n", "\\", "<!-- sigma -->", "<http://tau.org>"),
)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>x()</script></svg>"


def page_of(store: Store, session_id: str) -> tuple[str, list[Problem]]:
    """A session's page, and what could not be read of it."""
    problems: list[Problem] = []
    return b"".join(as_html(store, session_id, problems)).decode("utf-8"), problems


def store_of(*bodies: object, title: str = "") -> MemoryStore:
    """A store with one session, `s`, of these records."""
    store = MemoryStore()
    store.create("s", title=title, created="2025-01-01T00:00:00.000Z")
    store.append("s", [Draft(body, f"2025-01-01T00:00:{n:02d}.000Z") for n, body in enumerate(bodies, 1)])  # type: ignore[arg-type]
    return store


def said(parts: tuple[Part, ...]) -> Iterator[str]:
    """The texts of parts that a reader of a page has to find there."""
    for part in parts:
        match part:
            case Text(text=text):
                yield text
            case Reasoning(text=text, summary=summary):
                yield "\n\n".join(filter(None, (text, *summary)))
            case ToolResult(parts=inner):
                yield from said(inner)
            case ToolCall() if part.raw is not None or not isinstance(part.arguments, dict):
                yield part.raw_arguments
            case ToolCall(arguments=arguments):
                yield from (value for value in arguments.values() if isinstance(value, str))


@pytest.mark.slow
@given(damaged_histories())
def test_a_page_shows_what_was_said(history: History) -> None:
    """A text, in any history, that is not on its page as the log has it, or stands there as markup, fails here."""
    store = MemoryStore()
    for data in history.blobs.values():
        store.put_blob(data)
    store.create("any")
    store.append("any", [Draft(MessageRecord(message)) for message in history.messages])
    text, _ = page_of(store, "any")
    page = Page(text)
    assert strange(page) == []
    shown = {words.removeprefix("\n") for words in page.texts}
    there = set(_WORD.findall(unquote(page.text) + text))
    for message in history.messages:
        for words in said(message.parts):
            laid_out = {part.text for part in message.parts if isinstance(part, (Text, Reasoning))}
            laid_out.update(*(part.summary for part in message.parts if isinstance(part, Reasoning)))
            if words in laid_out:  # as Markdown
                assert set(_WORD.findall(visible(unescape(words)))) - there == set(), words
            else:
                assert not words or visible(words) in shown


@given(st.lists(st.sampled_from(_MARKDOWN), min_size=1, max_size=30).map(" ".join))
def test_no_word_of_markdown_is_lost(text: str) -> None:
    """What Markdown hides (addresses, names of languages, numbers of lists, HTML, references) is missing on the page of
    who looks for it."""
    html, _ = page_of(store_of(MessageRecord(Message("assistant", (Text(text),)))), "s")
    page = Page(html)
    assert strange(page) == []
    assert set(_WORD.findall(text)) - set(_WORD.findall(page.text)) - set(_NUMBER.findall(html)) == set()


def test_markdown_is_laid_out() -> None:
    """A reader sees asterisks and fences instead of what was meant, or code without its lines."""
    words = (
        "# Why\n\nIt is *late*:\nsee `a<b`, [here](https://e.org/x).\n\n3. one\n4. two\n\n"
        "```python\nif x:\n    y()\n```"
    )
    html, _ = page_of(store_of(MessageRecord(Message("assistant", (Text(words),)))), "s")
    assert (
        "<h3>Why</h3><p>It is <em>late</em>:<br>see <code>a&lt;b</code>, "
        'here<span class="small"> (https://e.org/x)</span>.'
        '</p><ol><li value="3">one</li><li value="4">two</li></ol><span class="lang">python</span>'
    ) in html
    assert re.sub("</?span[^>]*>", "", html.partition("<code>a")[2].partition("<code>")[2]).startswith("if x:\n    y()")


@given(st.text(st.characters(codec=None)) | st.sampled_from(HOSTILE))
def test_no_text_becomes_markup(text: str) -> None:
    """A text that gets out of its place, wherever a record holds one, fails here."""
    parts = (Text(text), ToolCall(text, text, {text: text}), ToolCall(text, text, raw=text), Opaque(text, text, text))
    bodies = [
        MessageRecord(Message("assistant", (*parts, Reasoning(text, text))), model=text),
        MessageRecord(
            Message("user", (ToolResult(text, text, (Text(text),)), Media("image", text, url=text, name=text)))
        ),
        PartialAnswer(Message("assistant", ()), text, (ToolCall(text, text, raw=text),)),
        Decision("compact", 1, 1, text, {"replacement": [{"role": "user", "parts": [{"type": "text", "text": text}]}]}),
        Note(text, text, {text: text}),
        FileChange("a/" + text, "created"),
    ]
    html, problems = page_of(store_of(*bodies, title=text), "s")
    assert strange(Page(html)) == []
    assert problems == []


def test_a_hostile_session_makes_a_tame_page() -> None:
    """Every kind of record, hostile wherever it holds text: a tag, an address or a control character of it on the page
    fails here."""
    store = MemoryStore()
    hostile_session(store, "every", 100_000)
    html, problems = page_of(store, "every")
    page = Page(html)
    assert strange(page) == []
    assert problems == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\ufeff]", html)
    assert [word for word in ("http://127.0.0.1:9/x.png", "javascript:") if word not in "".join(page.texts)] == []


def test_the_policy_allows_the_style_and_nothing_else() -> None:
    """A browser that holds to the policy would show the page without its style if the hash were wrong."""
    html, _ = page_of(store_of(MessageRecord(Message("user", (Text("x"),)))), "s")
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert Page(html).policy == policy
    assert "url(" not in style.group(1) and "@import" not in style.group(1)


def test_pictures_stand_in_place() -> None:
    """A picture is shown once, later ones lead to it; by what its bytes are, not by what it says; an SVG never."""
    store = store_of()
    png, svg = store.put_blob(PIXEL), store.put_blob(SVG)
    lie = Media("image", mime="image/svg+xml", sha256=png, size=len(PIXEL))
    vector = Media("image", mime="image/png", sha256=svg, size=len(SVG))
    away = Media("image", url="https://example.com/a.png")
    store.append("s", [Draft(MessageRecord(Message("user", (lie, vector, away, lie))))])
    html, problems = page_of(store, "s")
    page = Page(html)
    assert (strange(page), problems) == ([], [])
    sources = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert sources == ["data:image/png;base64," + base64.b64encode(PIXEL).decode()]
    assert 'the one of record <a href="#r1">' in html
    assert f"{len(SVG)} bytes, SHA-256 {svg}" in html
    assert "<code>https://example.com/a.png</code>" in html


def test_media_that_are_gone_are_said() -> None:
    """Bytes that cannot be read are a problem of the export and named on the page; the rest is there."""
    gone = Media("image", mime="image/png", sha256="0" * 64, size=5)
    html, problems = page_of(store_of(MessageRecord(Message("user", (gone, Text("still here"))))), "s")
    assert [(problem.session, problem.record) for problem in problems] == [("s", 1)]
    assert "0" * 64 in html and "still here" in html


def a_story() -> turnlog.Session:
    """Three turns with a tool, a file and a bill each, of which a decision left out what it could."""
    session = turnlog.open("story", store=MemoryStore(), target=turnlog.target("anthropic", "claude-sonnet-4-5"))
    for n in (1, 2, 3):
        with session.turn(f"Do part {n}.") as turn:
            call = ToolCall(f"c{n}", "edit", {"path": "a.py"})
            session.add(Message("assistant", (call,)))
            session.tool_started(call)
            session.tool_finished(call, "failed", seconds=2.5)
            session.tool_result(call, "it went wrong\n" * 300, outcome="failed")
            content = [{"type": "text", "text": f"Part {n} done."}]
            usage = {"input_tokens": 1000, "output_tokens": 10}
            body = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
            turn.receive({**body, "content": content, "stop_reason": "end_turn", "usage": usage})
            session.files("/src").record("a.py", b"one\n" * n, b"one\n" * n + b"<two>\n")
    session.compact(keep=1)
    return session


def test_turns_decisions_and_files_are_told() -> None:
    """What a reader wants of a session beside its texts: a figure, mark or link that goes missing fails here."""
    with a_story() as session:
        html, _ = page_of(session._store, "story")
        decision = next(record for record in session.history() if isinstance(record.body, Decision))
        covered, by = decision.body, decision.n
        turns = session.log.turns()
    page = Page(html)
    assert strange(page) == []
    ids = {attributes.get("id") for _, attributes in page.elements}
    links = {attributes["href"] for tag, attributes in page.elements if tag == "a"}
    assert {link for link in links if (link or "")[1:] not in ids} == set()
    assert {"turn-1", "turn-3", *(f"r{n}" for n in range(1, turns[-1].last + 1))} <= ids
    assert isinstance(covered, Decision)
    first, last = (f'<a href="#r{n}">{n}</a>' for n in (covered.first, covered.last))
    assert f", records {first} to {last}</p>" in html
    assert html.count("1,000 tokens in (0 cached), 10 out, $0.0032</footer>") == 3
    assert html.count('<span class="badge bad">failed</span><span class="small"> after 2.5 s</span>') == 3
    assert html.count('class="badge ok">completed<') == 3
    assert '<span class="add">+&lt;two&gt;</span>' in html
    left_out = 'class="badge warn" title="no longer sent: a decision left it out">left out by'
    assert f'{left_out} <a href="#r{by}">{by}</a></span>' in html and f"{left_out} {by}</span><span class=" in html
    assert "Replacement (user)" in html


def test_what_no_tool_made_is_marked() -> None:
    """A result that nobody's tool produced, and a call nobody knows the end of, must not pass for real ones."""
    calls = Message("assistant", (ToolCall("c1", "run"), ToolCall("c2", "run")))
    result = ToolResult("c1", "run", (Text("It may have run."),), "aborted", synthetic=True)
    html, _ = page_of(store_of(MessageRecord(calls), MessageRecord(Message("user", (result,)))), "s")
    assert html.count("synthetic: not from a tool") == 1
    assert html.count("not on record whether it started") == 1
    assert '<span class="badge bad">aborted</span>' in html


def test_a_call_that_failed_is_not_called_ok() -> None:
    """A list leads to a failed call, and the page says "ok" there, as the agent recorded it."""
    calls = tuple(ToolCall(each, "bash", {"command": command}) for each, command in (("a", "make"), ("b", "grep x a")))
    made = ToolResult("a", "bash", (Text("make: *** no rule\nExit code: 2"),))
    results = (made, ToolResult("b", "bash", (Text("Exit code: 1"),)))
    messages = Message("assistant", calls), Message("user", results)
    store = store_of(*map(MessageRecord, messages))
    page, _ = page_of(store, "s")
    assert page.count('badge bad">exit 2</span>') == 1
    assert page.count('badge bad">') == 1


def test_a_page_is_written_as_it_is_read() -> None:
    """What is long is neither held twice nor all at once: the pieces of a page are no longer than its texts are."""
    words = "x" * 100_000
    store = store_of(*(MessageRecord(Message("user", (Text(words),))) for _ in range(5)))
    assert max(map(len, as_html(store, "s", []))) < 110_000


def test_damage_is_shown_in_its_place() -> None:
    """Records that cannot be read are missing in silence, or keep the others from being shown."""
    store = store_of(*(MessageRecord(Message("user", (Text(f"word{n}"),))) for n in range(6)))

    class Damaged(StoreWrapper):
        def readable(self, session_id: str, **span: Any) -> Iterator[Record | Problem]:
            for record in self.store.readable(session_id, **span):
                assert isinstance(record, Record)
                yield Problem(session_id, record.n, "damaged") if record.n in (2, 3, 6) else record

    html = "".join(whole_page(PastDamage(Damaged(store), lambda problem: None), "s", Ways(), []))
    told = re.findall(r"records? (\d[\d to]*) (?:is|are) damaged", html)
    assert (told, re.findall(r"word\d", html.split("<main")[1])) == (["2 to 3", "6"], ["word0", "word3", "word4"])


def browser() -> str:
    """A browser to ask; skips where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium or Chrome on the PATH: what a real browser makes of a page is not looked at")


@pytest.fixture
def dom(tmp_path: Path) -> Callable[[str], str]:
    """`dom(html)` is a page as a real browser understood it, after its scripts, if any ran."""
    program = browser()

    def opened(html: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(html, "utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
        command = [program, *options, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
        environment = {**os.environ, "HOME": str(tmp_path)}
        run = subprocess.run(command, capture_output=True, timeout=120, env=environment)
        assert b"</html>" in run.stdout, run.stderr[-1000:]
        return run.stdout.decode("utf-8")

    return opened


@pytest.mark.slow
def test_nothing_runs_in_a_browser(dom: Callable[[str], str]) -> None:
    """A real browser finds the same elements and texts as were written, and runs nothing; the same texts, were they not
    escaped, do run there."""
    store = MemoryStore()
    hostile_session(store, "every", 50_000)
    html, _ = page_of(store, "every")
    seen, written = Page(re.sub(r"\s+$", "", dom(html))), Page(html)
    assert "data-ran" not in seen.elements[0].attributes
    assert [element.tag for element in seen.elements] == [element.tag for element in written.elements]
    assert [words.removeprefix("\n") for words in seen.texts] == [words.removeprefix("\n") for words in written.texts]
    careless = f"<!DOCTYPE html><html><body>{hostile_text(5_000).encode('utf-8', 'replace').decode()}</body></html>"
    assert 'data-ran="1"' in dom(careless)


def test_usage_that_has_no_price_does_not_stop_a_page() -> None:
    """A model that nobody knows the price of must not cost the reader the page."""
    html, _ = page_of(store_of(UsageRecord("p", "nobody's", Usage(input=5)), MessageRecord(Message("user", ()))), "s")
    assert "5 tokens in (0 cached), 0 out, price unknown (no full price for nobody&#x27;s)" in html


def test_what_was_taken_back_is_marked() -> None:
    """A reader would take for said what a rewind took back: its records name the decision, and so does Markdown."""
    said = (("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four"))
    messages = [MessageRecord(Message(role, (Text(word),))) for role, word in said]
    store = store_of(*messages, Decision("rewind", 3, 4, "taken back"), MessageRecord(Message("user", (Text("five"),))))
    page, _ = page_of(store, "s")
    marked = {n for n in range(1, 7) if "no longer part of" in page.split(f'id="r{n}"')[1].split('<div id="r')[0]}
    assert marked == {3, 4}
    for write, said in ((as_markdown_records, str.capitalize), (as_markdown, str)):
        markdown = b"".join(write(store, "s", [])).decode()
        first, back, rest = markdown.partition(f"*{said('from here on taken back by decision 5')}")
        inside, end, _ = rest.partition(f"*{said('up to here')}")
        assert back and end and ("two" in first, "three" in inside, "four" in inside) == (True, True, True)
