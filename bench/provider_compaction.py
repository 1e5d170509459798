"""Compactions by the provider, through real SDK clients and fake endpoints that judge every request.

    python bench/provider_compaction.py [--shared ../shared] [--turns 8]

Lives scripted sessions with Anthropic (on demand and at a threshold; thinking bound) and OpenAI (in an answer, and
`/responses/compact`): a summary, null content, empty content, a summary in which a secret is replaced, an answer that
comes while the log goes on, another provider after it, and a kill between any two records.

Prints for each scenario the requests that were refused; how far the size of a request is off the count of what the
model reads of it, by the judge's rule; how far the prediction is off the next bill, where one bill since the last
compaction is known; and the cost beside that of all iterations. Exits with 1 if anything was refused or lost, a size is
off by more than 3 %, or the costs differ.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import openai

import turnlog
from turnlog.log.messages import Form, Message, Text, is_compaction
from turnlog.log.records import UsageRecord
from turnlog.log.usage import Usage
from turnlog.models.pricing import cost
from turnlog.redaction import RedactingStore, Redactor
from turnlog.requests.request import Request
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

ROOT = Path(__file__).parent.parent
BETAS = ["compact-2026-09-04", "compact-2026-01-12"]
MOST = 0.03
"""The largest error of a size."""

SECRET = "sk-ant-api03-" + "Zx9Qw3Er5Ty7Ui1Op2As4Df6Gh8Jk0Lz" * 3
CLAUDE = turnlog.target("anthropic", "claude-opus-5-5", thinking={"type": "adaptive"}, max_tokens=4_000)
GPT = turnlog.target("openai-responses", "gpt-5.5", store=False, include=["reasoning.encrypted_content"])
TOOLS = [{"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}]
WORDS = "the billing module reads each invoice, adds its taxes and writes a line of the ledger for it, see".split()


class Scenario:
    """One session and the server that it talks to."""

    def __init__(self, server: Any, target: turnlog.Target, turns: int, *, secrets: bool = False) -> None:
        self.server, self.target, self.turns = server, target, turns
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
        read = turnlog.count(as_read(request), request.target.provider, model=request.target.model).tokens
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
        oracle = importlib.import_module("oracle")
        for at in range(5, self.session.history()[-1].n + 1):
            fork = self.session.fork(f"k{at}", at=at)
            for target, check in ((CLAUDE, oracle.check_anthropic), (GPT, oracle.check_openai_responses)):
                self.findings += check(fork.request(target).body)
            self.findings += lost(fork)

    def report(self, name: str) -> bool:
        refused = [each.errors for each in self.server.requests if each.status != 200]
        bills = [record.body for record in self.session.history() if isinstance(record.body, UsageRecord)]
        own = sum((cost(bill.usage, bill.model).at_least for bill in bills), Decimal())
        theirs = sum((spent(model, usage) for model, usage in self.raw), Decimal())
        size, predicted = max(self.sizes, default=0.0), max(self.predictions, default=0.0)
        good = not refused and not self.findings and own == theirs and size <= MOST
        print(
            f"{'ok  ' if good else 'FAIL'} {name:<47} requests {self.sent:>3}  refused {len(refused)}  sizes off by "
            f"{size:.2%}  predictions by {predicted:.2%}  cost {own:.6f}, of iterations {theirs:.6f}"
        )
        for one in (*refused[:2], *self.findings[:2]):
            print(f"     {one!s:.300}")
        return good


def as_read(request: Request) -> dict[str, Any]:
    """What the model reads of a request, as the judge says."""
    if request.target.provider == "anthropic":
        found: dict[str, Any] = importlib.import_module("binding").effective(request.body)
    else:
        found = importlib.import_module("fake_server")._after_compaction_item(request.body)
    return found


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


def threshold(tokens: int, **more: Any) -> turnlog.Target:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": tokens}, **more}
    return CLAUDE.with_settings(context_management={"edits": [edit]})


def scenarios(start: Callable[[], Any], turns: int) -> Iterator[bool]:
    for name, target in (("anthropic, on demand", CLAUDE), ("openai, compact", GPT)):
        for what, reply in (("summary", {}), ("null or empty", {"compaction": None}), ("empty", {"compaction": ""})):
            if what == "empty" and target is GPT:
                continue  # an item without encrypted content cannot come from the fake endpoint
            life = Scenario(start(), target, turns)
            life.live(0, turns)
            life.compact(**reply)
            life.ask()
            life.live(turns, turns + 4)
            life.kill()
            yield life.report(f"{name}: {what}, killed anywhere")
        life = Scenario(start(), target, turns)
        life.live(0, turns)
        life.compact(lambda life=life: (life.ask(), life.live(90, 92)))
        life.live(turns, turns + 4)
        life.compact()
        life.ask()
        life.kill()
        yield life.report(f"{name}: late, then once more")
        life = Scenario(start(), target, turns)
        life.live(0, turns)
        life.compact()
        other = GPT if target is CLAUDE else CLAUDE
        for aim in (other, target):
            life.session.switch(aim)
            life.target, life.bills = aim, 0
            life.live(turns, turns + 5)
        yield life.report(f"{name}: to another provider and back")
    life = Scenario(start(), CLAUDE, turns, secrets=True)
    life.live(0, turns)
    life.compact(compaction=f"Half is ported; the key is {SECRET}.")
    life.ask()
    life.live(turns, turns + 4)
    life.findings += [SECRET for request in life.server.requests[-4:] if SECRET in str(request.body)]
    life.kill()
    yield life.report("anthropic, on demand: a secret in the summary")
    life = Scenario(start(), threshold(50_000), 3 * turns)
    life.live(0, 60)
    life.kill()
    yield life.report("anthropic, at a threshold")
    life = Scenario(
        start(), GPT.with_settings(context_management=[{"type": "compaction", "compact_threshold": 9_000}]), turns
    )
    life.live(0, 3 * turns)
    life.kill()
    yield life.report("openai, in an answer")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    sys.path.append(str(Path(options.shared) / "oracle"))
    warnings.simplefilter("ignore")
    module = importlib.import_module("fake_server")
    running: list[Any] = []

    def start() -> Any:
        running.append(module.FakeServer(bind_thinking=True, contract=True).start())
        return running[-1]

    try:
        good = [*scenarios(start, options.turns)]
    finally:
        for server in running:
            server.stop()
    print(f"{sum(good)} of {len(good)} scenarios as they should be")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
