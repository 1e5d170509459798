"""Which provider a request body, or a list of messages, is meant for.

The evidence is weighed in steps, and a later step counts only among the providers that the steps before it leave:

1. the key of the conversation: `messages`, `input` or `contents`;
2. the roles of the messages, and their keys for calls: most messages decide;
3. the types of items and content blocks: most messages decide;
4. declarations and choice of tools;
5. the URL that the request went to, if known;
6. settings and other keys that not all have: most different ones decide. A role with which only some APIs let a
   conversation begin counts as one;
7. the name of the model;
8. cache marks, which gateways accept in other formats too.

If nothing tells them apart, it is the first one in `PROVIDERS`: `messages` with nothing but the user's text are for
Chat Completions, an `input` is for Responses. What a provider gives for this is its `Signs`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from ..errors import InputError
from ..models.makers import PROVIDER_ROWS
from . import PROVIDERS
from .protocol import Provider
from .schema.shapes import ANY, ObjectShape, Shape, Tagged

_Fact = frozenset[str]
"""The names of the providers that a fact speaks for."""

_WRAPPERS = ("body", "request", "params")
"""Keys that hold a request body in recorded requests and in lines of batches."""


@cache
def _providers() -> tuple[Provider, ...]:
    return tuple(PROVIDERS.values())


@cache
def _roles() -> frozenset[str]:
    return frozenset(word for provider in _providers() for word in provider.signs.roles)


class _Request(Struct, frozen=True):
    """What is known about a request."""

    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    url: str = ""


def provider_of(body: Mapping[str, Any], url: str = "") -> str:
    """The name of the provider that a request body is meant for; `url` is where it was sent, if known. Raises
    InputError, which says what was looked at, if the body is in no provider's format."""
    if not isinstance(body, Mapping):
        raise InputError(f"a request body must be a dict, not {type(body).__name__}")
    keys = dict.fromkeys(row.conversation for row in PROVIDER_ROWS.values())
    wrong = []
    for key in sorted((key for key in keys if key in body), key=lambda key: body[key] is None):
        candidates = [PROVIDERS[name] for name, row in PROVIDER_ROWS.items() if row.conversation == key]
        given = body[key]
        accepting = [candidate for candidate in candidates if _accepts(given, candidate)]
        if accepting:
            messages = given if isinstance(given, list) else [given]
            seen = _Request([message for message in messages if isinstance(message, Mapping)], body, url)
            return _most_likely(accepting, seen)
        wrong.append(_unreadable(key, given, candidates))
    raise InputError(f"not a request body: {'; '.join(wrong) or _without_conversation(keys, body)}")


def provider_of_messages(messages: Sequence[Any]) -> str:
    """The name of the provider whose format a list of messages without a body is in."""
    objects = [message for message in messages if isinstance(message, Mapping)]
    readers = [provider for provider in _providers() if any(_is_of(message, provider) for message in objects)]
    return _most_likely(readers or _providers(), _Request(objects, {}))


def is_message(value: Any) -> bool:
    """Whether a JSON value looks like a message, an item or a step of one of the APIs.

    Content blocks without a type belong to another API (Bedrock Converse).
    """
    return any(_is_of(value, provider) for provider in _providers())


# -- what is a message ---------------------------------------------------------------------------


def _accepts(given: Any, speaker: Provider) -> bool:
    """Whether the conversation of a body may be that of a provider: one of its messages is enough, as others may be
    damaged."""
    if isinstance(given, list):
        return not given or any(_is_of(each, speaker, inside=True) for each in given)
    if isinstance(given, Mapping):
        return isinstance(given, speaker.signs.single) and _is_of(given, speaker, inside=True)
    return isinstance(given, speaker.signs.single) or (given is None and bool(speaker.signs.single))


def _is_of(value: Any, speaker: Provider, *, inside: bool = False) -> bool:
    """Whether a value may be a message or an item of a provider's conversation. `inside` a body, the place tells what
    the value is: some providers allow content blocks there, and a wrong role is just a mistake in a message."""
    if not isinstance(value, (dict, Mapping)):
        return False
    signs, kind = speaker.signs, value.get("type")
    if isinstance(kind, str) and "role" not in value:
        if signs.items is not None and _shape_in(signs.items, kind) is not None:
            return True
        if inside and signs.loose_blocks and isinstance(signs.blocks, Tagged) and kind in signs.blocks.shapes:
            return True
    role = value.get("role") or ""
    if not signs.roles or not isinstance(role, str):
        return False
    if not role:
        return "" in signs.roles and bool(value.get(signs.content)) and _holds_content(value, speaker)
    has_role = inside or role.lower() in _roles()
    return has_role and _holds_content(value, speaker)


def _holds_content(message: Mapping[str, Any], speaker: Provider) -> bool:
    """Whether the content of a message is where the provider looks for it. A message without content counts if it has
    nothing else, or a key of the provider's messages."""
    signs = speaker.signs
    if signs.content not in message:
        other = {key for key, value in message.items() if value is not None} - {"role", "id", "type", "status"}
        return not other or not other.isdisjoint(signs.call_keys | signs.message_keys)
    content = message[signs.content]
    blocks = content if isinstance(content, list) else [content] if isinstance(content, Mapping) else []
    if isinstance(signs.blocks, ObjectShape):
        block_keys = signs.blocks.keys.keys()
        is_list = isinstance(content, (list, Mapping))
        return is_list and all(isinstance(block, Mapping) and not block_keys.isdisjoint(block) for block in blocks)
    first = blocks[0] if blocks and isinstance(content, list) else None
    return not isinstance(first, Mapping) or isinstance(first.get("type"), str)


def _unreadable(key: str, given: Any, candidates: Sequence[Provider]) -> str:
    """The sentence that says why the conversation under a key is in the format of none of its providers."""
    names = " or ".join(candidate.name for candidate in candidates)
    if not isinstance(given, (list, Mapping)):
        return f"{key!r} must be a list, not {type(given).__name__}"
    first = given[0] if isinstance(given, list) else given
    what = f"is {type(first).__name__}"
    if isinstance(first, Mapping):
        what = f"has the keys {', '.join(map(str, list(first)[:8])) or '(none)'}"
        content = first.get("content")
        block = content[0] if isinstance(content, list) and content else None
        if isinstance(block, Mapping) and "type" not in block:
            what = f"has content without a `type` (with the keys {', '.join(map(str, list(block)[:8])) or '(none)'})"
    if isinstance(given, Mapping):
        return f"{key!r} is not in the format of {names}: it {what}"
    number = "its message" if len(given) == 1 else f"none of its {len(given)} messages"
    return f"{number} in {key!r} is {'not ' if len(given) == 1 else ''}in the format of {names}: {key}[0] {what}"


def _without_conversation(keys: Iterable[str], body: Mapping[str, Any]) -> str:
    """The sentence that says why a body without a conversation is not a request."""
    inside = [key for key in _WRAPPERS if isinstance(body.get(key), Mapping) and not body[key].keys().isdisjoint(keys)]
    if inside:
        return f"the body is under {inside[0]!r}: give that"
    others = f", only {', '.join(map(str, list(body)[:8]))}" if body else ""
    return f"it has neither {' nor '.join(map(repr, keys))}{others}"


# -- weighing ------------------------------------------------------------------------------------


def _most_likely(candidates: Sequence[Provider], seen: _Request) -> str:
    for facts in _EVIDENCE:
        if len(candidates) == 1:
            break
        candidates = _best(candidates, facts(candidates, seen))
    return candidates[0].name


def _best(candidates: Sequence[Provider], facts: Iterable[_Fact]) -> Sequence[Provider]:
    """The candidates that most facts support."""
    votes: Counter[str] = Counter()
    for fact, times in Counter(facts).items():
        for name in fact:
            votes[name] += times
    most = max(votes[candidate.name] for candidate in candidates)
    return [candidate for candidate in candidates if votes[candidate.name] == most]


def _together(facts: Iterable[_Fact], candidates: Sequence[Provider]) -> _Fact:
    """The providers that all facts of a message support or, if the facts contradict each other, those that any fact
    supports."""
    told = [fact for fact in facts if fact and len(fact) < len(candidates)]
    return frozenset.intersection(*told) or frozenset.union(*told) if told else frozenset()


def _roles_and_calls(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    call_keys = frozenset(key for candidate in candidates for key in candidate.signs.call_keys)
    contents = frozenset(candidate.signs.content for candidate in candidates)
    known: dict[tuple[Any, ...], _Fact] = {}  # most messages of a conversation have the same role and keys
    for message in seen.messages:
        role = message.get("role")
        role = role.lower() if isinstance(role, str) else ""
        held = frozenset(key for key in contents if message.get(key) is not None)
        calls = frozenset(key for key in call_keys & message.keys() if message[key] is not None)
        if (role, held, calls) not in known:
            facts = [frozenset(candidate.name for candidate in candidates if candidate.signs.content in held)]
            if role:
                facts.append(frozenset(candidate.name for candidate in candidates if role in candidate.signs.roles))
            for key in calls:
                facts.append(frozenset(candidate.name for candidate in candidates if key in candidate.signs.call_keys))
            known[role, held, calls] = _together(facts, candidates)
        yield known[role, held, calls]


def _items_and_blocks(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    items = {candidate.name: candidate.signs.items for candidate in candidates if candidate.signs.items is not None}
    loose = {candidate.name: candidate.signs.blocks for candidate in candidates if candidate.signs.loose_blocks}
    blocks = {candidate.name: candidate.signs.blocks for candidate in candidates}
    keys = {candidate.signs.content for candidate in candidates}
    for message in seen.messages:
        facts = [_knowing_item(message, items) or _knowing(message, loose, alone=True)]
        for content in map(message.get, keys):
            facts += [_knowing(block, blocks) for block in (content if isinstance(content, list) else ())]
        yield _together(facts, candidates)


def _tools(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    tables = {candidate.name: candidate.signs.tools for candidate in candidates if candidate.signs.tools is not None}
    tools = seen.body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        yield _knowing(tool, tables)
    yield frozenset(candidate.name for candidate in candidates if candidate.tool_choice(seen.body) is not None)


def _url(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    yield frozenset(
        candidate.name for candidate in candidates if candidate.signs.urls and re.search(candidate.signs.urls, seen.url)
    )


def _settings(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    for key, value in seen.body.items():
        if value is not None:
            yield frozenset(
                candidate.name
                for candidate in candidates
                if key in candidate.settings or key in candidate.signs.settings
            )
    for key in {key for message in seen.messages for key, value in message.items() if value is not None}:
        yield frozenset(candidate.name for candidate in candidates if key in candidate.signs.message_keys)
    first = seen.messages[0].get("role") if seen.messages else None
    if isinstance(first, str):
        role = first.lower()
        yield frozenset(
            candidate.name for candidate in candidates if role in candidate.signs.roles - candidate.signs.later_roles
        )


def _model(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    model = seen.body.get("model")
    if isinstance(model, str):
        name = model.lower()
        yield frozenset(
            candidate.name
            for candidate in candidates
            if candidate.signs.models and re.match(candidate.signs.models, name)
        )


def _cache_marks(candidates: Sequence[Provider], seen: _Request) -> Iterator[_Fact]:
    contents = [message.get("content") for message in seen.messages]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    keys = {key for value in (*seen.messages, *blocks) if isinstance(value, Mapping) for key in value}
    yield frozenset(candidate.name for candidate in candidates if candidate.counted_key in keys)


_EVIDENCE = (_roles_and_calls, _items_and_blocks, _tools, _url, _settings, _model, _cache_marks)


# -- values by type ------------------------------------------------------------------------------


def _shape_in(table: Tagged, kind: str) -> Shape | None:
    """The shape of a type; None if the table does not know it."""
    return table.shapes.get(kind) or (ANY if table.leaves(kind) else None)


def _knowing(value: Any, tables: Mapping[str, Tagged | ObjectShape], *, alone: bool = False) -> _Fact:
    """The providers that know the type of a value and find in it all that they require. Of several, those that know all
    its keys. `alone`: a type that only one provider knows is enough."""
    if not isinstance(value, (dict, Mapping)):
        return frozenset()
    shapes: dict[str, Shape] = {}
    for name, table in tables.items():
        if isinstance(table, ObjectShape):
            if "type" not in value and not table.keys.keys().isdisjoint(value):
                shapes[name] = ANY
            continue
        kind = value.get(table.tag, table.missing)
        shape = _shape_in(table, kind) if isinstance(kind, str) and kind else None
        if shape is not None:
            shapes[name] = shape
    if alone and len(shapes) == 1:
        return frozenset(shapes)
    fitting = {name: shape for name, shape in shapes.items() if _has_required(value, shape)}
    unmarked = value.keys() - {PROVIDERS[name].counted_key for name in tables}
    exact = [
        name for name, shape in fitting.items() if not isinstance(shape, ObjectShape) or unmarked <= shape.keys.keys()
    ]
    return frozenset(exact or fitting)


def _knowing_item(value: Mapping[str, Any], tables: Mapping[str, Tagged]) -> _Fact:
    """The providers that know the type of an item. Answers of other APIs also have the type of a message, but with keys
    that a message does not have."""
    kind = value.get("type")
    if kind is None:
        return frozenset()
    messages = {name: table.shapes[table.missing] for name, table in tables.items() if kind == table.missing}
    if messages:
        return frozenset(
            n for n, shape in messages.items() if isinstance(shape, ObjectShape) and value.keys() <= shape.keys.keys()
        )
    return _knowing(value, tables, alone=True)


def _has_required(value: Mapping[str, Any], shape: Shape) -> bool:
    """Whether a value has the keys that its shape requires, of types that a reader understands."""
    if not isinstance(shape, ObjectShape):
        return True
    for key in shape.must - {"type"}:
        item, inner = value.get(key), shape.keys[key]
        if item is None and key not in shape.nulls:
            return False
        if item is not None and not (inner.reads(item) if key in shape.read else inner.takes(item)):
            return False
    return True
