"""Plain bodies made to fit: what counts them, and what is told of what went wrong."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.errors import InputError
from turnlog.tokens import counter_for


def body(steps: int) -> dict[str, Any]:
    """A chat of so many exchanges, some 50 tokens each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Port the billing module."}]
    for n in range(steps):
        messages.append({"role": "assistant", "content": f"Step {n} is done. " * 5})
        messages.append({"role": "user", "content": f"Go on with step {n + 1}. " * 5})
    return {"model": "gpt-4o", "messages": messages}


class Silent:
    """Shaped as a counter, but counts nothing."""

    id = "silent:1"

    def text(self, text: str) -> None: ...

    def messages(self, messages: Any, blob: Any = None) -> None: ...

    def tools(self, tools: Any, choice: str = "auto") -> None: ...

    def frame(self, *, system: bool, tools: bool) -> None: ...


@pytest.mark.parametrize(
    ("counter", "told"),
    [
        (5, r"5 is neither: it has no 'id', 'text'"),
        (0, r"0 is neither"),
        (lambda messages: None, "returned None"),
        (lambda messages: -1, "returned -1"),
        (lambda messages: 2.5, "returned 2.5"),
        (Silent(), "'messages' returned None"),
    ],
    ids=["number", "nothing", "none", "negative", "broken", "silent"],
)
def test_what_cannot_count_is_told(counter: Any, told: str) -> None:
    """A bare AttributeError or TypeError from within says nothing of the argument that was wrong; a request that was
    counted as less than nothing would have been taken for one that fits."""
    with pytest.raises(InputError, match=f"a counter is a turnlog.tokens counter, or a function.*{told}"):
        turnlog.fit(body(3), max_tokens=500, counter=counter)


def test_what_counts_is_asked() -> None:
    """A check that took a right counter for a wrong one would take away every counter but the built-in one."""
    assert turnlog.fit(body(3), counter=lambda messages: 7 * len(messages)).tokens == 49
    ours = counter_for("openai-chat", "gpt-4o")
    assert turnlog.fit(body(3), counter=ours).tokens == turnlog.fit(body(3)).tokens


def test_decisions_that_later_ones_hide_wholly_are_no_edits() -> None:
    """A history of hundreds of steps had a change for every summary that was ever merged into the next one."""
    fitter = turnlog.Fitter(max_tokens=900)
    for steps in range(2, 60):
        fitted = fitter.fit(body(steps))
    assert len(fitted.decisions) > 3
    assert [(edit.kind, edit.detail) for edit in fitted.edits] == [("compact", fitted.decisions[-1].why)]


def test_a_summarizer_that_fails_is_told() -> None:
    """Who pays for a model and gets the summaries of none has to hear why."""

    def broken(prompt: str) -> str:
        raise ConnectionError("529 overloaded")

    fitter = turnlog.Fitter(max_tokens=600, strategy="summarise", summarizer=broken)
    fitted = fitter.fit(body(30))
    assert [edit.kind for edit in fitted.edits] == ["compact"]
    assert len(fitted.failures) == 1 and "ConnectionError: 529 overloaded" in fitted.failures[0]
    assert fitter.fit(body(31)).failures[:1] == fitted.failures
    assert turnlog.fit(body(30), max_tokens=600, strategy="summarise").failures == ()
