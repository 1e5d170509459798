"""OpenHands conversations, in three forms.

`openhands-events`: a JSON list of events, or `{"trajectory": [...]}`. `openhands-eval-jsonl`: the
`output.jsonl` of an evaluation, an instance a line, each a session. `openhands-sdk-events`: events of
the SDK, one a line or as a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...errors import ImportFailed
from ...log.messages import compact_json, sha256_hex
from ...log.records import Usage, UsageRecord, tokens_billed
from ..answers import add_configuration, task_title, texts_of
from ..drafting import Drafting, without_repeats
from ..lines import Line, json_document, json_lines
from ..protocol import Damage, Imported, Origin, contents, origin_name, session_id_of
from .events import Events, event_id, is_event
from .sdk_events import SdkEvents, is_sdk_event

__all__ = ["IMPORTER", "OpenHands"]

_SOURCE = re.compile(rb'"source"\s*:\s*"(agent|user|environment|hook)"')
_EVENT = re.compile(rb'"(action|observation)"\s*:\s*"\w+"')
_SDK_EVENT = re.compile(rb'"kind"\s*:\s*"\w*(Event|Observation|Action|Condensation)"')
_INSTANCE = re.compile(rb'"instance_id"\s*:')
_EVALUATION = (re.compile(rb'"(test_result|metrics)"\s*:'), re.compile(rb'"(history|instruction|metadata)"\s*:'))


class OpenHands:
    """Imports OpenHands conversations."""

    name = "openhands"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """Events that name their source, or an evaluated instance."""
        if head.lstrip(b"\0 \t\r\n")[:1] not in (b"{", b"["):
            return 0
        if _SOURCE.search(head) and (_EVENT.search(head) or _SDK_EVENT.search(head)):
            return 88
        return 86 if _INSTANCE.search(head) and all(key.search(head) for key in _EVALUATION) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The session of the events, or those of the instances in order."""
        data, file = contents(origin), origin_name(origin)
        warnings: list[Damage] = []
        lines = _lines(data, file, warnings)
        instances = [line for line in lines if _is_instance(line.value)]
        sdk = [line for line in lines if is_sdk_event(line.value)]
        events = [line for line in lines if is_event(line.value) and not is_sdk_event(line.value)]
        known = instances or sdk or events
        if not known:
            reason = f" ({warnings[0].message})" if warnings else ""
            raise ImportFailed(
                f"{file}: no event of OpenHands in it{reason}; "
                "give the list of events, the output.jsonl of an evaluation, or the events of an SDK conversation"
            )
        read = {id(line) for line in known}
        others = [line for line in lines if id(line) not in read]
        if instances:
            sessions = [_instance(line, file, [] if place else warnings) for place, line in enumerate(instances)]
        elif sdk:
            sessions = [_sdk_session(sdk, file, warnings)]
        else:
            sessions = [_session(events, file, warnings)]
        left = tuple(Damage(file, line.number, "left out, none of OpenHands' events") for line in others)
        sessions[0] = replace(sessions[0], warnings=(*sessions[0].warnings, *left))
        return _told_apart(sessions)


IMPORTER = OpenHands()


def _lines(data: bytes, file: str, warnings: list[Damage]) -> list[Line]:
    """The values of the file: items of a list (line 0), or one a line."""
    try:
        value = json_document(data)
    except ValueError:
        return list(json_lines(data, file, warnings))
    if isinstance(value, dict) and isinstance(value.get("trajectory"), list):
        value = value["trajectory"]
    return [Line(0, item) for item in _flat(value)] if isinstance(value, list) else [Line(1, value)]


def _flat(events: Iterable[Any]) -> list[Any]:
    """Events one by one; old evaluations paired each action with its observation."""
    return [one for item in events for one in (item if isinstance(item, list) else [item])]


def _is_instance(value: Any) -> bool:
    return isinstance(value, dict) and "instance_id" in value and ("history" in value or "test_result" in value)


def _imported(session: str, form: str, title: str, log: Drafting) -> Imported:
    return Imported(
        session_id=session_id_of(session),
        format=form,
        title=title,
        drafts=log.finished(),
        blobs=log.blobs,
        warnings=tuple(log.warnings),
        files=(log.file,),
    )


def _session(lines: list[Line], file: str, warnings: list[Damage]) -> Imported:
    log = Drafting(file, warnings)
    events = Events(log)
    for line in lines:
        events.take(line.value)
    # A conversation that went on begins with the same event, whose time nobody else's has.
    return _imported(f"openhands-{_digest(lines[0].value)}", "openhands-events", task_title(events.messages), log)


def _sdk_session(lines: list[Line], file: str, warnings: list[Damage]) -> Imported:
    log = Drafting(file, warnings)
    events = SdkEvents(log)
    events.draft(lines)
    own = event_id(lines[0].value.get("id")) or _digest(lines[0].value)
    return _imported(f"openhands-{own}", "openhands-sdk-events", task_title(events.messages), log)


def _instance(line: Line, file: str, warnings: list[Damage]) -> Imported:
    """The session of one evaluated instance."""
    instance: dict[str, Any] = line.value
    log = Drafting(file, warnings)
    metadata = instance.get("metadata")
    settings = metadata.get("llm_config") if isinstance(metadata, dict) else None
    settings = settings if isinstance(settings, dict) else {}
    history = _flat(instance["history"]) if isinstance(instance.get("history"), list) else []
    model = settings.get("model")
    if not any(is_event(event) and event.get("action") == "system" for event in history):
        add_configuration(model, settings, None, log)
    events = Events(log, f"line {line.number} " if line.number else "", model, settings)
    for event in history:
        if is_event(event):
            events.take(event)
        else:
            log.warn(line.number, "an entry of the history is no event; it is kept as a note")
            log.note("unknown", event)
    said = [text for message in events.messages for text in texts_of(message)]
    held = ("history", "metrics") if history else ("metrics",)
    about = {key: value for key, value in instance.items() if key not in held}
    if isinstance(about.get("instruction"), str) and about["instruction"] in said:
        del about["instruction"]
    log.note("instance", about)
    _metrics(instance.get("metrics"), events.responses, log)
    own = event_id(instance.get("instance_id")) or f"openhands-{_digest(about)}"
    return _imported(own, "openhands-eval-jsonl", task_title(events.messages), log)


def _metrics(metrics: Any, recorded: set[str], log: Drafting) -> None:
    """What the run cost: requests that no event told of, and everything else as a note."""
    if not isinstance(metrics, Mapping):
        if metrics is not None:
            log.note("metrics", metrics)
        return
    rows = metrics.get("token_usages")
    kept: list[Any] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            kept.append(row)
        elif event_id(row.get("response_id")) not in recorded:
            usage = Usage(
                input=tokens_billed(row.get("prompt_tokens")),
                output=tokens_billed(row.get("completion_tokens")),
                cached=tokens_billed(row.get("cache_read_tokens")),
                cache_write=tokens_billed(row.get("cache_write_tokens")),
            )
            log.add(UsageRecord(provider="openai-chat", model=event_id(row.get("model")), usage=usage, raw=row))
        elif tokens_billed(row.get("cache_read_tokens")) or tokens_billed(row.get("cache_write_tokens")):
            kept.append(row)
    rest = without_repeats({**metrics, "token_usages": kept}, (), {})
    if rest is not None:
        log.note("metrics", rest)


def _digest(value: Any) -> str:
    return sha256_hex(compact_json(value).encode("utf-8", "surrogatepass"))[:16]


def _told_apart(sessions: list[Imported]) -> list[Imported]:
    """With a number after ids that come more than once."""
    seen: dict[str, int] = {}
    result: list[Imported] = []
    for session in sessions:
        count = seen[session.session_id] = seen.get(session.session_id, 0) + 1
        if count > 1:
            session = replace(session, session_id=session_id_of(f"{session.session_id}-{count}"))
        result.append(session)
    return result
