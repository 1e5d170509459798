"""Sessions with a model that binds its thinking to what stood ahead of it, lived in any order and judged as the API
would."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import turnlog
from turnlog.errors import BudgetError, InputError
from turnlog.log.messages import text_of
from turnlog.models.target import Target
from turnlog.requests.request import Request
from turnlog.stores import MemoryStore
from turnlog.testing import damaged_history
from turnlog.view.fold import select

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-mythos-5-2")
STRATEGIES = ("auto", "mask", "sliding", "summarise", "spec")
BETAS = ("mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15")
TOOLS = [
    {
        "name": name,
        "description": f"To {name}.",
        "parameters": {"type": "object", "properties": {"p": {"type": "string"}}},
    }
    for name in ("read", "write", "look")
]
STEPS = {
    "ask": 14,
    "answer late": 2,
    "say": 3,
    "another model": 1,
    "another provider": 1,
    "tools": 1,
    "system": 1,
    "more system text": 1,
    "budget": 1,
    "strategy": 1,
    "compact": 1,
    "undo": 1,
    "rewind": 1,
    "pin": 1,
    "damage": 1,
    "open anew": 1,
    "ask the API to compact": 2,
    "the compaction comes": 2,
}
"""What may happen, and how often beside the others."""


class Life:
    """One session; `findings` are sentences about what the API would have refused, or what a reopened session would
    have sent otherwise. `counts` says how much was looked at."""

    def __init__(
        self,
        binding: ModuleType,
        model: str,
        strategy: str,
        *,
        oracle: ModuleType,
        budget: int | None = None,
        betas: bool = False,
    ) -> None:
        self.betas = betas
        self.oracle = oracle
        self.talk = binding.Conversation(model)
        self.binding = binding
        self.model = model
        self.store = MemoryStore()
        self.session = turnlog.open("s", store=self.store, target=self.target(model), tools=TOOLS[:1])
        self.session.configure(strategy=strategy, **({} if budget is None else {"budget": budget}))
        self.session.system("You port code.")
        self.tools = TOOLS[:1]
        self.late: list[str] = []
        self.compactions: list[tuple[Request, dict[str, Any]]] = []  # that are under way
        self.findings: list[str] = []
        self.counts: Counter[str] = Counter()
        self.n = 0

    def target(self, model: str) -> Target:
        """A target of the model, thinking on."""
        betas = {"betas": [*BETAS]} if self.betas else {}
        return turnlog.target("anthropic", model, thinking={"type": "adaptive"}, max_tokens=4_000, **betas)

    def step(self, kind: str, number: int) -> None:
        """One step; `number` picks what it is about. What is refused with a reason changes nothing."""
        self.n += 1
        try:
            self._step(kind, number)
        except (InputError, BudgetError):
            self.counts["steps refused"] += 1

    def _step(self, kind: str, number: int) -> None:
        session = self.session
        match kind:
            case "ask":
                self.ask(number)
            case "answer late":
                if self.late:
                    session.tool_result(
                        self.late.pop(number % len(self.late)), f"late {self.n} " + "word " * (number % 300)
                    )
            case "say":
                session.user(f"Word {self.n}. " + "please " * (number % 40))
            case "another model":
                self.model = MODELS[number % len(MODELS)]
                session.switch(self.target(self.model))
            case "another provider":
                session.switch(turnlog.target("openai-chat", "gpt-4o"))
                try:
                    session.user(f"Word {self.n}.")
                    session.request()
                    session.receive({"choices": [{"message": {"role": "assistant", "content": f"Other {self.n}."}}]})
                finally:  # also where the request does not fit
                    session.switch(self.target(self.model))
            case "tools":
                self.tools = _tools(number)
                session.configure(tools=self.tools)
            case "system":
                session.system(f"You port code. Rule {number % 5}.", replace=True)
            case "more system text":
                session.system(f"It is day {self.n}.")
            case "budget":
                session.configure(budget=(3_000, 6_000, 12_000, 100_000)[number % 4])
            case "strategy":
                session.configure(strategy=STRATEGIES[number % len(STRATEGIES)])
            case "compact":
                session.compact(keep=number % 4)
            case "undo":
                session.undo()
            case "rewind":
                session.rewind(turns=1 + number % 2)
            case "pin":
                session.pin(1 + number % session.history()[-1].n)
            case "damage":
                damaged = damaged_history(random.Random(number), "anthropic")
                for data in damaged.blobs.values():
                    self.store.put_blob(data)
                begin = number % max(1, len(damaged.messages))
                session.extend(damaged.messages[begin : begin + 1 + number % 4])
            case "open anew":
                self.session = turnlog.Session(self.store, self.store.info("s"))
            case "ask the API to compact":
                self.ask_to_compact(number)
            case "the compaction comes":
                if self.compactions:
                    request, answer = self.compactions.pop(number % len(self.compactions))
                    session.receive(answer, request)

    def ask_to_compact(self, number: int) -> None:
        """A request for a compaction, judged; its answer, a summary or a failure, comes later."""
        request = self.session.request(compact=True)
        body = request.body
        self.findings += (f"step {self.n}: {error}" for error in self.talk.sent(body))
        content = [_summary(f"{self.n}", failed=number % 7 == 0)]
        self.talk.answered(content)
        iteration = {"type": "compaction", "input_tokens": 900, "output_tokens": 20}
        usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [iteration]}
        head = {"id": f"msg_{self.n}", "type": "message", "role": "assistant", "model": self.model}
        answer = {**head, "content": content, "stop_reason": "compaction", "usage": usage}
        self.compactions.append((request, answer))
        self.counts["compactions"] += 1

    @property
    def system_text(self) -> str:
        """The system text that is in force, as the log says without regard to a target: its first line, as more may
        have been said before the conversation began."""
        return text_of(select(self.session.history())[0][0].message).partition("\n")[0]

    def ask(self, number: int) -> None:
        """A request, judged, and its answer with thinking: with none, one or several calls, of which some get their
        result later."""
        session = self.session
        request = session.request()
        body = request.body
        sent = [block for message in body["messages"] for block in self.binding.blocks_of(message["content"])]
        self.counts["requests"] += 1
        if (told := tools_told(body)) != {tool["name"]: tool for tool in self.tools}:
            self.findings.append(f"step {self.n}: the model is told of the tools {[*told]}")
        # Further system text is at the beginning, too, if everything between was taken back.
        if (text := system_told(body)) != self.system_text:
            self.findings.append(f"step {self.n}: the model is told {text!r}")
        self.counts["blocks"] += sum(block.get("type") == "thinking" for block in sent)
        self.counts["changes told midway"] += sum(message["role"] == "system" for message in body["messages"])
        self.findings += (f"step {self.n}: {error}" for error in self.talk.sent(body))
        self.findings += (f"step {self.n}: sent in vain: {one}" for one in self.talk.dropped)
        self.findings += (f"step {self.n}: {error}" for error in self.oracle.check_anthropic(body))
        if turnlog.Session(self.store, self.store.info("s")).request().json() != request.json():
            self.findings.append(f"step {self.n}: a session that is opened anew sends something else")
        content = [_thought(f"{self.n}.0"), {"type": "text", "text": f"Part {self.n}." + " done" * (number % 60)}]
        if number % 3 == 0:
            content.insert(1, _thought(f"{self.n}.1"))
        if number % 13 == 0:
            content.insert(number % 3, _summary(f"{self.n}.3", failed=number % 5 == 0))
        calls = [f"toolu_{self.n}_{i}" for i in range(number % 4)]
        for i, call in enumerate(calls):
            if i and number % 5 == 0:
                content.append(_thought(f"{self.n}.{i}.2"))
            content.append({"type": "tool_use", "id": call, "name": "read", "input": {"p": f"part{self.n}.py"}})
        answer = {
            "id": f"msg_{self.n}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
        }
        usage = {"input_tokens": 10, "output_tokens": 2}
        session.receive({**answer, "stop_reason": "tool_use" if calls else "end_turn", "usage": usage})
        self.talk.answered(content)
        for i, call in enumerate(calls):
            if number % 7 == i:
                self.late.append(call)
            else:
                session.tool_result(call, f"result {self.n} " + "word " * (number % 700))
        if not calls:
            session.user(f"Go on with part {self.n + 1}.")


def _tools(number: int) -> list[dict[str, Any]]:
    """One of many sets of tools: with some missing, with another description, in another order, seldom with one that
    cannot be added in mid-conversation."""
    tools = [tool for i, tool in enumerate(TOOLS) if number & 1 << i or i == number % len(TOOLS)]
    tools = tools[:: -1 if number % 3 == 0 else 1]
    if number % 5 == 0:
        tools[0] = {**tools[0], "description": f"Another way {number % 4}."}
    if number % 11 == 0:
        tools.append({"type": "web_search_20250305", "name": "web_search"})
    return tools


def tools_told(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tools that the model has at the end of a body, by name, in the words of `TOOLS`."""
    tools = {tool["name"]: tool for tool in body["tools"]}
    told = dict(tools)
    for message in body["messages"]:
        for block in message["content"] if message["role"] == "system" and isinstance(message["content"], list) else []:
            tool = block.get("tool", {})
            if block["type"] == "tool_removal":
                del told[tool["name"]]
            elif block["type"] == "tool_addition":
                added = tool.get("definition") or tools[tool["name"]]
                assert added["name"] not in told
                told[added["name"]] = added
    return {name: _plain(tool) for name, tool in told.items()}


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    if "input_schema" not in tool:
        return tool
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


def system_told(body: dict[str, Any]) -> str:
    """The first line of the last system text that a body has, of those that replace each other."""
    text = body["system"] if isinstance(body["system"], str) else "\n".join(b["text"] for b in body["system"])
    for message in body["messages"]:
        blocks = [{"text": message["content"]}] if isinstance(message["content"], str) else message["content"]
        for block in blocks if message["role"] == "system" else []:
            if (said := block.get("text", "")).startswith("[From here on, this replaces"):
                text = said.partition("\n\n")[2]
    return text.partition("\n")[0]


def _thought(name: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"I think of {name}.", "signature": f"sig-{name}=="}


def _summary(name: str, *, failed: bool) -> dict[str, Any]:
    said = None if failed else f"Summary {name}: the billing module is being ported."
    return {"type": "compaction", "content": said, "signature": f"sum-{name}=="}


def play(
    binding: ModuleType,
    model: str,
    strategy: str,
    budget: int | None,
    steps: Sequence[tuple[str, int]],
    *,
    oracle: ModuleType,
    betas: bool = False,
) -> Life:
    """A session in which these steps were taken. With `betas`, changes of tools are told in mid-conversation."""
    life = Life(binding, model, strategy, oracle=oracle, budget=budget, betas=betas)
    life.session.user("Port the billing module. Leave the database alone.")
    for kind, number in steps:
        life.step(kind, number)
    return life
