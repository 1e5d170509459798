"""OpenHands conversations, in three forms.

`openhands-events`: a JSON list of events, or `{"trajectory": [...]}`. `openhands-eval-jsonl`: the `output.jsonl` of an
evaluation, with one instance a line; each instance becomes a session. `openhands-sdk-events`: events of the SDK, one a
line or as a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...log.records import UsageRecord
from ...log.usage import tokens_billed
from ...providers.openai_chat import PROVIDER
from ..answers import add_configuration
from ..drafting import Drafting, billed
from ..json_values import items, mapping, within, without
from ..protocol import Damage, Imported, Origin, digest_of, hashed_id, with_damage, with_own_ids
from ..repeats import texts_of
from ..transcript import Line, Transcript
from .events import OpenHandsEvents, event_id, is_event
from .sdk_events import COUNTS, SdkEvents, is_sdk_event


def read(origin: Origin) -> list[Imported]:
    """The session of the events, or the sessions of the instances in order."""
    file = Transcript(origin)
    lines = _lines(file)
    instances = [line for line in lines if _is_instance(line.value)]
    sdk = [line for line in lines if is_sdk_event(line.value)]
    events = [line for line in lines if is_event(line.value) and not is_sdk_event(line.value)]
    chosen = instances or sdk or events
    if not chosen:
        forms = "the list of events, the output.jsonl of an evaluation, or the events of an SDK conversation"
        raise file.refused("event of OpenHands", f"give {forms}")
    logs = [Drafting(file, beside=bool(place), edits=True) for place in range(len(instances) or 1)]
    if instances:
        sessions = list(map(_instance, instances, logs))
    else:
        sessions = [_sdk_session(sdk, logs[0]) if sdk else _session(events, logs[0])]
    read = {id(line) for line in chosen}
    others = [line.number for line in lines if id(line) not in read]
    left = (Damage(file.name, number, "left out: not an event of OpenHands", "entry") for number in others)
    return with_own_ids([with_damage(sessions[0], *left), *sessions[1:]])


def _lines(file: Transcript) -> list[Line]:
    """The values of the file: the items of a list (with line 0), or one value a line."""
    try:
        value = file.document()
    except ValueError:
        return list(file.lines())
    events = within(value, "trajectory") if isinstance(within(value, "trajectory"), list) else value
    return [Line(0, item) for item in _flat(events)] if isinstance(events, list) else [Line(1, value)]


def _flat(events: Iterable[Any]) -> list[Any]:
    """The events as a flat list; old evaluations paired each action with its observation."""
    return [event for item in events for event in (item if isinstance(item, list) else [item])]


def _is_instance(value: Any) -> bool:
    return isinstance(value, dict) and "instance_id" in value and ("history" in value or "test_result" in value)


def _session(lines: list[Line], log: Drafting) -> Imported:
    events = OpenHandsEvents(log)
    for line in lines:
        events.take(line.value)
    # A conversation that continues has the same first event, whose time is unique.
    return log.imported(hashed_id("openhands", lines[0].value), "openhands-events")


def _sdk_session(lines: list[Line], log: Drafting) -> Imported:
    SdkEvents(log).draft(lines)
    first_id = event_id(lines[0].value.get("id")) or digest_of(lines[0].value)[:16]
    return log.imported(f"openhands-{first_id}", "openhands-sdk-events")


def _instance(line: Line, log: Drafting) -> Imported:
    """The session of one evaluated instance."""
    instance: dict[str, Any] = line.value
    settings = mapping(within(instance, "metadata", "llm_config"))
    history = _flat(items(instance.get("history")))
    model = settings.get("model")
    if not any(is_event(event) and event.get("action") == "system" for event in history):
        add_configuration(model, settings, None, log)
    events = OpenHandsEvents(log, f"line {line.number} " if line.number else "", model, settings)
    for event in history:
        if is_event(event):
            events.take(event)
        else:
            log.warn(line.number, "an entry of the history is not an event; it is kept as a note", "entry")
            log.note("unknown", event)
    texts = [text for message in log.messages for text in texts_of(message)]
    about = without(instance, ("history", "metrics") if history else ("metrics",))
    if isinstance(about.get("instruction"), str) and about["instruction"] in texts:
        del about["instruction"]
    log.note("instance", about)
    _metrics(instance.get("metrics"), events.responses, log)
    session_id = event_id(instance.get("instance_id")) or hashed_id("openhands", about)
    return log.imported(session_id, "openhands-eval-jsonl")


def _metrics(metrics: Any, recorded: set[str], log: Drafting) -> None:
    """Record the usage of requests that no event reported; everything else becomes a note."""
    if not isinstance(metrics, dict):
        if metrics is not None:
            log.note("metrics", metrics)
        return
    noted_rows: list[Any] = []
    for row in items(metrics.get("token_usages")):
        if not isinstance(row, dict):
            noted_rows.append(row)
        elif event_id(row.get("response_id")) not in recorded:
            log.add(UsageRecord(PROVIDER.name, event_id(row.get("model")), billed(row, COUNTS), row))
        elif tokens_billed(row.get("cache_read_tokens")) or tokens_billed(row.get("cache_write_tokens")):
            noted_rows.append(row)
    log.note_rest("metrics", {**metrics, "token_usages": noted_rows})
