"""What the page of a past request says is what the session sent then: body, size, changes, and what became of each
message."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import turnlog
from draws import draws
from pages import Page
from real_transcripts import FOLDERS, imported
from turnlog._platform.units import counted
from turnlog._platform.visible import visible
from turnlog.display.frame import Ways
from turnlog.display.past_request import AnsweredRequest, PastRequest, past_request, requests_of, windows_of
from turnlog.display.request_page import request_page, requests_page, window_use
from turnlog.display.request_words import request_changes, undoing
from turnlog.errors import BudgetError, InputError, TurnlogError
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Message, ToolCall, ToolResult, media_parts
from turnlog.log.records import Decision, MessageRecord, PartialAnswer, StreamCheckpoint, UsageRecord
from turnlog.log.store import Draft, Store
from turnlog.log.usage import CacheRead, Usage
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.stores import MemoryStore, open_store
from turnlog.testing.histories import HistoryWriter
from turnlog.testing.hostile import HOSTILE
from turnlog.view.decisions import active_decisions
from turnlog.view.explain import Account

TARGETS = (
    turnlog.target("openai-chat", "gpt-4o"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=99),
    turnlog.target("google", "gemini-2.5-pro"),
)
STEPS = ("say", "say", "say", "tool", "tool", "compact", "rewind", "undo", "pin", "switch", "small", "exclude")
_steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99)), min_size=3, max_size=16)


class Sent(Struct):
    """What a session sent, and the record of the answer to it."""

    n: int
    made: Request
    body: bytes
    accounts: dict[int, Account]


class Talker:
    """A session that says and asks what a test draws, and remembers each request."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = HistoryWriter(self.random, "anthropic")
        self.store = MemoryStore()
        self.session = turnlog.open("s", store=self.store, target=self.random.choice(TARGETS), system="Be brief.")
        self.sent: list[Sent] = []

    def ask(self) -> None:
        """Send a request, and record an answer to it, with a bill or without one."""
        made = self.session.request()
        target = self.session.target
        assert target is not None
        kept = made, made.json(), self.session.explain(target=target).accounts
        if self.random.random() < 0.5:
            message = Message("assistant", (turnlog.Text(self.words.unique("answer")),))
            n = self.session.add(message, model=target.model).n
        else:
            n = self.session.receive(_answer(target.provider, self.words.unique("answer"))).record.n
        self.sent.append(Sent(n, *kept))

    def step(self, step: str, number: int) -> None:
        """Do what a step names."""
        session = self.session
        match step:
            case "say":
                session.add(self._stored(self.words.user()))
                self.ask()
            case "tool":
                session.add(self._stored(self.words.user()))
                for message in self.words.step():
                    if message.role == "assistant":
                        made = session.request()
                        kept = made, made.json(), session.explain(target=session.target).accounts
                        self.sent.append(Sent(session.add(message, model=made.target.model).n, *kept))
                    else:
                        session.add(self._stored(_longer(message, number)))
                self.ask()
            case "compact":
                session.compact(keep=1 + number % 2)
            case "rewind":
                session.rewind(turns=1)
            case "undo":
                session.undo()
            case "pin":
                session.pin(1 + number % session.log.message_count)
            case "exclude":
                session.exclude(1 + number % session.log.message_count)
            case "switch":
                session.switch(TARGETS[number % len(TARGETS)])
            case "small":
                session.configure(budget=600 + 20 * number)

    def _stored(self, message: Message) -> Message:
        for data in self.words.blobs.values():
            self.store.put_blob(data)
        return message


def _longer(message: Message, number: int) -> Message:
    """The message with results long enough to be curated or cut."""
    text = turnlog.Text("\n".join(f"line {i} of a long output, number {number}" for i in range(number)) or "nothing")
    parts = (
        ToolResult(part.call_id, part.name, (*part.parts, text), part.outcome) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return Message(message.role, tuple(parts))


def _answer(provider: str, words: str) -> dict[str, Any]:
    """An answer as the provider's API returns it, with a bill."""
    if provider == "openai-chat":
        usage = {"prompt_tokens": 90, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 40}}
        return {
            "choices": [{"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
            "usage": usage,
        }
    if provider == "openai-responses":
        content = [{"type": "output_text", "text": words, "annotations": []}]
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
        return {"output": [item], "status": "completed", "usage": {"input_tokens": 90, "output_tokens": 9}}
    if provider == "google":
        usage = {"promptTokenCount": 90, "candidatesTokenCount": 9}
        content = {"role": "model", "parts": [{"text": words}]}
        return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    usage = {"input_tokens": 50, "cache_read_input_tokens": 40, "output_tokens": 9}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": words}],
        "stop_reason": "end_turn",
        "usage": usage,
    }


def talked(steps: list[tuple[str, int]], seed: int) -> Talker:
    """A session after these steps; what a session refuses is not done."""
    talker = Talker(seed)
    for step, number in steps:
        try:
            talker.step(step, number)
        except (InputError, BudgetError):
            continue
    return talker


@given(steps=_steps, seed=st.integers(0, 10_000))
def test_a_past_request_is_the_one_that_was_sent(steps: list[tuple[str, int]], seed: int) -> None:
    """A request made again from a log that went on since, which differs from the one that was sent, fails here."""
    talker = talked(steps, seed)
    listed = requests_of(talker.store, "s")
    assert [request.n for request in listed.requests] == [sent.n for sent in talker.sent]
    for sent in talker.sent:
        past = past_request(talker.store, "s", sent.n)
        assert past.request.json() == sent.body
        assert past.target == sent.made.target
        assert past.request.tokens == sent.made.tokens
        assert past.request.edits == sent.made.edits
        assert past.request.losses == sent.made.losses
        assert past.session.explain(target=past.target).accounts == sent.accounts
        before = [other for other in talker.sent if other.n < sent.n and other.made.target.model == past.target.model]
        if before and sent.made.cache is not None:
            use = past.cache_use(listed.of(before[-1].n))
            assert use is None or use[0] == sent.made.cache


@given(steps=_steps, seed=st.integers(0, 10_000), step=st.integers(1, 3))
def test_the_window_over_time_is_that_of_each_request(steps: list[tuple[str, int]], seed: int, step: int) -> None:
    """A chart in which a request has other tokens of a kind than its own page, after decisions or another model, fails
    here."""
    talker = talked(steps, seed)
    picked = requests_of(talker.store, "s").requests[::step]
    each = [PastRequest(talker.store, "s", answered) for answered in picked]
    expected = [past.session.window.breakdown(past.target).shares for past in each]
    assert [*windows_of(talker.store, "s", picked)] == expected


@given(flipped=st.integers(4, 23))
def test_the_window_over_time_goes_on_past_damage(flipped: int) -> None:
    """With one record damaged, every request behind it would have no column, or another size than on its own page."""
    with TemporaryDirectory() as folder:
        with turnlog.open("s", store=f"files:{folder}", target=TARGETS[0]) as session:
            for n in range(12):
                session.add(Message("user", (turnlog.Text(f"Word {n}. " * 9),)))
                session.add(Message("assistant", (turnlog.Text(f"Word {n}." * n),)), model="gpt-4o")
        [log] = Path(folder).rglob("s.jsonl")
        lines = log.read_bytes().splitlines(keepends=True)
        lines[flipped] = lines[flipped].replace(b"Word", b"word")
        log.write_bytes(b"".join(lines))
        with closing(open_store(f"files:{folder}", read_only=True)) as store:
            listed = requests_of(store, "s")
            each = [PastRequest(store, "s", answered) for answered in listed.requests]
            expected = [past.session.window.breakdown(past.target).shares for past in each]
            assert [*windows_of(store, "s", listed.requests)] == expected
            assert len(expected) >= 10 and len(listed.problems) == (b"word" in lines[flipped])


@given(steps=_steps, seed=st.integers(0, 10_000))
def test_commands_take_back_their_decision(steps: list[tuple[str, int]], seed: int) -> None:
    """A command beside a decision that is refused, or leaves the decision in force, fails here."""
    talker = talked(steps, seed)
    commands = undoing("s", active_decisions(talker.store.of_kinds("s", ("decision",))))
    for n, command in sorted(commands.items(), reverse=True):
        assert re.fullmatch(r"turnlog (rewind s --undo|undo s( \(\d+ times, the newest decision first\))?)", command)
        if "rewind" not in command:
            talker.session.undo("compaction")
            assert n not in active_decisions(talker.store.of_kinds("s", ("decision",)))
    if any("rewind" in command for command in commands.values()):  # last: decisions that it ended are in force again
        with suppress(InputError):  # the conversation went on since
            talker.session.undo("rewind")


_LINE = re.compile(r'#r(\d+)">\d+</a><b>[a-z]*</b><span class="gist">[^<]*</span><span class="badge f-([a-z-]+)">')


def assert_page_says(page: str, made: Request, body: bytes, accounts: dict[int, Account], name: str = "s") -> None:
    """The page of a request has its size, its changes, what became of each message, and its body."""
    read = Page(page)
    assert read.wrong == []
    words = " ".join(read.text.split())
    assert f"{made.tokens:,} of " in words or f"The request itself has {made.tokens:,} tokens" in words
    assert f"{len(body):,} bytes of JSON for {made.target.provider}" in words
    assert f"{counted(len(made.edits), 'edit')}, {counted(len(made.losses), 'loss')}" in words
    for line in request_changes(made, name):
        assert " ".join(line.split()) in words
    view = [one for one in made.view if not one.stands_in and one.treatment != "synthetic"]
    shown = {n: one for one in view for n in one.records}
    lines = _LINE.findall(page)
    assert lines or not accounts
    for n, fate in lines:
        account = accounts[int(n)]
        became = account.fate.replace(" ", "-")
        if account.n not in shown:
            assert fate in (became, "left-out", "never-sent")
            assert became != "kept" or fate != became
        elif account.fate == "kept" and not shown[account.n].as_recorded:
            assert fate == shown[account.n].treatment
        else:
            assert fate == became
    body_shown = read.texts[-1].removeprefix("\n")
    assert body_shown == visible(msgspec.json.format(body, indent=2).decode()[:20_000])


@pytest.mark.slow
@given(steps=_steps, seed=st.integers(0, 10_000))
def test_the_page_says_what_the_session_sent(steps: list[tuple[str, int]], seed: int) -> None:
    """A page with another size, change, fate or body than the request had fails here."""
    talker = talked(steps, seed)
    for sent in talker.sent[-3:]:
        page = "".join(request_page(talker.store, "s", sent.n, Ways("site")))
        assert_page_says(page, sent.made, sent.body, sent.accounts)
    for page in (requests_page(talker.store, "s", Ways("site")), window_use(talker.store, "s", Ways("site"))):
        assert Page("".join(page)).wrong == []


@pytest.mark.slow
def test_pages_equal_sessions_of_real_transcripts(shared: Path) -> None:
    """Of a real transcript, the page shows another request than a session makes that has read only so much of it."""
    checked, refused = 0, Counter[str]()
    for store, session_id, answered in _requests(shared, draws(240, 2_000)):
        records = [*store.read(session_id, last=answered.made_of)]
        alone = MemoryStore()
        alone.create(session_id, created=store.info(session_id).created)
        alone.append(session_id, [Draft.of(record) for record in records])
        for sha256 in {media.sha256 for record in records if record.message for media in media_parts(record.message)}:
            with suppress(TurnlogError):
                alone.put_blob(store.get_blob(sha256))
        try:
            past = PastRequest(store, session_id, answered)
            made = Session(alone, alone.info(session_id)).preview(past.target)
            body = made.json()
        except TurnlogError as error:
            refused[str(error)] += 1
            continue
        accounts = Session(alone, alone.info(session_id)).explain(target=past.target).accounts
        assert past.request.json() == body
        assert (past.request.tokens, past.request.view) == (made.tokens, made.view)
        page = "".join(request_page(store, session_id, answered.n, Ways("site")))
        assert_page_says(page, made, body, accounts, session_id)
        checked += 1
    assert checked >= 200, f"{checked} pages equal what the session makes; not made: {dict(refused)}"


def _requests(shared: Path, number: int) -> Iterator[tuple[Store, str, AnsweredRequest]]:
    """So many requests of real transcripts, from each folder, at most three of each session."""
    chance, left = random.Random(1), number
    for folder in FOLDERS:
        here = 3 * number // len(FOLDERS)
        for _, session in imported(shared, [folder]):
            if here <= 0 or left <= 0:
                break
            store = MemoryStore()
            synced = sync_session(store, session)
            found = requests_of(store, synced.session).requests
            for answered in chance.sample(found, min(3, len(found), left)):
                here, left = here - 1, left - 1
                yield store, synced.session, answered


_TAGS = frozenset(
    "html head meta title style body main nav header section h1 h2 h3 p a b span code pre ol ul li div details summary "
    "figure figcaption svg g rect table caption thead tbody tr th td".split()
)
_NAMES = frozenset(
    "lang charset http-equiv content name class href aria-label aria-hidden aria-current role tabindex scope open dir "
    "rel x y width height viewbox preserveaspectratio".split()
)


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_stay_words(words: str) -> None:
    """A title, model, id, text, reason or result of a transcript that becomes markup of the page, an address or a
    style."""
    name = "s"
    store = MemoryStore()
    store.create(name, title=words[:80])
    call = ToolCall(words[:50] or "c", words[:50] or "t", {"x": words})
    answer = MessageRecord(Message("assistant", (turnlog.Text(words), call)), model=words[:60])
    result = Message("user", (ToolResult(call.id, call.name, (turnlog.Text(words),)),))
    decision = Decision("exclude", 1, 1, words, {"records": [1], "texts": [[1, [0], words]]})
    usage = UsageRecord("anthropic", words[:60], Usage(input=9, output=1), cache=CacheRead(3, "messages", words, words))
    bodies = (MessageRecord(Message("user", (turnlog.Text(words),))), answer, usage, MessageRecord(result), decision)
    store.append(name, [Draft(body) for body in (*bodies, answer)])
    ways = Ways("site")
    for page in (request_page(store, name, 6, ways), requests_page(store, name, ways), window_use(store, name, ways)):
        read = Page("".join(page))
        assert read.wrong == []
        assert {element.tag for element in read.elements} <= _TAGS
        assert {attribute for element in read.elements for attribute in element.attributes} <= _NAMES
        links = [element.attributes["href"] or "" for element in read.elements if "href" in element.attributes]
        assert all(re.fullmatch(r"(s|index|figures)(\.requests(\.\d+)?)?\.html(#r\d+)?", link) for link in links)


def test_a_request_ends_where_its_answer_began() -> None:
    """What came while an answer was streamed, or the first half of an answer in two messages, would be taken for a part
    of the request; a bill for another one's."""
    store = MemoryStore()
    store.create("s")
    said = MessageRecord(Message("user", (turnlog.Text("Go."),)))
    half = Message("assistant", (turnlog.Text("half"),))
    usage = UsageRecord("openai-chat", "gpt-4o", Usage(input=9, output=1))
    answer = MessageRecord(half, model="gpt-4o", response_id="r")
    checkpoint = StreamCheckpoint(half)
    bodies = (
        said,
        answer,
        answer,
        usage,
        said,
        checkpoint,
        checkpoint,
        PartialAnswer(half, "cut off"),
        usage,
        usage,
        said,
    )
    store.append("s", [Draft(body, f"2025-01-01T12:00:{n:02}.000Z") for n, body in enumerate(bodies)])
    listed = requests_of(store, "s")
    found = [(each.n, each.last, each.made_of, each.seconds, each.complete) for each in listed.requests]
    assert found == [(2, 3, 1, 1.0, True), (8, 8, 5, 3.0, False)]
    assert [each.bill.n for each in listed.requests if each.bill] == [4, 9]
    assert listed.other_bills == 1
    assert [listed.of(n).number for n in (2, 3, 4, 8, 9)] == [1, 1, 1, 2, 2]
    with pytest.raises(InputError, match="record 5 is no answer"):
        listed.of(5)


@pytest.mark.parametrize(
    ("minutes", "read", "reason"),
    [
        (1, 9_900, ""),
        (1, 3_000, "the provider did not find it, though it was not too old"),
        (30, 0, "it expired, or the provider did not find it"),
        (90, 0, "it expired"),
    ],
)
def test_a_cache_that_was_not_read_has_a_reason(minutes: int, read: int, reason: str) -> None:
    """Where a long session suddenly costs ten times as much, the pages would say nothing, or blame the provider for a
    pause of the user."""
    store, model = MemoryStore(), "claude-sonnet-4-5"
    store.create("s")
    asked = MessageRecord(Message("user", (turnlog.Text("Go."),)))
    answer = MessageRecord(Message("assistant", (turnlog.Text("Done."),)), model=model)
    bills = [
        UsageRecord("anthropic", model, Usage(input=10_100, output=1, cached=cached, cache_write=10_000 - cached))
        for cached in (0, read)
    ]
    bodies = (asked, answer, bills[0], asked, answer, bills[1])
    times = [f"2025-01-01T{12 + at // 60}:{at % 60:02}:00.000Z" for at in (0, 0, 0, minutes, minutes, minutes)]
    store.append("s", [Draft(body, time) for body, time in zip(bodies, times, strict=True)])
    of_one = Page("".join(request_page(store, "s", 5, Ways("site")))).text
    of_all = Page("".join(requests_page(store, "s", Ways("site")))).text
    missed = f"{10_000 - read:,} tokens of the cache were not read; request 1 was "
    assert (missed in of_all) is bool(reason)
    assert (missed in of_one) is bool(reason)
    assert f": {reason}, or the program sent something else" in of_one if reason else "Same beginning" not in of_one


def test_rows_name_what_calls_are_about() -> None:
    """A list of results of one tool would not tell which file each is of."""
    store = MemoryStore()
    store.create("s")
    call = ToolCall("c", "Read", {"file_path": "/home/me/src/session.go"})
    answer = MessageRecord(Message("assistant", (call,)), model="gpt-4o")
    result = MessageRecord(Message("user", (ToolResult("c", "Read", (turnlog.Text("package session"),)),)))
    asked = MessageRecord(Message("user", (turnlog.Text("Go."),)))
    usage = UsageRecord("openai-chat", "gpt-4o", Usage(input=9, output=1))
    store.append("s", [Draft(body) for body in (asked, answer, usage, result, answer)])
    words = Page("".join(request_page(store, "s", 5, Ways("site")))).text
    assert "[calls Read src/session.go]" in words
    assert "[Read ok src/session.go] package session" in words


def test_long_logs_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page over a log of 100,000 records would need all of them in memory; it says so, and what tells it."""
    monkeypatch.setattr("turnlog.display.request_page._MOST", 3)
    talker = talked([("say", 0)] * 4, 1)
    sent = talker.sent[-1]
    words = Page("".join(request_page(talker.store, "s", sent.n, Ways("site")))).text
    assert f"{sent.made.tokens:,} tokens, in a window of" in words
    assert "`turnlog why s`" in words
    assert f"{len(sent.body):,} bytes of JSON" in words
    assert "`turnlog context s`" in Page("".join(window_use(talker.store, "s", Ways("site")))).text
