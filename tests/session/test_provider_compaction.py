"""Compactions that a provider makes: on demand, at a threshold, late, failed, edited; for whom they stand, and for whom
not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.errors import InputError
from turnlog.log.messages import text_of
from turnlog.log.records import MessageRecord, SummaryRecord, UsageRecord
from turnlog.redaction import Redactor
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize import ProviderSummarizer
from turnlog.view.turns import turns_of

CLAUDE = turnlog.target("anthropic", "claude-opus-5-5", thinking={"type": "adaptive"}, max_tokens=4_000)
GPT = turnlog.target("openai-responses", "gpt-5", store=False, include=["reasoning.encrypted_content"])
CHAT = turnlog.target("openai-chat", "gpt-4o")
SUMMARY = "The user wants the billing module ported; half of it is done."


def block(summary: str | None = SUMMARY, name: str = "1") -> dict[str, Any]:
    return {"type": "compaction", "content": summary, "signature": f"sealed-{name}", "encrypted_content": None}


def claude(*content: dict[str, Any], stop: str = "end_turn", iterations: Any = None) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": CLAUDE.model, "content": [*content]}
    usage = {"input_tokens": 900, "output_tokens": 20, **({"iterations": iterations} if iterations else {})}
    return {**head, "stop_reason": stop, "usage": usage}


def said(text: str, thought: str = "") -> list[dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": thought, "signature": f"sig-{thought}"}
    return [*([thinking] if thought else []), {"type": "text", "text": text}]


def item(name: str = "1") -> dict[str, Any]:
    return {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": f"sealed-{name}"}


def gpt(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920}
    head = {"id": "resp_1", "object": "response", "status": "completed", "model": GPT.model}
    return {**head, "output": [*output], "usage": usage, **more}


def gpt_said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


@pytest.fixture
def session() -> Session:
    """A session with three turns, each thought over by a model that binds its thinking."""
    made = turnlog.open("s", store=MemoryStore(), target=CLAUDE)
    made.system("You port code.")
    for i in range(3):
        made.user(f"Port part {i}. " + "Carefully. " * 300)
        made.request()
        made.receive(claude(*said(f"Part {i} is ported.", f"thought {i}")))
    made.user("And the tests?")
    return made


def kinds(body: dict[str, Any]) -> list[list[str]]:
    """The types of the blocks in each message."""
    contents = (message["content"] for message in body["messages"])
    return [["text"] if isinstance(one, str) else [block["type"] for block in one] for one in contents]


def test_the_block_stands_first_for_exactly_what_was_sent(session: Session) -> None:
    """A block behind the messages that it replaces compacts nothing, and what was said meanwhile must not go."""
    asked = session.request(compact=True)
    assert asked.body["compaction"] == {"type": "summarize"}
    assert asked.body["messages"] == session.request().body["messages"]
    session.receive(claude(*said("They pass.", "late thought")))
    session.user("Good.")
    session.receive(claude(block(), stop="compaction"), asked)
    request = session.request()
    assert kinds(request.body) == [["compaction"], ["thinking", "text"], ["text"]]
    sealed = {key: value for key, value in block().items() if value is not None}
    assert request.body["messages"][0] == {"role": "assistant", "content": [sealed]}
    assert request.tokens < asked.tokens / 2


def test_thinking_kept_behind_a_block_stays_as_long_as_it_is_valid(session: Session, binding: ModuleType) -> None:
    """Thinking of kept turns would be thrown away for nothing, or be sent when the API refuses it."""
    talk = binding.Conversation(CLAUDE.model)
    talk.sent(session.request(compact=True).body)
    talk.answered([block()])
    talk.sent(session.request().body)
    talk.answered(late := said("They pass.", "late thought"))
    session.receive(claude(*late))
    session.user("Good.")
    session.receive(claude(block(), stop="compaction"))
    assert talk.sent(body := session.request().body) == []
    assert "thinking" in kinds(body)[1]
    session.pin(1 + next(r.n for r in session.history() if isinstance(r.body, MessageRecord)))
    session.system("You port code, and tests.", replace=True)
    assert talk.sent(session.request().body) == []


@pytest.mark.parametrize("content", [None, "", "  "])
def test_a_failed_compaction_changes_nothing(session: Session, content: str | None) -> None:
    """With content null the API compacted nothing: if anything left the request, it would be lost."""
    before = session.request().json()
    session.request(compact=True)
    answer = session.receive(claude(block(content), stop="compaction", iterations=[{"type": "compaction"}]))
    assert session.request().json() == before
    assert answer.complete and not session.explain().saved
    failed = [record.body for record in session.history() if isinstance(record.body, SummaryRecord)][-1]
    assert (failed.state, bool(failed.reason)) == ("failed", True)


def test_an_edited_summary_is_not_sent_as_signed() -> None:
    """The API refuses a block whose text is not what it signed: a store that replaces secrets changed it."""
    store = turnlog.redaction.RedactingStore(MemoryStore(), Redactor(live=False))
    made = turnlog.open("s", store=store, target=CLAUDE, settings=turnlog.Settings(redact="all"))
    made.user("Port it.")
    made.request(compact=True)
    secret = "sk-ant-api03-" + "Zx9Qw3Er5Ty7Ui1Op2As4Df6Gh8Jk0Lz" * 3
    made.receive(claude(block(f"The key is {secret}, and half is done."), stop="compaction"))
    made.user("Go on.")
    body = made.request().body
    assert "compaction" not in str(kinds(body)) and secret not in str(body)
    assert "and half is done" in str(body)
    assert turnlog.Session(store, store.info("s")).request().body == body


CHANGES: dict[str, Callable[[Session], object]] = {
    "rewind": lambda session: session.rewind(turns=1),
    "clear": lambda session: session.clear(),
    "undo": lambda session: session.undo("compaction"),
    "a summary of more": lambda session: (session.user("More. " * 300), session.user("More."), session.compact(keep=1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_compaction_of_what_was_taken_back_is_not_used(session: Session, change: str) -> None:
    """A summary that comes late would show what the user took back, or hide what nothing covers."""
    assert session.compact(keep=2).decisions
    asked = session.request(compact=True)
    CHANGES[change](session)
    before = session.request().json()
    session.receive(claude(block(), stop="compaction"), asked)
    assert session.request().json() == before


def test_another_provider_is_shown_the_summary_beside_the_task(session: Session) -> None:
    """A summary that can be read would be lost on a switch, and with it everything that it stands for."""
    session.request(compact=True)
    session.receive(claude(block(), stop="compaction"))
    sealed = session.request().json()
    session.switch(CHAT)
    messages = session.request().body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "user"]
    assert messages[1]["content"].startswith("Port part 0") and messages[2]["content"].endswith(SUMMARY)
    session.switch(CLAUDE)
    assert session.request().json() == sealed


def test_another_provider_is_shown_the_originals_of_what_it_cannot_read() -> None:
    """An encrypted compaction would leave another model with nothing."""
    session = turnlog.open("s", store=MemoryStore(), target=GPT)
    session.user("Port it.")
    session.receive(gpt(gpt_said("Half is done.")))
    session.user("Go on.")
    asked = session.request(compact=True)
    assert asked.body.keys() <= {"model", "input", "instructions", "prompt_cache_key", "service_tier"}
    user = {"type": "message", "id": "msg_2", "role": "user", "status": "completed"}
    window = [{**user, "content": [{"type": "input_text", "text": text}]} for text in ("Port it.", "Go on.")]
    session.user("Hurry.")
    answer = gpt(*window, item(), object="response.compaction")
    session.receive({key: value for key, value in answer.items() if key not in ("model", "status")}, asked)
    items = session.request().body["input"]
    assert [one.get("type") or one["role"] for one in items] == ["message", "message", "compaction", "user"]
    assert not turnlog.check(session.request().body)
    other = session.request(CHAT).body["messages"]
    assert [message["content"] for message in other] == ["Port it.", "Half is done.", "Go on.", "Hurry."]
    assert session.request().body["input"] == items
    assert session.explain(target=CHAT).saved == 0 < session.explain().saved


def test_a_compaction_at_a_threshold_stands_before_the_rest_of_the_answer(session: Session) -> None:
    """The API ignores everything before the block: what is sent before it is paid for in tokens of the request, and a
    message recorded while the answer came would be ignored too."""
    session.configure(context_management={"edits": [{"type": "compact_20260112"}]})
    session.request()
    session.user("Wait, one more thing.")
    iterations = [
        {"type": "compaction", "input_tokens": 60_000, "output_tokens": 90},
        {"type": "message", "input_tokens": 300, "output_tokens": 20},
    ]
    session.receive(claude(block(), *said("They pass.", "new thought"), iterations=iterations))
    session.user("Good.")
    assert kinds(session.request().body) == [["compaction"], ["text"], ["text"], ["text"]]
    assert session.usage.input == 3 * 900 + 60_900 and session.usage.output == 3 * 20 + 110
    bill = [record.body for record in session.history() if isinstance(record.body, UsageRecord)][-1]
    assert bill.usage.window == 300 and bill.counted is not None
    assert bill.counted.tokens < session.request().tokens


def test_thinking_of_an_answer_that_begins_with_a_compaction_stays(session: Session) -> None:
    """It is bound to the block, not to what was sent: a loop of tools would lose its plan."""
    session.request()
    session.receive(claude(block(), *said("They pass.", "new thought")))
    session.user("Good.")
    assert kinds(session.request().body) == [["compaction"], ["thinking", "text"], ["text"]]


def test_what_was_said_before_a_block_in_the_same_answer_goes_with_it(session: Session) -> None:
    """The API compacts in the middle of a long answer, too: its beginning is in the summary."""
    session.request()
    session.user("Late.")
    session.receive(claude(*said("First half."), block(), *said("Second half.")))
    body = session.request().body
    assert "First half" not in str(body) and "Second half" in str(body) and "Late." in str(body)
    assert "First half" in session.request(CHAT).json().decode() or SUMMARY in session.request(CHAT).json().decode()


def test_a_compaction_in_messages_that_the_caller_gave_is_shown() -> None:
    """No decision shows it, as the session did not receive it: what it stands for was gone from requests in silence.
    Another provider cannot read it, and the request says so."""
    given = [{"role": "user", "content": "Port part 0."}, item(), {"role": "user", "content": "And the tests?"}]
    with turnlog.open("s", store=MemoryStore(), target=GPT) as session:
        session.extend(given)
        assert session.request().body["input"] == given
        elsewhere = session.request(turnlog.target("openai-chat", "gpt-4o"))
        assert [(loss.kind, loss.records) for loss in elsewhere.losses if loss.records] == [("opaque", (3,))]


def test_undo_why_and_read_back(session: Session) -> None:
    """A compaction by the provider would be the only one that cannot be explained or taken back."""
    before = session.request().json()
    session.request(compact=True)
    answer = session.receive(claude(block(), stop="compaction"))
    found = session.explain()
    assert {account.fate for account in found.accounts.values()} == {"kept", "summarised"}
    assert session.read_back(answer.record.n) == SUMMARY
    first = next(n for n, account in found.accounts.items() if account.fate == "summarised")
    assert session.read_back(first).startswith("Port part 0")
    session.undo()
    assert session.request().json() == before


def test_pinned_messages_and_system_text_stay(session: Session) -> None:
    """What the user pinned has to be in every request."""
    pinned = session.user("Never touch the schema.")
    session.pin(pinned.n)
    session.receive(claude(*said("I will not.")))
    session.user("Go on.")
    session.request(compact=True)
    session.receive(claude(block(), stop="compaction"))
    body = session.request().body
    assert body["system"] == "You port code."
    assert kinds(body)[0] == ["compaction"] and "Never touch the schema." in str(body["messages"][1:])
    assert "Never touch the schema." in str(session.request(CHAT).body)


def test_a_second_compaction_takes_the_place_of_the_first(session: Session) -> None:
    """Two blocks would be sent, or another provider would lose the task that the first one covers."""
    session.request(compact=True)
    session.receive(claude(block("First summary.", "1"), stop="compaction"))
    session.user("Go on.")
    session.receive(claude(*said("Done.")))
    session.user("What next?")
    session.request(compact=True)
    session.receive(claude(block("Second summary.", "2"), stop="compaction"))
    session.user("And now?")
    body = session.request().body
    assert kinds(body) == [["compaction"], ["text"]] and body["messages"][0]["content"][0]["signature"] == "sealed-2"
    other = [message["content"] for message in session.request(CHAT).body["messages"]]
    assert [text.partition(" ")[0] for text in other] == ["You", "Port", "[Summary", "And"]
    assert "First summary" not in str(other) and "Second summary" in str(other)


def test_turnlogs_own_compaction_goes_over_the_providers(session: Session) -> None:
    """The digest would hold nothing of what the provider's block covers, and the block would be sent beside it."""
    session.request(compact=True)
    session.receive(claude(block(), stop="compaction"))
    for i in range(4):
        session.user(f"Write test {i}. " + "Carefully. " * 40)
        session.receive(claude(*said(f"Test {i} is written.")))
    session.user("Go on.")
    assert session.compact(keep=1).decisions
    for target in (CLAUDE, CHAT):
        body = str(session.request(target).body)
        assert "sealed" not in body and "Port part" in body


def test_an_answer_is_for_the_request_that_is_handed_over_with_it(session: Session) -> None:
    """Of two compactions under way, the answer of the first would replace what only the second one was sent."""
    first = session.request(compact=True)
    session.user("In between.")
    session.request(compact=True)
    with pytest.raises(InputError, match="receive\\(answer, request\\)"):
        session.receive(claude(block(), stop="compaction"))
    session.receive(claude(block(), stop="compaction"), first)
    assert "In between." in str(session.request().body)


def test_a_process_that_did_not_ask_knows_what_was_sent(session: Session) -> None:
    """After a crash the answer may still come, by a file or a batch: it must not cover what came since."""
    session.request(compact=True)
    session.user("After it was asked.")
    again = turnlog.Session(session._store, session._store.info("s"))
    again.receive(claude(block(), stop="compaction"))
    assert kinds(again.request().body) == [["compaction"], ["text"]]
    assert "After it was asked." in str(again.request().body)


@pytest.mark.slow
def test_a_session_killed_between_any_two_records_goes_on(session: Session, oracle: ModuleType) -> None:
    """A block without its decision, or a decision without the rest, would lose messages or be refused."""
    session.request(compact=True)
    session.receive(claude(*said("They pass.", "late")))
    session.user("Good.")
    session.receive(claude(block(), stop="compaction"))
    session.receive(claude(block("Again.", "2"), *said("Done.", "newest")))
    session.user("And now?")
    texts = [text_of(record.message) for record in session.history() if record.message is not None]
    for at in range(4, session.history()[-1].n + 1):
        fork = session.fork(f"f{at}", at=at)
        for target in (CLAUDE, CHAT):
            body = fork.request(target).body
            assert errors_of(oracle, target, body) == []
            blocks = [kind for one in kinds(body) for kind in one] if target is CLAUDE else []
            newest = [text for text in texts[: sum(r.message is not None for r in fork.history())] if text][-1:]
            assert blocks.count("compaction") <= 1 and all(text in str(body) for text in newest)


def test_a_compaction_does_not_answer_the_user(session: Session) -> None:
    """The turn would count as completed, and an answer that a crash cut off as answered."""
    session.request(compact=True)
    session.receive(claude(block(), stop="compaction"))
    assert turns_of(session.history())[-1].status == "processing"
    session.receive(claude(*said("They pass.")))
    assert turns_of(session.history())[-1].status == "completed"


def test_a_model_that_cannot_compact_is_not_asked() -> None:
    """The API would refuse the request."""
    session = turnlog.open("s", store=MemoryStore(), target=CHAT)
    session.user("Port it.")
    with pytest.raises(InputError, match="compact"):
        session.request(compact=True)


def test_a_body_counts_from_its_last_compaction_on() -> None:
    """All that the API ignores would be counted: a request of a few hundred tokens looks full."""
    long = [{"role": "user", "content": "Port it. " * 500}, {"role": "assistant", "content": "Done."}]
    rest = [{"role": "assistant", "content": [block()]}, {"role": "user", "content": "Go on."}]
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": rest}
    assert turnlog.count({**body, "messages": [*long, *rest]}).tokens == turnlog.count(body).tokens
    failed = [{"role": "assistant", "content": [block(None)]}, rest[1]]
    assert turnlog.count({**body, "messages": [*long, *failed]}).tokens > 1_000
    items = [{"role": "assistant", "content": "Done. " * 500}, item(), {"role": "user", "content": "Go on."}]
    responses = {"model": "gpt-5", "input": items}
    assert turnlog.count(responses).tokens == turnlog.count({**responses, "input": items[1:]}).tokens < 200


# -- asked for by turnlog itself -----------------------------------------------------------------


class Sender:
    """Sends requests for a compaction, as a program's function would: blocks until it may answer."""

    def __init__(self, answer: Any, *, open_now: bool = True) -> None:
        self.answer, self.bodies = answer, list[dict[str, Any]]()
        self.may_answer = threading.Event()
        if open_now:
            self.may_answer.set()

    def __call__(self, request: turnlog.Request) -> Any:
        self.bodies.append(request.body)
        assert self.may_answer.wait(20)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def filled(summarizer: Any, *, timeout: float = 20.0, until: float = 0.9) -> Session:
    """A session whose requests are as large as `until` of the trigger."""
    settings = turnlog.Settings(summarizer=summarizer, summary_timeout=timeout)
    made = turnlog.open("s", store=MemoryStore(), settings=settings, target=CLAUDE, budget=8_000)
    made.user("Port it.")
    fill(made, until)
    return made


def fill(session: Session, until: float) -> None:
    trigger = session.window.tokens + session.window.available
    while session.window.tokens < until * trigger:
        session.receive(claude(*said("Part ported. " * 30)))
        session.user("Go on. " + "Carefully. " * 60)


def done(session: Session) -> None:
    """Wait for the thread of the sender to end."""
    for thread in threading.enumerate():
        if thread.name == "turnlog-compaction":
            thread.join(20)


def test_a_summary_is_asked_for_ahead_of_need_and_used_when_it_has_come() -> None:
    """Nobody would wait for it, or it would be paid for and not used; what was said meanwhile stays."""
    send = Sender(claude(block(), stop="compaction"), open_now=False)
    session = filled(ProviderSummarizer(send))
    first = session.request()
    assert len(first.body["messages"]) > 3
    session.user("Said meanwhile.")
    session.request()
    send.may_answer.set()
    done(session)
    body = session.request().body
    assert kinds(body) == [["compaction"], ["text"]] and "Said meanwhile." in str(body)
    assert [one["compaction"] for one in send.bodies] == [{"type": "summarize"}]


def test_a_request_that_needs_room_waits_for_the_providers_summary() -> None:
    """The digest would be used although the provider's own summary is a moment away."""
    send = Sender(claude(block(), stop="compaction"))
    session = filled(ProviderSummarizer(send), until=1.05)
    assert kinds(session.request().body)[0] == ["compaction"]


FAULTS = {"exception": OSError("529"), "null": claude(block(None), stop="compaction"), "no answer": {"error": "busy"}}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("otherwise", [None, lambda prompt: "Half is done, says the other."])
def test_the_next_summarizer_is_asked_if_the_provider_fails(fault: str, otherwise: Any) -> None:
    """A request would be refused for want of room, or the same compaction asked for again at every request."""
    send = Sender(FAULTS[fault])
    session = filled(ProviderSummarizer(send, otherwise=otherwise), until=1.05)
    body = session.request().body
    assert "Summary of records" in str(body) and session.request().tokens < 8_000
    assert (otherwise is None) == ("says the other" not in str(body))
    assert len(send.bodies) == 1
    states = [record.body.state for record in session.history() if isinstance(record.body, SummaryRecord)]
    assert states[:2] == ["claimed", "failed"]


def test_a_summary_that_comes_too_late_is_used_from_then_on() -> None:
    """It was paid for, and covers no more than was sent."""
    send = Sender(claude(block(), stop="compaction"), open_now=False)
    session = filled(ProviderSummarizer(send), timeout=0.01)
    session.request()
    fill(session, 1.05)
    assert "Summary of records" in str(session.request().body)
    send.may_answer.set()
    done(session)
    session.request()
    assert session.usage.input > 0 and kinds(session.request().body)[0] in (["compaction"], ["text"])


def test_a_program_that_sends_itself_is_handed_the_request() -> None:
    """A program with a client of its own would have to know when to ask."""
    session = filled("provider", until=0.5)
    assert session.request().compaction is None
    fill(session, 0.9)
    asked = session.request().compaction
    assert asked is not None and asked.body["compaction"] == {"type": "summarize"}
    session.user("Said meanwhile.")
    assert session.request().compaction is asked
    session.receive(claude(block(), stop="compaction"), asked)
    request = session.request()
    assert request.compaction is None and kinds(request.body) == [["compaction"], ["text"]]


def test_only_a_summarizer_is_taken(session: Session) -> None:
    """A mistake would be noticed when the window is full."""
    with pytest.raises(InputError, match="provider"):
        turnlog.Settings(summarizer="anthropic")
    with pytest.raises(InputError, match="send"):
        ProviderSummarizer("provider")  # type: ignore[arg-type]
