"""Recorded answers of Google's API, one model call a line, as gemini-cli's tests replay them.

A line is `{"method": "generateContent" | "generateContentStream" | ..., "response": ...}` with a whole response or the
list of chunks of a stream; a bare response or list is accepted too. The file has no requests, so the session has only
answers; no times, so records get that of the file; and no id, so the id is made from the file's name and the
first call, because many recordings begin alike.
"""

from __future__ import annotations

from typing import Any

from ..errors import FormatError
from ..log.messages import text_of
from ..log.records import MessageRecord, PartialAnswer, UsageRecord
from ..providers.google import PROVIDER
from ..session.titles import title_from
from .drafting import Drafting
from .json_values import mapping, objects, without
from .protocol import Imported, Origin, hashed_id
from .transcript import Line, Transcript

_ANSWERED = frozenset({"usageMetadata", "modelVersion", "responseId", "error"})
_CANDIDATE = frozenset({"content", "finishReason", "index"})


def read(origin: Origin) -> list[Imported]:
    """The one session of all answers in the file."""
    file = Transcript(origin)
    lines = _calls(file)
    log = Drafting(file)
    titles = [_draft(line, log) for line in lines]
    if not any(isinstance(draft.body, (MessageRecord, PartialAnswer)) for draft in log.drafts):
        expected = 'lines such as {"method": "generateContent", "response": {"candidates": [...]}}'
        raise file.refused("answer of Google's API", f"expected {expected}")
    stem = file.path.stem if file.path else ""
    session_id = hashed_id("gemini-responses", [stem, lines[0].value])
    return [log.imported(session_id, "gemini-responses", stem or next(filter(None, titles), ""))]


def _calls(file: Transcript) -> list[Line]:
    """The recorded calls: one on each line, or a single document with one call or several."""
    value = file.document_or_none()
    if value is None:
        return list(file.lines())
    if any("response" in item for item in objects(value)):
        return [Line(0, item) for item in value]
    return [Line(1, value)]


def _draft(line: Line, log: Drafting) -> str:
    """Add a line to `log`; returns a possible title."""
    call = line.value
    around = call if isinstance(call, dict) and "response" in call else {}
    response, method = around.get("response", call), around.get("method")
    if isinstance(method, str) and not method.startswith("generateContent"):
        log.note(method, call)
        return ""
    try:
        reply = PROVIDER.parse_response(response)
    except FormatError as error:
        log.unreadable(line.number, f"an answer ({error})", call)
        return ""
    log.reply(reply, f"line {line.number}", "a call in it did not come to its end")
    if reply.usage is not None:
        log.add(UsageRecord(provider=PROVIDER.name, model=reply.model, usage=reply.usage, raw=reply.raw_usage))
    chunks = response if isinstance(response, list) else [response]
    rest = [_unread(chunk) for chunk in objects(chunks)]
    for candidate in [candidate for chunk in objects(chunks) for candidate in objects(chunk.get("candidates"))]:
        content = mapping(candidate.get("content"))
        if "parts" not in content:
            beside = {**without(candidate, _CANDIDATE), **without(content, ("role",))}
            log.left_unread(line.number, "", beside, is_empty=True)
    log.note_rest("response", {**without(around, ("method", "response")), "responses": rest})
    return title_from(text_of(reply.message))


def _unread(chunk: dict[str, Any]) -> dict[str, Any]:
    """What the chunk contains beyond the parsed reply: grounding, ratings, other candidates."""
    rest = without(chunk, _ANSWERED)
    if isinstance(rest.get("candidates"), list):
        candidates = objects(rest["candidates"])
        rest["candidates"] = [
            candidate if candidate.get("index") else without(candidate, _CANDIDATE) for candidate in candidates
        ]
    return rest
