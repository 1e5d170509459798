"""Recorded answers of Google's API, one model call a line, as gemini-cli's tests replay them.

A line is `{"method": "generateContent" | "generateContentStream" | ..., "response": ...}` with a
whole response, or the list of those that a stream came as; a bare response or list is taken, too.
The requests are not in the file: the session is the answers alone. None carries a time, so records
get the store's. Nor is there an id: it is made of the file's name and the first call, which many
recordings begin with alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import FormatError, ImportFailed
from ..log.messages import text_of
from ..log.records import MessageRecord, PartialAnswer, UsageRecord
from ..providers.google import PROVIDER
from .drafting import Drafting, title_from, without_repeats
from .lines import Line, json_document, json_lines
from .protocol import Damage, Imported, Origin, contents, hashed_id, origin_name

_METHOD = re.compile(rb'"method"\s*:\s*"(generateContent|generateContentStream|countTokens|embedContent)"')
_RESPONSE = re.compile(rb'"response"\s*:')
_BARE = re.compile(rb'\A\[?\s*\{\s*"candidates"\s*:\s*\[')
_ANSWERED = frozenset({"usageMetadata", "modelVersion", "responseId", "error"})
_CANDIDATE = frozenset({"content", "finishReason", "index"})


class GeminiResponses:
    """Imports recorded answers."""

    name = "gemini-responses"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """Calls with their method, or responses that begin with their candidates."""
        if _METHOD.search(head) and _RESPONSE.search(head):
            return 85
        return 40 if _BARE.match(head.lstrip()) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The one session of all answers in the file."""
        data, file = contents(origin), origin_name(origin)
        warnings: list[Damage] = []
        lines = _calls(data, file, warnings)
        log = Drafting(file, warnings)
        titles = [_draft(line, log) for line in lines]
        if not any(isinstance(draft.body, (MessageRecord, PartialAnswer)) for draft in log.drafts):
            reason = f" ({warnings[0].message})" if warnings else ""
            raise ImportFailed(
                f"{file}: no answer of Google's API in it{reason}; "
                'expected lines such as {"method": "generateContent", "response": {"candidates": [...]}}'
            )
        stem = origin.stem if isinstance(origin, Path) else ""
        return [
            Imported(
                session_id=hashed_id("gemini-responses", [stem, lines[0].value]),
                format=self.name,
                title=stem or next((title for title in titles if title), ""),
                drafts=log.finished(),
                blobs=log.blobs,
                warnings=tuple(log.warnings),
                files=(file,),
            )
        ]


IMPORTER = GeminiResponses()


def _calls(data: bytes, file: str, warnings: list[Damage]) -> list[Line]:
    """The recorded calls: a line each, or one document of one or many."""
    try:
        value = json_document(data)
    except ValueError:
        return list(json_lines(data, file, warnings))
    if isinstance(value, list) and any(isinstance(item, dict) and "response" in item for item in value):
        return [Line(0, item) for item in value]
    return [Line(1, value)]


def _draft(line: Line, log: Drafting) -> str:
    """Fill `log` from a line; returns what could be a title."""
    call = line.value
    wrapped = isinstance(call, dict) and "response" in call
    response = call["response"] if wrapped else call
    method = call.get("method") if wrapped else None
    if isinstance(method, str) and not method.startswith("generateContent"):
        log.note(method, call)
        return ""
    try:
        reply = PROVIDER.parse_response(response)
    except FormatError as error:
        log.warn(line.number, f"an answer could not be read ({error}); it is kept as a note")
        log.note("unreadable", call)
        return ""
    log.blobs.update(reply.blobs)
    if reply.complete and not reply.fragments:
        log.add(
            MessageRecord(
                message=reply.message,
                model=reply.model,
                stop=reply.stop,
                response_id=reply.response_id,
                source=f"line {line.number}",
            )
        )
    else:
        reason = reply.error or "a call in it did not come to its end"
        log.add(PartialAnswer(reply.message, reason, fragments=reply.fragments, model=reply.model))
    if reply.usage is not None:
        log.add(UsageRecord(provider=PROVIDER.name, model=reply.model, usage=reply.usage, raw=reply.raw_usage))
    around = {key: item for key, item in call.items() if key not in ("method", "response")} if wrapped else {}
    rest = without_repeats({**around, "responses": _unread(response)}, (), {})
    if rest is not None:
        log.note("response", rest)
    return title_from(text_of(reply.message))


def _unread(response: Any) -> list[dict[str, Any]]:
    """What the chunks say that the answer does not: grounding, ratings, other candidates."""
    chunks = response if isinstance(response, list) else [response]
    found = []
    for chunk in chunks:
        if not isinstance(chunk, Mapping):
            continue
        rest: dict[str, Any] = {key: item for key, item in chunk.items() if key not in _ANSWERED}
        candidates = chunk.get("candidates")
        if isinstance(candidates, list):
            rest["candidates"] = [
                one if one.get("index") else {key: item for key, item in one.items() if key not in _CANDIDATE}
                for one in candidates
                if isinstance(one, dict)
            ]
        found.append(rest)
    return found
