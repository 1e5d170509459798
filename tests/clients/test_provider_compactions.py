"""Compactions by the provider, through real SDK clients and fake endpoints that judge every request.

Sessions with Anthropic (on demand and at a threshold; thinking bound) and OpenAI (in an answer, and
`/responses/compact`): a summary, null content, empty content, a summary in which a secret is replaced, an answer that
comes while the log goes on, another provider after it, and a kill between any two records.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

import turnlog
from draws import draws
from turnlog.log.messages import Form, Message, Text, is_compaction
from turnlog.log.records import UsageRecord
from turnlog.log.usage import Usage
from turnlog.models.pricing import cost
from turnlog.redaction import RedactingStore, Redactor
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

Start = Callable[..., Any]
TURNS = draws(4, 8)
BETAS = ["compact-2026-09-04", "compact-2026-01-12"]
MOST = 0.03
"""The largest error of a size."""

SECRET = "sk-ant-api03-" + "Zx9Qw3Er5Ty7Ui1Op2As4Df6Gh8Jk0Lz" * 3
CLAUDE = turnlog.target("anthropic", "claude-opus-5-5", thinking={"type": "adaptive"}, max_tokens=4_000)
GPT = turnlog.target("openai-responses", "gpt-5.5", store=False, include=["reasoning.encrypted_content"])
THRESHOLD = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
TOOLS = [{"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}]
WORDS = "the billing module reads each invoice, adds its taxes and writes a line of the ledger for it, see".split()


class Judges(NamedTuple):
    """The independent judges of requests, of bound thinking, and of what a model reads after a compaction."""

    oracle: ModuleType
    binding: ModuleType
    server: ModuleType


class Scenario:
    """One session and the server that it talks to."""

    def __init__(self, server: Any, judges: Judges, target: turnlog.Target, *, secrets: bool = False) -> None:
        self.server, self.judges, self.target = server, judges, target
        inner = MemoryStore()
        self.store = RedactingStore(inner, Redactor()) if secrets else inner
        self.session = turnlog.open("s", store=self.store, target=target, tools=TOOLS)
        self.draw = random.Random(7)
        text = Text(f"You port code. {self.words(2_000)}")
        self.session.add(Message("system", (text,), form=Form(GPT.provider, "instructions")))
        self.sizes: list[float] = []
        self.predictions: list[float] = []
        self.raw: list[tuple[str, Any]] = []
        self.sent = 0
        self.bills = 0
        self.findings: list[str] = []
        self.claude: Any = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0).beta.messages
        self.gpt: Any = openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0).responses

    def words(self, number: int) -> str:
        return " ".join(self.draw.choice(WORDS) for _ in range(number))

    def send(self, request: Request, **reply: Any) -> Any:
        """The answer of the server to a request, which is what `reply` says."""
        if reply or not request.compacts:
            self.server.script(reply or {"text": self.words(40)})
        self.sent += 1
        if request.target.provider == "anthropic":
            answer = self.claude.create(**request.body, betas=BETAS)
        else:
            answer = (self.gpt.compact if request.compacts else self.gpt.create)(**request.body)
        self.raw.append((request.target.model, answer.usage))
        return answer

    def ask(self, **reply: Any) -> Any:
        """A request and its answer, with calls answered; the prediction is compared with the bill."""
        expected = self.session.window.prediction.tokens
        request = self.session.request()
        read = turnlog.count(self.as_read(request), request.target.provider, model=request.target.model).tokens
        self.sizes.append(abs(request.tokens - read) / read)
        body = {"thinking": self.words(20), "text": self.words(60), **reply}
        answer = self.session.receive(self.send(request, **body))
        usage = answer.usage
        assert usage is not None
        compacted = bool(answer.message.parts) and any(map(is_compaction, answer.message.parts))
        if self.bills > 3 and not compacted:
            self.predictions.append(abs(expected - usage.input) / usage.input)
        self.bills = 3 if compacted and not usage.window else self.bills + 1
        for call in answer.tool_calls:
            self.session.tool_result(call, self.words(300))
        return answer

    def turn(self, number: int, **reply: Any) -> None:
        self.session.user(f"Port part {number}. {self.words(500)}")
        if self.ask(
            **reply, **({"tool_calls": [{"name": "read", "args": {"n": number}}]} if number % 3 == 1 else {})
        ).tool_calls:
            self.ask()

    def live(self, first: int, last: int) -> None:
        for number in range(first, last):
            self.turn(number)

    def compact(self, meanwhile: Callable[[], object] = lambda: None, **reply: Any) -> None:
        """Ask for a compaction; its answer is received after what happens `meanwhile`."""
        self.session.user(f"And then? {self.words(20)}")
        asked = self.session.request(compact=True)
        answer = self.send(asked, **reply)
        meanwhile()
        if self.session.receive(answer, asked).message.parts:
            self.bills = min(self.bills, 3)

    def kill(self) -> None:
        """Judge the requests of a session that begins with the first records, for each number of them."""
        for at in range(5, self.session.history()[-1].n + 1, draws(5, 1)):
            fork = self.session.fork(f"k{at}", at=at)
            self.findings += self.judges.oracle.check_anthropic(fork.request(CLAUDE).body)
            self.findings += self.judges.oracle.check_openai_responses(fork.request(GPT).body)
            self.findings += lost(fork)

    def as_read(self, request: Request) -> dict[str, Any]:
        """What the model reads of a request, as the judge says."""
        if request.target.provider == "anthropic":
            found: dict[str, Any] = self.judges.binding.effective(request.body)
        else:
            found = self.judges.server._after_compaction_item(request.body)
        return found

    def check(self) -> None:
        """What every life must come to: nothing refused or lost, sizes as the model reads them, the cost of all
        iterations."""
        bills = [record.body for record in self.session.history() if isinstance(record.body, UsageRecord)]
        own = sum((cost(bill.usage, bill.model).at_least for bill in bills), Decimal())
        assert [one.errors for one in self.server.requests if one.status != 200] == []
        assert self.findings == []
        assert own == sum((spent(model, usage) for model, usage in self.raw), Decimal())
        assert max(self.sizes) <= MOST


def lost(session: Session) -> list[str]:
    """The newest message of a user, if it is neither in the request nor in a summary."""
    said = [record for record in session.history() if record.message is not None and record.message.role == "user"]
    if not said or session.explain().accounts[said[-1].n].fate == "summarised":
        return []
    texts = [part.text for part in said[-1].message.parts if isinstance(part, Text)]  # type: ignore[union-attr]
    body = str(session.request().body)
    return [f"not sent: {text:.60}" for text in texts if text not in body]


def spent(model: str, usage: Any) -> Decimal:
    """What an answer cost, from the figures of each iteration in the SDK's object."""
    iterations = getattr(usage, "iterations", None) or [usage]
    total = Decimal()
    for each in iterations:
        if hasattr(each, "cache_read_input_tokens"):
            read, wrote = each.cache_read_input_tokens or 0, each.cache_creation_input_tokens or 0
            bill = Usage(each.input_tokens + read + wrote, each.output_tokens, cached=read, cache_write=wrote)
        else:
            details = each.input_tokens_details
            wrote = getattr(details, "cache_write_tokens", 0) or 0
            bill = Usage(each.input_tokens, each.output_tokens, cached=details.cached_tokens, cache_write=wrote)
        total += cost(bill, model).at_least
    return total


@pytest.fixture
def begin(fake_server: Start, oracle: ModuleType, binding: ModuleType) -> Callable[..., Scenario]:
    """Begins a session with a server of its own."""

    def begun(target: turnlog.Target, *, secrets: bool = False) -> Scenario:
        judges = Judges(oracle, binding, importlib.import_module("fake_server"))
        return Scenario(fake_server(bind_thinking=True, contract=True), judges, target, secrets=secrets)

    return begun


Begin = Callable[..., Scenario]
both = pytest.mark.parametrize("target", [CLAUDE, GPT], ids=["anthropic", "openai"])


@pytest.mark.parametrize(
    "target, reply",
    [
        (CLAUDE, {}),
        (CLAUDE, {"compaction": None}),
        (CLAUDE, {"compaction": ""}),
        (GPT, {}),
        (GPT, {"compaction": None}),
    ],
    ids=["anthropic", "anthropic null", "anthropic empty", "openai", "openai null"],
)
def test_a_compaction_on_demand(begin: Begin, target: turnlog.Target, reply: dict[str, Any]) -> None:
    """A request that is refused after it, or a session that a kill leaves stuck, whatever the provider answered."""
    life = begin(target)
    life.live(0, TURNS)
    life.compact(**reply)
    life.ask()
    life.live(TURNS, TURNS + 4)
    life.kill()
    life.check()


@both
def test_a_compaction_that_comes_late_and_then_another(begin: Begin, target: turnlog.Target) -> None:
    """What was said while the provider worked would be covered by a summary that does not know of it."""
    life = begin(target)
    life.live(0, TURNS)
    life.compact(lambda: (life.ask(), life.live(90, 92)))
    life.live(TURNS, TURNS + 4)
    life.compact()
    life.ask()
    life.kill()
    life.check()


@both
def test_another_provider_after_a_compaction_and_back(begin: Begin, target: turnlog.Target) -> None:
    """Neither provider takes the other's compaction."""
    life = begin(target)
    life.live(0, TURNS)
    life.compact()
    for aim in (GPT if target is CLAUDE else CLAUDE, target):
        life.session.switch(aim)
        life.target, life.bills = aim, 0
        life.live(TURNS, TURNS + 5)
    life.check()


def test_a_secret_in_the_summary(begin: Begin) -> None:
    """A key that the provider's summary repeats would be kept, or its block be refused as edited."""
    life = begin(CLAUDE, secrets=True)
    life.live(0, TURNS)
    life.compact(compaction=f"Half is ported; the key is {SECRET}.")
    life.ask()
    life.live(TURNS, TURNS + 4)
    life.kill()
    life.check()
    assert not any(SECRET in (record.raw or b"").decode() for record in life.store.read("s"))
    with turnlog.open("s", store=life.store, read_only=True) as again:
        assert SECRET not in str(again.request(CLAUDE).body)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target, turns",
    [
        (CLAUDE.with_settings(context_management={"edits": [THRESHOLD]}), 60),
        (GPT.with_settings(context_management=[{"type": "compaction", "compact_threshold": 9_000}]), 3 * TURNS),
    ],
    ids=["anthropic at a threshold", "openai in an answer"],
)
def test_a_compaction_in_the_midst(begin: Begin, target: turnlog.Target, turns: int) -> None:
    """A compaction that nobody asked for stands in an answer: what is sent after it, and what it costs."""
    life = begin(target)
    life.live(0, turns)
    assert any(is_compaction(part) for one in life.session.history() if one.message for part in one.message.parts)
    life.kill()
    life.check()
