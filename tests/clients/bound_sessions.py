"""Sessions with models that bind their thinking, lived with a real SDK client against a server that binds it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import anthropic
import openai

import turnlog
from thinking_sessions import MODELS, STEPS, STRATEGIES, TOOLS, Life
from turnlog.models.target import Target

CONTROLS, COMPACT = "thinking-binding-controls-2026-08-01", "compact-2026-09-04"
_OTHER = turnlog.target("openai-chat", "gpt-4o")


class ClientLife(Life):
    """A session whose requests go to a server. `findings` are the requests that it refused, and what else went wrong.
    With `drops`, the API is asked to leave out what it would refuse; `dropped` counts what it says that it left out."""

    def __init__(
        self,
        server: Any,
        binding: ModuleType,
        oracle: ModuleType,
        model: str,
        strategy: str,
        *,
        budget: int | None = None,
        betas: bool = False,
        drops: bool = False,
    ) -> None:
        self.server = server
        self.drops = drops
        self.dropped: list[dict[str, Any]] = []
        self.client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
        self.other = openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0)
        super().__init__(binding, model, strategy, oracle=oracle, budget=budget, betas=betas)

    def target(self, model: str) -> Target:
        """A target of the model, thinking on."""
        aim = super().target(model)
        betas = [*aim.settings.get("betas", ()), COMPACT]
        if not self.drops:
            return aim.with_settings(betas=betas)
        thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        return aim.with_settings(thinking=thinking, betas=[*betas, CONTROLS])

    def _step(self, kind: str, number: int) -> None:
        if kind == "another provider":
            self.session.switch(_OTHER)
            self.session.user(f"Word {self.n}.")
            self._sent(number, {"text": f"Other {self.n}."})
            self.session.switch(self.target(self.model))
        else:
            super()._step(kind, number)

    def ask(self, number: int) -> None:
        """A request, and its answer with thinking and some calls, of which some get their result later."""
        count = number % 4
        calls = [{"name": name, "args": {"p": f"part{self.n}.py"}} for name in [t["name"] for t in TOOLS][:count]]
        text = f"Part {self.n}." + " done" * (number % 60)
        answer = self._sent(number, {"thinking": f"I think of {self.n}.", "text": text, "tool_calls": calls})
        if answer is None:
            return
        for i, call in enumerate(answer.tool_calls):
            if number % 7 == i:
                self.late.append(call.id)
            else:
                self.session.tool_result(call, f"result {self.n} " + "word " * (number % 700))
        if not answer.tool_calls:
            self.session.user(f"Go on with part {self.n + 1}.")

    def ask_to_compact(self, number: int) -> None:
        """A request for a compaction, sent at once; its answer, a summary or a failure, comes later."""
        request = self.session.request(compact=True)
        self.server.script({"compaction": None if number % 7 == 0 else f"Summary {self.n}."})
        self.counts["compactions"] += 1
        try:
            response = self._create(request.target)(**request.body)
        except anthropic.APIStatusError as error:
            self.findings.append(f"step {self.n}: {error}")
            self.unsaid()
        else:
            self.compactions.append((request, response))

    def unsaid(self) -> None:
        """Drop the answer to a request that was refused."""
        self.server._script.clear()

    def _sent(self, number: int, reply: dict[str, Any]) -> turnlog.Answer | None:
        request = self.session.request()
        body = request.body
        self.server.script(reply)
        self.counts["requests"] += 1
        try:
            response = self._create(request.target)(**body, stream=number % 2 == 1)
            answer = self.session.receive(response)
        except (anthropic.APIStatusError, openai.APIStatusError) as error:
            self.findings.append(f"step {self.n}: {error}")
            self.unsaid()
            return None
        if request.target.provider == "anthropic":
            sent = [b for message in body["messages"] for b in self.binding.blocks_of(message["content"])]
            self.counts["blocks"] += sum(block.get("type") == "thinking" for block in sent)
            self.counts["changes told midway"] += sum(message["role"] == "system" for message in body["messages"])
        return answer

    def _create(self, aim: Target) -> Any:
        own = aim.provider == "anthropic"
        return self.client.beta.messages.create if own else self.other.chat.completions.create


def lives(server: Any, binding: ModuleType, oracle: ModuleType, seeds: Sequence[int], steps: int) -> list[ClientLife]:
    """A session of so many steps for each seed."""
    kinds, often = list(STEPS), list(STEPS.values())
    made: list[ClientLife] = []
    for seed in seeds:
        draw = random.Random(seed)
        life = ClientLife(
            server,
            binding,
            oracle,
            draw.choice(MODELS),
            draw.choice(STRATEGIES),
            budget=draw.choice([None, 4_000, 12_000]),
            betas=draw.random() < 0.7,
            drops=draw.random() < 0.2,
        )
        life.session.user("Port the billing module. Leave the database alone.")
        for kind in draw.choices(kinds, often, k=steps):
            life.step(kind, draw.randrange(10_000))
        life.client.close()
        life.other.close()
        made.append(life)
    return made
