"""Thinking that a model binds to what stood ahead of it: never sent behind anything else, and never left out for
nothing. The judge is the shared statement of the rule (`binding.py`)."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from judging import numbered
from thinking_sessions import MODELS, STEPS, STRATEGIES, Life, play
from turnlog.log.messages import Reasoning
from turnlog.log.records import Configuration
from turnlog.providers import provider
from turnlog.testing import damaged_history

EXAMPLES = max(10, settings.default.max_examples // 3) if settings.default else 20
_KINDS = [kind for kind, often in STEPS.items() for _ in range(often)]
_STEPS = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(0, 9_999)), min_size=5, max_size=40)
_QUIET = st.lists(st.tuples(st.sampled_from(("ask", "say", "open anew", "pin")), st.integers(0, 9_999)), max_size=20)


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(MODELS), st.sampled_from(STRATEGIES), st.sampled_from((None, 4_000, 12_000)), st.booleans(), _STEPS
)
def test_no_thinking_is_sent_behind_anything_else(
    binding: ModuleType,
    oracle: ModuleType,
    model: str,
    strategy: str,
    budget: int | None,
    betas: bool,
    steps: list[tuple[str, int]],
) -> None:
    """The API refuses such a request, and every request after it, so that the session is stuck; or a session that was
    killed goes on with other bytes."""
    assert play(binding, model, strategy, budget, steps, oracle=oracle, betas=betas).findings == []


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(MODELS), st.sampled_from(STRATEGIES), _QUIET)
def test_thinking_is_not_left_out_for_nothing(
    binding: ModuleType, oracle: ModuleType, model: str, strategy: str, steps: list[tuple[str, int]]
) -> None:
    """Where nothing ahead of it changed, the model would lose what it thought: in a long tool loop, its plan."""
    life = Life(binding, model, strategy, oracle=oracle)
    life.session.user("Port the billing module.")
    for kind, number in steps:
        number -= number % 7 - 6  # no result comes late
        life.step(kind, number if number % 13 else number + 7)  # the API does not compact
    made = [part for record in life.session.history() if record.message for part in record.message.parts]
    sent = [
        block for message in life.session.request().body["messages"] for block in binding.blocks_of(message["content"])
    ]
    thoughts = [block["thinking"] for block in sent if block["type"] == "thinking"]
    assert thoughts == [part.text for part in made if isinstance(part, Reasoning)]
    assert life.findings == []


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(("auto", "mask", "sliding")),
    st.integers(2_500, 9_000),
    st.lists(st.integers(0, 900), min_size=4, max_size=25),
)
def test_a_history_fitted_again_and_again_carries_no_stale_thinking(
    binding: ModuleType, strategy: str, limit: int, sizes: list[int]
) -> None:
    """An agent that keeps its own list and fits it ahead of each request would be stuck at the first decision."""
    fitter = turnlog.Fitter(max_tokens=limit, strategy=strategy)
    talk = binding.Conversation(MODELS[0])
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Port the billing module."}]
    for n, size in enumerate(sizes):
        fitted = fitter.fit({"model": MODELS[0], "max_tokens": 100, "system": "You port code.", "messages": messages})
        assert talk.sent(fitted.body) == []
        answer = [
            {"type": "thinking", "thinking": f"I think of {n}.", "signature": f"s{n}"},
            {"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {"n": n}},
        ]
        talk.answered(answer)
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"result {n} " + "word " * size}
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": [result]}]


@settings(max_examples=EXAMPLES * 3)
@given(st.integers(0, 1_000_000))
def test_a_repaired_body_carries_no_stale_thinking(binding: ModuleType, seed: int) -> None:
    """A body of a damaged conversation would be refused for thinking that was made behind what repair changed."""
    history = damaged_history(random.Random(seed), "anthropic")
    aim = turnlog.target("anthropic", MODELS[0], thinking={"type": "adaptive"}, max_tokens=4_000)
    configuration = Configuration(provider=aim.provider, model=aim.model, settings=aim.settings)
    speaker = provider("anthropic")
    body = speaker.render(numbered(history.messages), configuration, aim, history.blobs.__getitem__).body
    talk = binding.Conversation(aim.model)
    for n, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            talk.sent({**body, "messages": body["messages"][:n]})
            talk.answered(binding.blocks_of(message["content"]))
    repaired = turnlog.repair(body, "anthropic", model=aim.model)
    assert talk.sent(repaired.body) == []
    again = turnlog.repair(repaired.body, "anthropic", model=aim.model)
    assert (again.body, again.edits) == (repaired.body, ())
