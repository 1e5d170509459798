"""Output of `gemini --output-format stream-json`: one event a line.

Kinds are those of `JsonStreamEvent` in packages/core/src/output/types.ts of google-gemini/gemini-cli. Answers come in
pieces; thoughts are not printed, but billed.
"""

from __future__ import annotations

from ..log.messages import Outcome
from ..log.usage import tokens_billed
from ..providers.google import PROVIDER
from .fields import Fields
from .json_values import mapping
from .parts import called, texts
from .printed import read_printed
from .protocol import Imported, Origin
from .writing import Handler, SessionWriter

GEMINI_USAGE = {"input": "input_tokens", "output": "output_tokens", "cached": "cached"}
"""The figures of the `stats` of gemini-cli: input includes what was cached; thoughts are only in `total_tokens`."""


def read(origin: Origin) -> list[Imported]:
    """A session for each run, or for all runs of one conversation."""
    return read_printed(origin, "gemini-stream-json", "gemini-cli", PROVIDER, ("init", "session_id"), _HANDLERS)


def _began(writer: SessionWriter, event: Fields, line: int) -> None:
    writer.model = event.text("model") or writer.model
    writer.facts("init", {"model": writer.model})


def _said(writer: SessionWriter, event: Fields, line: int) -> None:
    is_answer = event.text("role") == "assistant"
    event.skip("delta")
    if not is_answer:
        writer.turn(f"line-{line}")
    writer.say("assistant" if is_answer else "user", texts(event.text("content")), line, piece=is_answer)


def _called(writer: SessionWriter, event: Fields, line: int) -> None:
    call = called(event.text("tool_id"), event.text("tool_name"), event.get("parameters"))
    writer.say("assistant", [call], line, joined=True)


def _returned(writer: SessionWriter, event: Fields, line: int) -> None:
    outcome: Outcome = "ok" if event.text("status") == "success" else "failed"
    content = event.get("output") or event.inside("error").text("message")
    writer.result(event.text("tool_id"), content, line, outcome=outcome)


def _ended(writer: SessionWriter, event: Fields, line: int) -> None:
    stats = mapping(event.get("stats"))
    models = mapping(stats.get("models"))
    for model, counts in models.items() or [("", stats)]:
        thoughts = tokens_billed(mapping(counts).get("total_tokens")) > sum(
            tokens_billed(mapping(counts).get(key)) for key in ("input_tokens", "output_tokens")
        )
        writer.usage(counts, GEMINI_USAGE, model=model, incomplete=thoughts)
    status = event.text("status")
    writer.end("completed" if status == "success" else "failed", event.inside("error").text("message"))


_HANDLERS: dict[str, Handler | None] = {
    "init": _began,
    "message": _said,
    "tool_use": _called,
    "tool_result": _returned,
    "error": None,
    "result": _ended,
}
