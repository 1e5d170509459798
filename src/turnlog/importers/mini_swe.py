"""mini-swe-agent trajectories: `*.traj.json`.

`{"info", "messages", "trajectory_format", "instance_id"}`, or before 1.0 only the list of messages. Actions are text of
the model, or since 2.0 calls. The usage of a request is in `extra.response` of the message. Keys as written by
minisweagent/run/utils/save.py (github.com/SWE-agent/mini-swe-agent).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.records import MessageRecord
from ..providers.openai_chat import PROVIDER
from .answers import add_answer, add_configuration, add_usage
from .drafting import Drafting
from .json_values import items, mapping, within, without, word
from .messages import read_message
from .protocol import Imported, Origin
from .repeats import texts_of
from .transcript import Transcript

_FORMAT = "mini-swe-traj"

_KEYS = lazy_pattern(rb'"mini_version"\s*:\s*"|"trajectory_format"\s*:\s*"mini-swe')
_ROLE = lazy_pattern(rb'"role"\s*:\s*"')
_PROMPT_WORDS = lazy_pattern(rb"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT|mswea_bash_command")
"""Words in the prompt of every version."""
_RUN = frozenset({"config", "mini_version", "mini_swe_agent_version"})
"""Keys of `info` about the start of the run. The other keys are about its end."""
_CHAT = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"})
_EXIT = "exit"
"""The role of the last message, which says how the run ended, and is sent to no model."""
_CHAT_ROLES = ("system", "developer", "user", "assistant", "tool")


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by its own keys at the top level, or by its prompt at the beginning of a list of messages."""
    start = head.lstrip()[:1]
    if start == b"{" and _KEYS.search(head):
        return 90
    if start not in (b"{", b"[") or not _ROLE.search(head):
        return 0
    named = path is not None and path.name.endswith(".traj.json")
    return 60 if named or (start == b"[" and _PROMPT_WORDS.search(head)) else 0


def read(origin: Origin) -> list[Imported]:
    """The one session of the trajectory."""
    file = Transcript(origin)
    document = file.whole_document("mini-swe-agent trajectory")
    run = document if isinstance(document, dict) else {"messages": document}
    if not any(map(_is_message, items(run.get("messages")))):
        raise file.refused("messages", "give the .traj.json that mini-swe-agent wrote, a list `messages` inside")
    log = Drafting(file)
    _draft(run, log)
    session_id = word(run.get("instance_id")) or f"mini-swe-{file.digest}"
    return [log.imported(session_id, _FORMAT)]


def _is_message(wire: Any) -> bool:
    return isinstance(wire, dict) and wire.get("role") in _CHAT_ROLES


def _draft(run: Mapping[str, Any], log: Drafting) -> None:
    """Add a trajectory to `log`."""
    info = run.get("info")
    info = info if isinstance(info, dict) else {"info": info}
    about = without(run, ("info", "messages")) | {key: value for key, value in info.items() if key in _RUN}
    if about:
        log.note("run", about)
    model = within(info, "config", "model")
    if isinstance(model, dict):
        add_configuration(model.get("model_name"), model.get("model_kwargs"), None, log)
    for index, wire in enumerate(run["messages"]):
        _message(wire, f"messages[{index}]", log)
    texts = [text for message in log.messages for text in texts_of(message)]
    log.note_rest("info", without(info, _RUN), texts)


def _message(wire: Any, source: str, log: Drafting) -> None:
    """Draft a message: from the response if it contains the same message, else from the trajectory."""
    if not _is_message(wire):
        if within(wire, "role") != _EXIT:
            log.left_unread(0, source, mapping(wire), is_empty=True, of="a message that is not of Chat Completions")
        log.note(str(mapping(wire).get("role", "unknown")), wire, source)
        return
    extra = wire.get("extra")
    extra = extra if isinstance(extra, dict) else {"extra": extra}
    response = mapping(extra.get("response"))
    log.at(extra.get("timestamp") or response.get("created"))
    answer = add_answer(response, source, log) if _says_the_same(response, wire) else None
    message = answer.message if answer is not None else None
    if answer is not None:
        extra = without(extra, ("response",))
    else:
        message = read_message(PROVIDER, {key: wire[key] for key in wire if key in _CHAT}, log)
        if message is not None:
            model = word(response.get("model"))
            log.add(MessageRecord(message=message, model=model, source=source))
            if isinstance(response.get("usage"), dict):
                add_usage(model, response["usage"], log)
    rest = {**without(wire, (*_CHAT, "extra")), **extra}
    log.note_rest("extra", rest, texts_of(message), source=source)


def _says_the_same(response: Mapping[str, Any], wire: Mapping[str, Any]) -> bool:
    """Whether the response contains this message and the message was not changed afterwards."""
    answer = within(next(iter(items(response.get("choices"))), None), "message")
    if wire.get("role") != "assistant" or not isinstance(answer, dict):
        return False
    return all((answer.get(key) or None) == (wire.get(key) or None) for key in ("content", "tool_calls"))
