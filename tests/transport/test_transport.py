"""An HTTP client under a program that keeps its conversation itself: what the program sent is on record once, what the
server gets is what the program sent unless it has to be mended, and nothing of turnlog stops a request."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_servers import PATHS, ModelServer, Pieces, answer_in, events_of

import turnlog
from draws import examples
from keeping_programs import MODELS, STEPS, Program, said
from turnlog import transport
from turnlog.log.messages import ToolCall, text_of
from turnlog.log.records import Decision, MessageRecord, Note, PartialAnswer, Record, UsageRecord
from turnlog.stores import MemoryStore
from turnlog.stores.labels import newest_labels
from turnlog.transport.answers import ServerSentEvents

CHAT = PATHS["openai-chat"]
JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


class ProgramOverHttp(Program):
    """A program whose requests go through a client that only records."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.session.close()
        self.store = MemoryStore()
        self.answer: Sequence[str | ToolCall] = ()
        self.server = ModelServer(lambda request: (200, JSON, [self.reply]))
        self.client = transport.client(self.store, transport=self.server)

    @property
    def reply(self) -> bytes:
        """The answer of the server."""
        return json.dumps(answer_in(self.provider, self.answer, self.number)).encode()

    def send(self, body: dict[str, Any], answer: Sequence[str | ToolCall]) -> None:
        """Send a body, and read the answer."""
        self.answer = answer
        content = json.dumps(body).encode()
        url = PATHS[self.provider].format(model=MODELS[self.provider])
        response = self.client.post(url, content=content, headers=JSON)
        assert (response.content, self.server.requests[-1].content) == (self.reply, content)

    def restart(self) -> None:
        """Go on in a new process, as it were."""
        self.client.close()
        self.client = transport.client(self.store, transport=self.server)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(15, 2_000))
@given(steps=st.lists(st.sampled_from(STEPS), max_size=12))
def test_a_session_says_what_the_program_said(name: str, steps: list[str]) -> None:
    """A request that is changed on its way, an answer that is not on record, a conversation in the wrong session."""
    program = ProgramOverHttp(name)
    for step in [*steps, "say"]:
        program.step(step)
    program.client.close()
    assert program.client.failures == 0
    newest = program.store.sessions()[0]
    with turnlog.open(newest.id, store=program.store) as session:
        shown = said(name, session.preview().body)
        assert (shown[0], shown[2]) == (said(name, program.body())[0], said(name, program.body())[2])
        assert session.log.validate() == []
    bills = [record for record in all_records(program.store) if isinstance(record.body, UsageRecord)]
    assert len(bills) == len(program.server.requests)


def all_records(store: MemoryStore) -> list[Record]:
    """The records of all sessions."""
    return [record for info in store.sessions() for record in store.read(info.id)]


def texts(store: MemoryStore, session_id: str) -> list[str]:
    """What was said in a session, by the log."""
    records = store.read(session_id)
    return [text_of(record.body.message) for record in records if isinstance(record.body, MessageRecord)]


def talk(*said_texts: str, **more: Any) -> dict[str, Any]:
    """A body of Chat Completions: a user and an assistant in turns."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said_texts)]
    return {"model": "gpt-4o", "messages": messages, **more}


def whole(*answers: str) -> Callable[[httpx2.Request], tuple[int, dict[str, str], Pieces]]:
    """Replies with these answers, one after another."""
    left = [*answers]
    return lambda request: (200, JSON, [json.dumps(answer_in("openai-chat", [left.pop(0)], len(left))).encode()])


def test_a_stream_is_recorded_as_it_comes_and_passes_unchanged() -> None:
    """A stream that is held back until it is whole, or comes out in other bytes."""
    store, pieces = MemoryStore(), events_of("one two three", 1)
    client = transport.client(store, transport=ModelServer(lambda request: (200, EVENTS, [*pieces])))
    with client.stream("POST", CHAT, json=talk("Count.", stream=True)) as response:
        assert [*response.iter_raw()] == pieces
    [info] = store.sessions()
    assert texts(store, info.id) == ["Count.", "one two three"]
    assert client.failures == 0


@pytest.mark.parametrize("end", ["error", "left"])
def test_a_stream_that_breaks_off_is_an_interrupted_answer(end: str) -> None:
    """What had come is lost, or the error does not reach the program."""
    pieces: Pieces = [*events_of("one two three", 1)[:2], httpx2.ReadError("reset"), b""]
    client = transport.client(store := MemoryStore(), transport=ModelServer(lambda request: (200, EVENTS, [*pieces])))
    with client.stream("POST", CHAT, json=talk("Count.", stream=True)) as response:
        stream = response.iter_raw()
        assert next(stream) == pieces[0] and next(stream) == pieces[1]
        if end == "error":
            with pytest.raises(httpx2.ReadError, match="reset"):
                next(stream)
    [partial] = [record.body for record in all_records(store) if isinstance(record.body, PartialAnswer)]
    why = {"error": "ReadError: reset", "left": "the stream ended before a finish reason came"}[end]
    assert (text_of(partial.message), partial.reason) == ("one two ", why)


def test_answers_are_read_in_the_codings_of_http() -> None:
    """Compressed answers are not on record, or reach the program changed."""
    packed = gzip.compress(b"".join(events_of("one two", 1)))
    pieces: Pieces = [packed[i : i + 7] for i in range(0, len(packed), 7)]
    headers = {**EVENTS, "content-encoding": "gzip"}
    client = transport.client(store := MemoryStore(), transport=ModelServer(lambda request: (200, headers, pieces)))
    response = client.post(CHAT, json=talk("Count.", stream=True))
    assert response.content == b"".join(events_of("one two", 1))
    assert texts(store, store.sessions()[0].id) == ["Count.", "one two"]


def test_a_refusal_is_a_note_and_the_same_body_again_is_no_second_question() -> None:
    """A retry after "too many requests" doubles the question, or nobody sees later why it took so long."""
    refusal = json.dumps({"error": {"message": "Slow down", "type": "rate_limit_error"}}).encode()
    answer = json.dumps(answer_in("openai-chat", ["Hi."], 1)).encode()
    answers = [(429, refusal), (200, answer)]

    def reply(request: httpx2.Request) -> tuple[int, dict[str, str], Pieces]:
        status, content = answers.pop(0)
        return status, JSON, [content]

    client = transport.client(store := MemoryStore(), transport=ModelServer(reply))
    assert [client.post(CHAT, json=talk("Hello.")).status_code for _ in range(2)] == [429, 200]
    [info] = store.sessions()
    assert texts(store, info.id) == ["Hello.", "Hi."]
    notes = [record.body for record in store.read(info.id) if isinstance(record.body, Note)]
    told = "the server refused the request with status 429: rate_limit_error: Slow down"
    assert [note.text for note in notes if note.topic == "transport"] == [told]


def test_what_is_asked_at_the_same_time_has_sessions_of_its_own() -> None:
    """Two requests under way in one session: the answer of one goes into the conversation of the other."""
    store = MemoryStore()
    server = ModelServer(whole(*"abcd"))
    bodies = [talk("Same."), talk("Same."), talk("Title?"), talk("Same.", temperature=1)]

    async def ask() -> None:
        client = transport.async_client(store, transport=server)
        await asyncio.gather(*(client.post(CHAT, json=body) for body in bodies))
        assert client.failures == 0
        await client.aclose()

    asyncio.run(ask())
    found = sorted(texts(store, info.id) for info in store.sessions())
    assert [(said_texts[0], len(said_texts)) for said_texts in found] == [("Same.", 2)] * 3 + [("Title?", 2)]


def test_the_same_messages_under_other_instructions_are_another_conversation() -> None:
    """A guardrail is told what the agent is told, and its request would take the place of the agent's."""
    store = MemoryStore()
    url, names = PATHS["openai-responses"], iter("abcd")
    reply = (json.dumps(answer_in("openai-responses", [name], n)).encode() for n, name in enumerate(names))
    client = transport.client(store, transport=ModelServer(lambda request: (200, JSON, [next(reply)])))
    items: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    more = [{"role": "assistant", "content": "b"}, {"role": "user", "content": "And?"}]
    for said_so_far in (items, [*items, *more]):
        for instructions in ("Is it polite?", "Be brief."):
            client.post(url, json={"model": "gpt-5", "instructions": instructions, "input": said_so_far})
    client.close()
    found = sorted(texts(store, info.id) for info in store.sessions())
    assert found[0] == ["Be brief.", "Hi", "b", "And?", "d"]
    assert [said_texts[0] for said_texts in found[1:]] == ["Is it polite?"] * 2


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (CHAT.replace("chat/completions", "embeddings"), {"model": "m", "input": ["a"]}),
        (PATHS["openai-responses"], {"model": "gpt-4o", "input": "And?", "previous_response_id": "r1"}),
        (PATHS["anthropic"] + "/count_tokens", talk("Count.")),
        (PATHS["anthropic"] + "/batches", {"requests": []}),
    ],
)
def test_what_does_not_hold_a_conversation_passes(url: str, body: dict[str, Any]) -> None:
    """A request of which turnlog has no whole conversation becomes a session, or fails."""
    server = ModelServer(lambda request: (200, JSON, [b"{}"]))
    client = transport.client(store := MemoryStore(), budget=500, transport=server)
    content = json.dumps(body).encode()
    assert client.post(url, content=content, headers=JSON).json() == {}
    assert ([request.content for request in server.requests], store.sessions(), client.failures) == ([content], [], 0)


def test_a_failure_of_turnlog_fails_no_request() -> None:
    """A full disk stops the agent; or what was said meanwhile is missing for ever."""
    store, server = MemoryStore(), ModelServer(whole("A1.", "A2.", "A3."))
    client = transport.client(store, transport=server)
    client.post(CHAT, json=talk("Q1."))
    append = store.append
    store.append = lambda *arguments, **named: (_ for _ in ()).throw(OSError("No space left"))  # type: ignore[method-assign]
    assert client.post(CHAT, json=talk("Q1.", "A1.", "Q2.")).status_code == 200
    store.append = append  # type: ignore[method-assign]
    assert client.failures == 1
    client.post(CHAT, json=talk("Q1.", "A1.", "Q2.", "A2.", "Q3."))
    [info] = store.sessions()
    assert texts(store, info.id) == ["Q1.", "A1.", "Q2.", "A2.", "Q3.", "A3."]


SECRET = "sk-proj-" + "a1B2c3D4" * 6


def test_with_redact_all_no_secret_goes_out() -> None:
    """The model gets a key that the settings keep from it, also when turnlog fails."""
    store, server = MemoryStore(), ModelServer(whole(*["A1."] * 4))
    client = transport.client(store, settings=turnlog.Settings(redact="all"), transport=server)
    client.post(CHAT, json=talk(f"My key is {SECRET}."))
    assert SECRET not in server.requests[0].content.decode()
    store.append = lambda *arguments, **named: (_ for _ in ()).throw(OSError("No space left"))  # type: ignore[method-assign]
    others = [PATHS["openai-responses"], PATHS["anthropic"] + "/count_tokens"]
    client.post(CHAT, json=talk(f"My key is {SECRET}."))
    for url in others:
        client.post(url, json={"model": "gpt-4o", "input": f"My key is {SECRET}.", "previous_response_id": "r"})
    assert [SECRET in request.content.decode() for request in server.requests] == [False] * 4
    assert "My key is [" in server.requests[1].content.decode()
    with pytest.raises(turnlog.errors.InputError, match="was not sent"):
        client.post(CHAT, content=gzip.compress(json.dumps(talk(f"My key is {SECRET}.")).encode()))
    assert len(server.requests) == 4


def test_headers_and_keys_are_not_on_record() -> None:
    """The key of the API, or what a header says, is in the log."""
    server = ModelServer(whole("A1."))
    client = transport.client(store := MemoryStore(), transport=server)
    client.post(CHAT, json=talk("Q1."), headers={"authorization": f"Bearer {SECRET}", "x-other": "o-t-h-e-r"})
    kept = "".join(repr(record) for record in all_records(store))
    assert (SECRET in kept, "o-t-h-e-r" in kept) == (False, False)
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_program_names_its_session() -> None:
    """The name goes to the server, or a subagent of the block writes into the conversation of that name."""
    store, server = MemoryStore(), ModelServer(whole("A1.", "T.", "A2.", "A3."))
    client = transport.client(store, transport=server)
    client.post(CHAT, json=talk("Q1."), headers={"x-turnlog-session": "ann"})
    with transport.session("ann"):
        client.post(CHAT, json={**talk("A title?"), "temperature": 1})
        client.post(CHAT, json=talk("Q1.", "A1.", "Q2."))
    client.close()
    client = transport.client(store, transport=server)
    with transport.session("ann"):
        client.post(CHAT, json=talk("Q1.", "A1.", "Q2.", "A2.", "Q3."))
    assert {info.id: texts(store, info.id) for info in store.sessions()} == {
        "ann": ["Q1.", "A1.", "Q2.", "A2.", "Q3.", "A3."],
        "ann-2": ["A title?", "T."],
    }
    assert ["x-turnlog-session" in request.headers for request in server.requests] == [False] * 4


def test_nobody_goes_on_with_the_session_of_another_owner() -> None:
    """Two users begin in the same words: the second one finds himself in the session of the first."""
    store = MemoryStore()
    for user in ("ann", "bob"):
        client = transport.client(store, labels={"user": user}, transport=ModelServer(whole("A2.", "A2.")))
        client.post(CHAT, json=talk("Q1.", "A1.", "Q2."))
        with transport.session("mine"):
            client.post(CHAT, json=talk("Q1.", "A1.", "Q2.")) if user == "ann" else None
        client.close()
    owners = sorted(store.facts()[info.id].labels["user"] for info in store.sessions())
    assert owners == ["ann", "ann", "bob"]


def test_a_branch_that_comes_again_goes_on_in_a_session_of_its_own() -> None:
    """Two branches that are asked by turns take each other back, and each message is recorded again and again."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(whole(*(f"A{n}." for n in range(9)))))
    base = ["Q", "A0.", "Q2", "A1."]
    left, right = [*base, "left"], [*base, "right"]
    client.post(CHAT, json=talk("Q"))
    client.post(CHAT, json=talk(*base[:3]))
    for number in range(2, 8):
        branch = left if number % 2 else right
        client.post(CHAT, json=talk(*branch))
        branch += [f"A{number}.", f"more {number}"]
    counts = sorted(len(texts(store, info.id)) for info in store.sessions())
    assert (len(counts), sum(counts)) == (2, 22)


def test_a_budget_holds_and_the_prefix_moves_at_decisions_only() -> None:
    """Requests grow beyond the budget, or begin otherwise each time so that no cache serves them."""
    store = MemoryStore()
    server = ModelServer(whole(*(f"A{n}" for n in range(40))))
    client = transport.client(store, budget=1_200, transport=server)
    history: list[str] = []
    for number in range(40):
        history.append(f"Question {number} " + "word " * 40)
        client.post(CHAT, json=talk(*history))
        history.append(f"A{number}")
    bodies = [json.loads(request.content) for request in server.requests]
    assert max(turnlog.count(body).tokens for body in bodies) <= 1_200
    sent = [body["messages"] for body in bodies]
    moved = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(sent))
    decisions = [record for record in all_records(store) if isinstance(record.body, Decision)]
    assert 0 < moved <= len(decisions) < 20
    assert client.failures == 0


def test_a_body_that_would_be_refused_is_mended() -> None:
    """A result without its call, or a setting that the provider refuses, goes out."""
    server = ModelServer(whole(*("A1." for _ in range(8))))
    client = transport.client(store := MemoryStore(), transport=server)
    orphan = [{"role": "tool", "tool_call_id": "gone", "content": "x"}, *talk("Q1.", "A1.", "Q2.")["messages"]]
    bodies = [
        talk("Q1."),
        {**talk("Q1."), "messages": orphan},
        talk("B1.", tools=[]),
        talk("B1.", "A1.", "B2.", tools=[]),
        talk("B1.", "A1.", "B2.", "A1.", "B3."),
    ]
    for body in bodies:
        client.post(CHAT, json=body)
        assert turnlog.check(json.loads(server.requests[-1].content)) == []
    sent = [json.loads(request.content) for request in server.requests]
    assert (sent[0], sent[-1]) == (bodies[0], bodies[-1])
    assert (len(store.sessions()), client.failures) == (3, 0)


def test_what_turnlog_does_not_know_stays() -> None:
    """A setting that is newer than turnlog is taken away, also where the conversation is made smaller."""
    server = ModelServer(whole(*(f"A{n}." for n in range(30))))
    client = transport.client(store := MemoryStore(), budget=600, transport=server)
    history: list[str] = []
    for number in range(30):
        history.append(f"Question {number} " + "word " * 20)
        client.post(CHAT, json=talk(*history, newer_than_turnlog={"a": 1}))
        history.append(f"A{number}.")
    sent = [json.loads(request.content) for request in server.requests]
    assert [body["newer_than_turnlog"] for body in sent] == [{"a": 1}] * 30
    assert len(sent[-1]["messages"]) < 40
    notes = [record.body for record in all_records(store) if isinstance(record.body, Note)]
    told = "not recorded, as turnlog does not know them: newer_than_turnlog"
    assert [note.text for note in notes if note.topic == "transport"] == [told]


def test_tools_with_a_secret_keep_no_conversation_off_the_record() -> None:
    """The key in the headers of a server of tools is on record, or nothing is."""
    server = ModelServer(lambda request: (200, JSON, [json.dumps(answer_in("openai-responses", ["A1."], 1)).encode()]))
    client = transport.client(store := MemoryStore(), transport=server)
    headers = {"Authorization": f"Bearer {SECRET}"}
    tools = [{"type": "mcp", "server_label": "s", "server_url": "https://example.com", "headers": headers}]
    client.post(PATHS["openai-responses"], json={"model": "gpt-4o", "input": "Q1.", "tools": tools})
    assert json.loads(server.requests[0].content)["tools"] == tools
    assert texts(store, store.sessions()[0].id) == ["Q1.", "A1."]
    assert SECRET not in "".join(repr(record) for record in all_records(store))
    assert client.failures == 0


@pytest.mark.slow
def test_a_client_closes_what_it_no_longer_needs_and_finds_it_again() -> None:
    """A service with thousands of conversations runs out of files, or begins old conversations anew."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(lambda request: whole("A.")(request)))
    for number in range(70):
        client.post(CHAT, json=talk(f"Q{number}."))
    client.post(CHAT, json=talk("Q1.", "A.", "More."))
    assert len(store.sessions()) == 70
    assert client.failures == 0


def test_what_is_asked_about_a_request_under_way_is_no_part_of_it() -> None:
    """A guardrail asks about a conversation whose answer is awaited: it cuts that answer off."""
    store = MemoryStore()

    async def ask() -> None:
        client = transport.async_client(store, transport=ModelServer(whole("Safe.", "Hello.")))
        async with client.stream("POST", CHAT, json=talk("Hi.")) as response:
            await client.post(CHAT, json={"model": "gpt-4o", "messages": [*talk("Hi.")["messages"]] * 2})
            await response.aread()
        await client.aclose()

    asyncio.run(ask())
    assert sorted(texts(store, info.id) for info in store.sessions()) == [["Hi.", "Hi.", "Hello."], ["Hi.", "Safe."]]


def test_users_who_begin_alike_keep_their_sessions() -> None:
    """Two users say "Hi" and are answered differently: the second goes on in the session of the first."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(whole("Hi Ann.", "Hi Bob.", "B.", "A.")))
    for _ in range(2):
        client.post(CHAT, json=talk("Hi"))
    client.post(CHAT, json=talk("Hi", "Hi Bob.", "I am Bob."))
    client.post(CHAT, json=talk("Hi", "Hi Ann.", "I am Ann."))
    found = sorted(texts(store, info.id) for info in store.sessions())
    assert found == [["Hi", "Hi Ann.", "I am Ann.", "A."], ["Hi", "Hi Bob.", "I am Bob.", "B."]]


def test_examples_in_each_prompt_make_no_conversation_of_them() -> None:
    """Calls with the same examples before the question are taken for one conversation that is rewound again and
    again."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(whole("1", "2", "3")))
    for fruit in ("pear", "plum", "beet"):
        client.post(CHAT, json=talk("apple?", "fruit", "leek?", "vegetable", f"{fruit}?"))
    assert len(store.sessions()) == 3
    assert not any(isinstance(record.body, Decision) for record in all_records(store))


def test_a_window_with_the_same_words_in_it_stays_one_conversation() -> None:
    """A user who says "yes" now and then, while the program sends the newest messages only, gets many sessions."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(whole(*(f"A{n}" for n in range(40)))))
    history: list[str] = []
    for number in range(40):
        history.append("yes" if number % 3 else f"Question {number}")
        client.post(CHAT, json=talk(*history[-9:]))
        history.append(f"A{number}")
    [info] = store.sessions()
    assert len(texts(store, info.id)) == 80


@pytest.mark.slow
def test_a_hundred_at_once_are_all_on_record() -> None:
    """With more requests under way than sessions are kept open, new ones are not recorded."""
    store = MemoryStore()

    async def ask() -> int:
        server = ModelServer(whole(*(f"A{n}" for n in range(100))))
        client = transport.async_client(store, transport=server)
        await asyncio.gather(*(client.post(CHAT, json=talk(f"Q{n}")) for n in range(100)))
        await client.aclose()
        failures: int = client.failures
        return failures

    assert asyncio.run(ask()) == 0
    assert [len(texts(store, info.id)) for info in store.sessions()] == [2] * 100


@pytest.mark.slow
def test_streams_that_nobody_reads_on_hold_up_no_conversation() -> None:
    """A program that drops its streams: their conversations await answers for ever."""
    store = MemoryStore()
    client = transport.client(store, transport=ModelServer(lambda request: (200, EVENTS, [*events_of("one two", 1)])))
    history = ["Q0"]
    for number in range(3):
        request = client.build_request("POST", CHAT, json=talk(*history))
        next(client.send(request, stream=True).iter_raw())
        history += ["one ", f"Q{number + 1}"]
        gc.collect()
    assert (len(store.sessions()), client.failures) == (1, 0)


def test_a_fork_leaves_the_sessions_to_its_parent() -> None:
    """A worker that is forked while the client is in use hangs, or writes into a session of its parent."""
    client = transport.client(MemoryStore(), transport=ModelServer(whole("A1.", "A2.")))
    client.post(CHAT, json=talk("Q1."))
    with client._recorder._lock:  # as another thread may hold it
        child = os.fork()
        if not child:
            client.post(CHAT, json=talk("Q1.", "A1.", "Q2."))
            os._exit(client.failures)
    assert os.waitpid(child, 0)[1] == 0


def test_no_key_is_in_what_is_told_of_failures() -> None:
    """A gateway's page that quotes the address, or an error that quotes a header, puts the key into the log."""

    def reply(request: httpx2.Request) -> tuple[int, dict[str, str], Pieces]:
        if "key" in request.url.params:
            return 404, {"content-type": "text/html"}, [f"not found: {request.url}".encode()]
        raise httpx2.LocalProtocolError(f"Illegal header value {request.headers['authorization']!r}")

    client = transport.client(store := MemoryStore(), transport=ModelServer(reply))
    client.post(CHAT + "?key=plainword99", json=talk("Q1."))
    with pytest.raises(httpx2.LocalProtocolError):
        client.post(CHAT, json=talk("Q2."), headers={"authorization": "Bearer plainword99"})
    notes = sorted(record.body.text for record in all_records(store) if isinstance(record.body, Note))
    assert [text for text in notes if text] == [
        "no answer came: LocalProtocolError",
        "the server refused the request with status 404",
    ]
    assert "plainword99" not in "".join(repr(record) for record in all_records(store))


def test_what_cannot_be_made_small_enough_goes_out_as_small_as_it_can() -> None:
    """One large message, and the whole history is sent with it, although there is a budget."""
    server = ModelServer(whole(*(f"A{n}" for n in range(21))))
    client = transport.client(MemoryStore(), budget=1_000, transport=server)
    history: list[str] = []
    for number in range(20):
        history += [f"Question {number} " + "word " * 100, f"A{number}"]
        client.post(CHAT, json=talk(*history[:-1]))
    client.post(CHAT, json=talk(*history, "And all of this: " + "word " * 1_200))
    assert turnlog.count(json.loads(server.requests[-1].content)).tokens < 1_800
    assert client.failures == 1


def test_a_picture_in_a_stream_is_read_once() -> None:
    """An event of many pieces is joined anew with each of them, which takes minutes."""
    events, joined = ServerSentEvents(), [b"x" * 100] * 5_000
    list(events.feed(b'data: "'))
    for piece in joined:
        assert list(events.feed(piece)) == []
    assert len(events._rest) == 5_001  # kept apart until the line ends
    assert list(events.feed(b'"\n\n')) == ["x" * 500_000]


def test_responses_tell_how_long_they_took() -> None:
    """`response.elapsed`, which SDKs show, raises an error."""
    client = transport.client(MemoryStore(), transport=ModelServer(whole("A1.")))
    assert client.post(CHAT, json=talk("Q1.")).elapsed.total_seconds() >= 0


def test_a_client_without_a_budget_sends_what_another_left_out() -> None:
    """The budget of an earlier run shortens requests of a client that has none, or the other way round it does not
    hold."""
    store = MemoryStore()
    history: list[str] = []
    for budget in (None, 1_000, None):
        server = ModelServer(whole(*(f"A{n}" for n in range(20))))
        client = transport.client(store, budget=budget, transport=server)
        for _ in range(12):
            history.append(f"Question {len(history)} " + "word " * 120)
            answer = client.post(CHAT, json=talk(*history)).json()
            history.append(answer["choices"][0]["message"]["content"])
        last = json.loads(server.requests[-1].content)
        is_short = turnlog.count(last).tokens <= 1_000, len(last["messages"]) < len(history) - 1
        assert is_short == ((budget == 1_000),) * 2
        client.close()
    assert len(store.sessions()) == 1


@pytest.mark.parametrize("headers", [JSON, EVENTS])
def test_a_response_without_an_answer_is_a_note(headers: dict[str, str]) -> None:
    """A server that answers with nothing leaves a question on record, and nobody learns why it has no answer."""
    client = transport.client(store := MemoryStore(), transport=ModelServer(lambda request: (200, headers, [])))
    assert client.post(CHAT, json=talk("Q1.", stream=headers is EVENTS)).content == b""
    notes = [record.body for record in all_records(store) if isinstance(record.body, Note)]
    told = "no answer came: nothing of a response was read"
    assert [note.text for note in notes if note.topic == "transport"] == [told]


@pytest.mark.parametrize("name", ["", "named"])
def test_what_a_session_is_found_by_is_on_record_before_its_first_message(name: str) -> None:
    """A program that was killed between the two went on in another session."""
    store = MemoryStore()
    client = transport.client(
        store,
        transport=ModelServer(
            lambda request: (200, JSON, [json.dumps(answer_in("openai-chat", ["Yes."], 1)).encode()])
        ),
    )
    with transport.session(name):
        client.post(PATHS["openai-chat"], json={"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi?"}]})
    records = all_records(store)
    first = next(n for n, record in enumerate(records) if record.message is not None)
    assert "transport-opening" in (newest_labels(records[:first]) or {})
    assert client.failures == 0
