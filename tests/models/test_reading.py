"""Which models read each other's thinking."""

from __future__ import annotations

import pytest

from turnlog.models.abilities import reads_thinking
from turnlog.models.target import target


@pytest.mark.parametrize(
    ("model", "maker", "reads"),
    [
        ("claude-opus-5-5", "claude-opus-5-5", True),
        ("claude-opus-5-5", "claude-opus-5-5-20261008", True),
        ("us.anthropic.claude-opus-5-5-20261008-v1:0", "claude-opus-5-5", True),
        ("claude-fable-5-1", "claude-opus-5-5@20261008", True),
        ("claude-fable-5-1", "claude-mythos-5-1", True),
        ("claude-opus-5-5", "claude-fable-5-1", False),
        ("claude-sonnet-5-5", "claude-sonnet-5", False),
    ],
)
def test_a_model_reads_its_own_thinking_and_that_of_some_others(model: str, maker: str, reads: bool) -> None:
    """After a switch of model, thinking would be thrown away for nothing, or sent only to be dropped."""
    assert reads_thinking(model, maker, target("anthropic", model).abilities) is reads
