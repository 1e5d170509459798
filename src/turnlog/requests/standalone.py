"""turnlog without a session: check, repair or convert one request body.

Bodies are plain dicts in the format of the provider's API. Edits and losses number messages from 1; system text outside
the messages counts as the first message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from .._platform.given import text_given
from ..errors import FormatError
from ..log.messages import Message, Text, ToolResult, media_parts, not_json
from ..log.records import Binding
from ..log.texts import leaf_parts
from ..models.makers import default_model
from ..models.target import Target, target
from ..providers import provider
from ..providers.protocol import Parsed
from ..providers.recognise import provider_of
from ..providers.schema.walk import check_depth
from ..providers.sdk_objects import JSON_VALUES, plain_body
from ..view.bound_reasoning import beginning, bindings_as_given
from ..view.types import Edit, Loss, Shown, starts_turn
from .build import build
from .request import Request
from .translate import RequestPlan, plan


class Violation(Struct, frozen=True, repr_omit_defaults=True):
    """Something that the provider would refuse: a stable `kind`, a sentence (`detail`), the numbers of the messages
    concerned, and the JSON path in the body ("messages[3].content[0]") if known. As a string, it is one sentence."""

    kind: str
    detail: str
    messages: tuple[int, ...] = ()
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


def check(body: Mapping[str, Any], provider: str = "", *, model: str = "", server: str = "") -> list[Violation]:
    """The violations in a request body; `[]` if the provider would accept it.

    `provider` is detected from the body if not given, and `model` defaults to the one in the body. `server` is one that
    imitates Chat Completions (docs/servers.md), recognised by the model if not given. A violation is something that the
    provider would refuse and `repair` would change. Changes that `repair` makes although the
    provider would accept the body are not listed. Raises InputError if no provider is given and none can be detected
    from the body.
    """
    try:
        parsed, prepared = _repaired(body, provider, model, server)
    except FormatError as error:
        return [Violation("format", str(error))]
    return [
        *(Violation(edit.kind, edit.rule or edit.detail, edit.records, edit.path) for edit in prepared.edits),
        *(Violation(loss.kind, loss.detail, loss.records, loss.path) for loss in _broken(parsed, prepared)),
    ]


def _broken(parsed: Parsed, prepared: Request) -> list[Loss]:
    """The losses for which the provider would refuse the original request: content that had to be left out, moved or
    changed."""
    target = prepared.target
    rules = provider(target.provider).rules(target, target.settings)
    turn = _current_turn(prepared.view)

    def is_refused(loss: Loss) -> bool:
        if loss.kind == "signature":  # added to every step, although required only in the current turn
            return not turn.isdisjoint(loss.records)
        if loss.kind == "media_type":  # some providers accept any type that they know
            declared = {media.mime for n in loss.records for media in media_parts(parsed.messages[n - 1])}
            return rules.true_media_types or not declared <= rules.media_mimes
        return True

    return [loss for loss in prepared.losses if is_refused(loss)]


def _current_turn(view: Sequence[Shown]) -> frozenset[int]:
    """The messages from the last user message on."""
    start = max((i for i, shown in enumerate(view) if shown.treatment != "synthetic" and starts_turn(shown)), default=0)
    return frozenset(n for shown in view[start:] for n in shown.records)


def repair(body: Mapping[str, Any], provider: str = "", *, model: str = "", server: str = "") -> Request:
    """The same request, made valid; a valid request is returned equal. The arguments are those of `check`.

    Raises FormatError if `body` is not a request of that provider, InputError if no provider is given and none can be
    detected from the body."""
    return _repaired(body, provider, model, server)[1]


def _repaired(body: Mapping[str, Any], provider: str, model: str, server: str) -> tuple[Parsed, Request]:
    """The parsed body, and the same request made valid, with all changes."""
    with as_json(body) as plain:
        provider = provider or provider_of(plain)
        parsed, prepared = _made_of(plain, provider, model, provider, server)
    if prepared.body == plain:
        return parsed, prepared
    return parsed, prepared.after(_unlisted(parsed, prepared))


_JOINED = {
    "assistant": "answers joined into one message with the calls before them",
    "user": "results of parallel calls put into one message",
}
"""The detail of the edit that joins messages, by their role."""


def _unlisted(parsed: Parsed, prepared: Request) -> tuple[Edit, ...]:
    """The changes that requests of a session do not list, because they correct no mistake there: records may contain
    empty texts, results without an id, and parallel calls or their results in several messages."""
    edits: list[Edit] = []
    emptied = {edit.records for edit in prepared.edits if edit.kind == "empty"}
    told = {edit.records for edit in prepared.edits if edit.kind == "joined"}
    for shown in prepared.view:
        if shown.treatment == "joined" and shown.records not in told:
            edits.append(Edit("joined", _JOINED[shown.message.role], shown.records))
        left = sum(map(_empty_texts, (parsed.messages[n - 1] for n in shown.records)))
        is_listed = shown.records in emptied or shown.treatment not in ("repaired", "joined")
        if not is_listed and left > _empty_texts(shown.message):
            edits.append(Edit("empty", "empty text left out", shown.records))
        nameless = sum(map(_without_id, (parsed.messages[n - 1] for n in shown.records)))
        if shown.treatment in ("repaired", "joined") and nameless > _without_id(shown.message):
            edits.append(Edit("id", "result without an id sent with the id of its call", shown.records))
    return tuple(edits)


def _empty_texts(message: Message) -> int:
    return sum(isinstance(part, Text) and not part.text for part in leaf_parts(message.parts))


def _without_id(message: Message) -> int:
    return sum(isinstance(part, ToolResult) and not part.call_id for part in message.parts)


def convert(body: Mapping[str, Any], provider: str = "", *, to: str, model: str = "", server: str = "") -> Request:
    """The body as a valid request for the provider `to`. `provider` is the provider of the body, detected from it if
    not given; `model` is the model of the new request, `server` as for `check`. Raises UnknownProvider (an InputError)
    for an unknown provider, FormatError if `body` is not a request of its provider, InputError if no provider can be
    detected."""
    with as_json(body) as plain:
        return _made_of(plain, to, model, provider or provider_of(plain), server)[1]


def _made_of(body: Mapping[str, Any], to: str, model: str, source: str, server: str) -> tuple[Parsed, Request]:
    """The parsed body, and the request made from it."""
    speaker = provider(source)
    provider(to)  # raises for an unknown provider before the body is read
    if model is not None:  # None means no model, as a caller without one may pass it
        text_given("model", model)
    check_depth(body)
    parsed = speaker.parse(body)
    destination = aimed(parsed, to, model, server)
    foreign = parsed.configuration.provider != to
    ways = plan(parsed.configuration, destination, complete=foreign, messages=parsed.messages)
    view = shown_messages(parsed)
    return parsed, build(ways, view, parsed.blob, bindings=given_bindings(view, ways))


def given_bindings(view: Sequence[Shown], ways: RequestPlan) -> dict[int, Binding]:
    """The bindings of the reasoning in a body: it is bound to the body as given. {} if the model binds none."""
    if not ways.rules.reasoning_bound:
        return {}
    return bindings_as_given(view, beginning(ways.local.tools), ways.rules.provider)


@contextmanager
def as_json(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A context manager for code that reads a body as JSON. It yields the body with SDK objects converted to dicts. It
    raises FormatError, which says what and where, for any other value that is not JSON; for keys that are not strings,
    only if the code fails because of them."""
    if not isinstance(body, Mapping):
        raise FormatError(f"a request body must be a dict, not {type(body).__name__}")
    plain = plain_body(body)
    try:
        yield plain
    except (AttributeError, TypeError) as error:
        wrong = not_json(plain)
        if wrong is None:
            raise
        raise FormatError(f"{wrong}: {JSON_VALUES}") from error


def aimed(parsed: Parsed, to: str, model: str, server: str = "") -> Target:
    """The target of a conversion; the body's own model is used if the provider stays the same."""
    own_model = parsed.configuration.model if parsed.configuration.provider == to else ""
    return target(to, model or own_model or default_model(to), server=server)


def shown_messages(parsed: Parsed) -> list[Shown]:
    """The messages of a body, numbered from 1."""
    return [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]
