"""mini-swe-agent trajectories: `*.traj.json`.

`{"info", "messages", "trajectory_format", "instance_id"}`, or before 1.0 the list of messages
alone. Actions are text of the model, or calls since 2.0; what a request cost stands in the message's
`extra.response`. Keys as written by minisweagent/run/utils/save.py (github.com/SWE-agent/mini-swe-agent).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ImportFailed
from ..log.messages import Message, sha256_hex
from ..log.records import MessageRecord
from ..providers.openai_chat import PROVIDER
from .answers import add_answer, add_configuration, task_title, texts_of, usage_record
from .drafting import Drafting, without_repeats
from .lines import json_document
from .protocol import Imported, Origin, contents, origin_name, session_id_of
from .wire_message import read_message

_FORMAT = "mini-swe-traj"

_KEYS = re.compile(rb'"mini_version"\s*:\s*"|"trajectory_format"\s*:\s*"mini-swe')
_ROLE = re.compile(rb'"role"\s*:\s*"')
_LAST_WORDS = re.compile(rb"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT|mswea_bash_command")
"""What every version's prompt tells the model to write."""
_RUN = frozenset({"config", "mini_version", "mini_swe_agent_version"})
"""Keys of `info` that say what the run was started with; the others say how it ended."""
_CHAT = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"})
_CHAT_ROLES = ("system", "developer", "user", "assistant", "tool")


class MiniSwe:
    """Imports mini-swe-agent trajectories."""

    name = "mini-swe-agent"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """Keys of its own at the top, or its prompt at the head of a list of messages."""
        start = head.lstrip()[:1]
        if start == b"{" and _KEYS.search(head):
            return 90
        if start not in (b"{", b"[") or not _ROLE.search(head):
            return 0
        named = path is not None and path.name.endswith(".traj.json")
        return 60 if named or (start == b"[" and _LAST_WORDS.search(head)) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The one session of the trajectory."""
        data, file = contents(origin), origin_name(origin)
        try:
            document = json_document(data)
        except ValueError as error:
            raise ImportFailed(
                f"{file}: no whole JSON ({error}), which a mini-swe-agent trajectory is; copy the file again"
            ) from error
        run = document if isinstance(document, dict) else {"messages": document}
        messages = run.get("messages")
        if not isinstance(messages, list) or not any(_is_message(wire) for wire in messages):
            raise ImportFailed(
                f"{file}: no messages in it; give the .traj.json that mini-swe-agent wrote, a list `messages` inside"
            )
        log = Drafting(file)
        title = _draft(run, messages, log)
        own = run.get("instance_id")
        return [
            Imported(
                session_id=session_id_of(own if isinstance(own, str) and own else f"mini-swe-{sha256_hex(data)[:16]}"),
                format=_FORMAT,
                title=title,
                drafts=log.finished(),
                blobs=log.blobs,
                warnings=tuple(log.warnings),
                files=(file,),
            )
        ]


IMPORTER = MiniSwe()


def _is_message(wire: Any) -> bool:
    return isinstance(wire, dict) and wire.get("role") in _CHAT_ROLES


def _draft(run: Mapping[str, Any], messages: list[Any], log: Drafting) -> str:
    """Fill `log` from a trajectory; returns the title."""
    info = run.get("info")
    info = info if isinstance(info, dict) else {"info": info}
    about = {key: value for key, value in run.items() if key not in ("info", "messages")}
    about |= {key: value for key, value in info.items() if key in _RUN}
    if about:
        log.note("run", about)
    config = info.get("config")
    model = config.get("model") if isinstance(config, dict) else None
    if isinstance(model, dict):
        add_configuration(model.get("model_name"), model.get("model_kwargs"), None, log)
    for index, wire in enumerate(messages):
        _message(wire, f"messages[{index}]", log)
    said = [draft.body.message for draft in log.drafts if isinstance(draft.body, MessageRecord)]
    end = {key: value for key, value in info.items() if key not in _RUN}
    end = without_repeats(end, [text for message in said for text in texts_of(message)], log.blobs)
    if end is not None:
        log.note("info", end)
    return task_title(said)


def _message(wire: Any, source: str, log: Drafting) -> None:
    """One message: as the response gave it where that says the same, else as the trajectory has it."""
    if not _is_message(wire):
        log.note(str(wire["role"]) if isinstance(wire, dict) and "role" in wire else "unknown", wire, source)
        return
    extra = wire.get("extra")
    extra = dict(extra) if isinstance(extra, dict) else {"extra": extra}
    response = extra.get("response")
    response = response if isinstance(response, dict) else {}
    log.at(extra.get("timestamp") or response.get("created"))
    answer = add_answer(response, source, log) if _says_the_same(response, wire) else None
    if answer is not None:
        message: Message | None = answer.message
        extra.pop("response")
    else:
        message = read_message(PROVIDER, {key: wire[key] for key in wire if key in _CHAT}, log, 0)
        if message is not None:
            model = response.get("model")
            model = model if isinstance(model, str) else ""
            log.add(MessageRecord(message=message, model=model, source=source))
            if isinstance(response.get("usage"), dict):
                log.add(usage_record(model, response["usage"]))
    rest = {key: value for key, value in wire.items() if key not in _CHAT and key != "extra"}
    known = [] if message is None else texts_of(message)
    rest = without_repeats({**rest, **extra}, known, log.blobs)
    if rest is not None:
        log.note("extra", {"source": source, **rest})


def _says_the_same(response: Mapping[str, Any], wire: Mapping[str, Any]) -> bool:
    """Whether the response holds this very message, and not one that was changed afterwards."""
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    said = first.get("message") if isinstance(first, dict) else None
    if wire.get("role") != "assistant" or not isinstance(said, dict):
        return False
    return all((said.get(key) or None) == (wire.get(key) or None) for key in ("content", "tool_calls"))
