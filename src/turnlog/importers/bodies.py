"""Request bodies and message lists of the five APIs, one or several, as JSON or JSON lines.

Accepted are: a body; a list of messages (or Responses items); a list of either; a body inside `{"request": ...}`,
`{"body": ...}` or `{"params": ...}`, as recorded requests and lines of batches have it; and `{"traj": [messages]}`, the
format in which tau-bench writes its runs. Each conversation becomes a separate session. None of these formats has
times, so records get that of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from msgspec import Struct

from ..errors import FormatError, ImportFailed, InputError
from ..log.messages import Message
from ..log.records import Configuration, MessageRecord
from ..log.texts import strings_in
from ..models.makers import PROVIDER_ROWS
from ..providers import PROVIDERS
from ..providers.protocol import Provider
from ..providers.recognise import is_message, provider_of, provider_of_messages
from .drafting import Drafting
from .json_values import within, without, word
from .protocol import Imported, Origin, digest_of, with_own_ids
from .transcript import Line, Transcript
from .unread import ANSWERS, named

# -- apis ------------------------------------------------------------------------------------------
#
# Find request bodies in the JSON values of a file; `providers.recognise` says which API they belong to.

WRAPPERS = ("request", "body", "params")
"""Keys under which recorded requests and lines of batches have the body: `params` in batches of Anthropic."""

_KEYS = frozenset(row.conversation for row in PROVIDER_ROWS.values())
_URLS = ("url", "endpoint")
"""Keys of a wrapper for the URL that the request went to."""


def is_body(value: Any) -> bool:
    """Whether a JSON value looks like a request body.

    Because a file may hold any JSON, an `input` without messages counts only if the value also names a model.
    """
    return bool(api_of(value))


def api_of(value: Any, url: str = "") -> str:
    """The name of the API that a request body is for, sent to `url` if that is known; "" if it does not look like a
    body (`is_body`)."""
    if not isinstance(value, dict) or _KEYS.isdisjoint(value):
        return ""
    try:
        api = provider_of(value, url)
    except InputError:
        return ""
    key = PROVIDERS[api].conversation
    given = value[key]
    is_enough = (bool(given) or key != "input") if isinstance(given, list) else is_message(given)
    return api if is_enough or isinstance(value.get("model"), str) else ""


def wrapped(value: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The request bodies inside a wrapper: the wrapper's key, the body, and the name of its API."""
    url = next(filter(None, (word(value.get(key)) for key in _URLS)), "")
    for key in WRAPPERS:
        if api := api_of(value.get(key), url):
            yield key, value[key], api


_RUN_ID_KEYS = ("task_id", "trial")
_ID_KEYS = ("session_id", "conversation_id", "id")


class _Conversation(Struct, frozen=True):
    """A request body, its place in the file, and the JSON around it. `begins` is the part that stays the same when the
    file grows: the body, or for a bare list the messages up to the first one of the user. The hash of `begins` is the
    id of a session without one."""

    place: str
    line: int
    api: str
    body: dict[str, Any]
    around: dict[str, Any]
    begins: Any
    lines: tuple[int, ...] = ()

    def source(self, index: int) -> str:
        """The place of message `index` in the body; a negative index means system text before the messages."""
        if 0 <= index < len(self.lines):
            return f"line {self.lines[index]}"
        spot = f"{PROVIDERS[self.api].conversation}[{index}]" if index >= 0 else "system"
        return f"{self.place} {spot}".strip()


def sniff(head: bytes, path: Path | None) -> int:
    """Any JSON with a key of a conversation gets a low score; importers of other formats give theirs a higher one."""
    plain = head.lstrip(b"\0 \t\r\n")
    return 20 if plain[:1] in (b"{", b"[") and _marks().search(head) else 0


def read(origin: Origin) -> list[Imported]:
    """One session for each conversation, in order."""
    file = Transcript(origin)
    sessions: list[Imported] = []
    for conversation in list(_conversations(file)):
        log = Drafting(file, beside=bool(sessions))
        _draft(conversation, log)
        session_id = _own_id(conversation.around) or digest_of(conversation.begins)[:12]
        sessions.append(log.imported(session_id, conversation.api))
    if not sessions:
        raise ImportFailed(
            f"{file.name}: no conversation in it, though it {_looks(file)}; expected a request body with messages, "
            "input or contents, a list of messages, or JSON lines of either"
        )
    return with_own_ids(sessions)


def _marks() -> re.Pattern[bytes]:
    """The pattern for a key of a conversation or of a message."""
    keys = "|".join(map(re.escape, dict.fromkeys(row.conversation for row in PROVIDER_ROWS.values())))
    return re.compile(rb'"(%s|role|traj)"\s*:|"type"\s*:\s*"user_input"' % keys.encode())


def _looks(file: Transcript) -> str:
    """A description of a file without a conversation for the error text."""
    for line in file.lines():
        if isinstance(line.value, dict):
            keys = ", ".join(list(line.value)[:8])
            return f"looks like JSON lines or an object with the keys {keys or '(none)'}"
    return f"begins {file.data[:40]!r}"


def _conversations(file: Transcript) -> Iterator[_Conversation]:
    try:
        value = file.document()
    except ValueError:
        lines = list(file.lines())
    else:
        lines = [Line(0, item) for item in value] if isinstance(value, list) else [Line(0, value)]
    messages = [line for line in lines if is_message(line.value)]
    if messages and not any(is_body(line.value) for line in lines):
        yield _of_messages(messages, lines, file)
        return
    for index, line in enumerate(lines):
        place = f"line {line.number}" if line.number else f"[{index}]" if len(lines) > 1 else ""
        conversation = _conversation(line, place)
        if conversation is not None:
            yield conversation
        else:
            file.warn(line.number, f"{place or 'the document'} left out: it contains no conversation", "entry")


def _of_messages(messages: list[Line], lines: list[Line], file: Transcript) -> _Conversation:
    for index, line in enumerate(lines):
        if not is_message(line.value):
            keys = ", ".join(f"`{key}`" for key in line.value) if isinstance(line.value, dict) else ""
            why = (
                f", as none of its keys has a text that is read: {shorten(keys, 200, placeholder=' ...')}"
                if keys
                else ""
            )
            file.warn(line.number, f"entry {index} left out: not a message{why}", "entry")
    values = [line.value for line in messages]
    api = provider_of_messages(values)
    numbers = tuple(line.number for line in messages if line.number)
    body = {PROVIDERS[api].conversation: values}
    return _Conversation("", numbers[0] if numbers else 0, api, body, {}, _to_first_prompt(values), numbers)


def _to_first_prompt(messages: list[Any]) -> list[Any]:
    """The messages up to and including the first one of the user."""
    prompts = (i for i, message in enumerate(messages) if within(message, "role") == "user")
    return messages[: next(prompts, 0) + 1]


def _conversation(line: Line, place: str) -> _Conversation | None:
    value = line.value
    if isinstance(value, list) and value and all(map(is_message, value)):
        api = provider_of_messages(value)
        return _Conversation(place, line.number, api, {PROVIDERS[api].conversation: value}, {}, _to_first_prompt(value))
    if not isinstance(value, dict):
        return None
    if api := api_of(value):
        return _Conversation(place, line.number, api, value, {}, value)
    for key, body, api in wrapped(value):
        return _Conversation(place, line.number, api, body, without(value, (key,)), value)
    run = value.get("traj")
    if isinstance(run, list) and run and is_message(run[0]):
        api = provider_of_messages(run)
        return _Conversation(
            place, line.number, api, {PROVIDERS[api].conversation: run}, without(value, ("traj",)), value
        )
    return None


def _own_id(around: Mapping[str, Any]) -> str:
    run = [f"{key.removesuffix('_id')}-{around[key]}" for key in _RUN_ID_KEYS if isinstance(around.get(key), int)]
    return next(filter(None, (word(around.get(key)) for key in _ID_KEYS)), "-".join(run))


def _draft(conversation: _Conversation, log: Drafting) -> None:
    """Add the conversation of a body to `log`."""
    provider, body = PROVIDERS[conversation.api], conversation.body
    if conversation.around:
        log.note("around", conversation.around)
    _report_answers(conversation, log)
    try:
        parsed = provider.parse(body)
    except FormatError as error:
        log.warn(conversation.line, f"{conversation.place or 'the body'} is damaged ({error}); read message by message")
        messages = _one_by_one(conversation, provider, log)
    else:
        log.blobs.update(parsed.blobs)
        if parsed.configuration != Configuration(provider=provider.name):
            log.add(parsed.configuration)
        wire = body.get(PROVIDERS[conversation.api].conversation)
        leading = len(parsed.messages) - (len(wire) if isinstance(wire, list) else 1)
        messages = [(message, conversation.source(index - leading)) for index, message in enumerate(parsed.messages)]
    for message, source in messages:
        log.add(MessageRecord(message=message, source=source))


def _report_answers(conversation: _Conversation, log: Drafting) -> None:
    """Report answers and second conversations, beside a body or in it, because they are not read."""
    conversation_key = PROVIDERS[conversation.api].conversation
    settings = PROVIDERS[conversation.api].settings
    beside = {key: conversation.around[key] for key in ANSWERS & conversation.around.keys()}
    for key in (ANSWERS | {row.conversation for row in PROVIDER_ROWS.values()}) & conversation.body.keys():
        if (
            key != conversation_key
            and key not in settings
            and conversation.body[key] != conversation.body[conversation_key]
        ):
            beside[key] = conversation.body[key]
    if keys := sorted(key for key, value in beside.items() if any(strings_in(value))):
        place = f"{conversation.place}: " if conversation.place and not conversation.line else ""
        log.warn(conversation.line, f"{place}not read: {named(keys)} beside the conversation")


def _one_by_one(conversation: _Conversation, provider: Provider, log: Drafting) -> list[tuple[Message, str]]:
    """All messages that can be read one by one; the others become notes and warnings."""
    key = PROVIDERS[conversation.api].conversation
    body = conversation.body
    rest = without(body, (key,))
    messages: list[tuple[Message, str]] = []
    try:
        parsed = provider.parse({**rest, key: []})
        log.add(parsed.configuration)
        messages.extend((message, conversation.source(-1)) for message in parsed.messages)
    except FormatError as error:
        log.unreadable(conversation.line, f"settings ({error})", rest)
    wire = body.get(key)
    for index, item in enumerate(wire if isinstance(wire, list) else [wire]):
        try:
            parsed = provider.parse({key: [item]})
        except FormatError as error:
            log.unreadable(conversation.line, f"{key}[{index}] ({error})", item, "entry")
            continue
        log.blobs.update(parsed.blobs)
        messages.extend((message, conversation.source(index)) for message in parsed.messages)
    return messages
