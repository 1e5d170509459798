"""Output of `opencode run --format json`: one event a line, with a part of an answer. The prompt and the model are not
in it."""

from __future__ import annotations

from ..providers.openai_chat import PROVIDER
from .fields import Fields, kind_of
from .opencode_words import NOISE, PARTS, answers, end_answer
from .printed import read_printed
from .protocol import Imported, Origin
from .writing import Handler, SessionWriter


def read(origin: Origin) -> list[Imported]:
    """A session for each that the program worked in."""
    begins = ("step_start", "sessionID")
    return read_printed(origin, "opencode-run", "opencode", PROVIDER, begins, _HANDLERS, _ended, NOISE)


def _part(writer: SessionWriter, event: Fields, line: int) -> None:
    if "role" not in writer.state:
        _begun(writer, event, line)
    event.skip("part", "sessionID")
    part = Fields(event.value.get("part"))
    writer.state["id"] = f"line {line}"
    part.skip("id", "sessionID", "messageID")
    writer.take(part, line, kind_of(part, "type"), PARTS)


def _begun(writer: SessionWriter, event: Fields, line: int) -> None:
    _ended(writer)
    if not writer.log.turn:
        writer.turn(f"line-{line}")
    answers(writer, "", "", "")


def _step(writer: SessionWriter, event: Fields, line: int) -> None:
    _begun(writer, event, line)
    _part(writer, event, line)


def _finished(writer: SessionWriter, event: Fields, line: int) -> None:
    stop = event.inside("part").text("reason")
    _part(writer, event, line)
    writer.state["about"] = {"model": "", "stop": stop}
    _ended(writer)


def _failed(writer: SessionWriter, event: Fields, line: int) -> None:
    error = event.inside("error")
    event.skip("sessionID")
    _ended(writer, error.inside("data").text("message") or error.text("message", "name"))


def _ended(writer: SessionWriter, reason: str = "") -> None:
    """Record the end of an answer, if one is open."""
    if writer.state.pop("role", ""):
        end_answer(writer, Fields(None), reason, is_aborted=False)
    elif reason and writer.log.turn:
        writer.end("failed", reason)


_HANDLERS: dict[str, Handler | None] = {
    "step_start": _step,
    **dict.fromkeys(("text", "reasoning", "tool_use"), _part),
    "step_finish": _finished,
    "error": _failed,
}
