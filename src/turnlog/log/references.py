"""References in JSON schemas of tools and answers.

Providers read each `$ref` from the root of the schema. Schemas that were put together of others often have references
that lead nowhere from there: their definitions stand further down, where the inner schema begins (pydantic's `$defs`
below a property), or the references are relative to the inner schema. `with_references` moves such definitions to the
root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from msgspec import Struct
from msgspec.structs import replace

from .messages import Tool

_DEFINITIONS = {"$ref": ("$defs", "definitions"), "ref": ("defs",)}
"""The keywords that hold definitions, by the keyword that refers to them. `ref` is Google's, in typed schemas."""
_NAMES = frozenset({"$defs", "definitions", "defs", "dependentSchemas", "patternProperties", "properties"})
"""Keywords with an object of schemas: its keys are names."""
_VALUES = frozenset({"const", "default", "dependentRequired", "enum", "example", "examples", "required"})
"""Keywords with values that contain no schemas."""
_IN_PLACE = ("allOf", "anyOf", "oneOf", "any_of")
"""Keywords with schemas of the same value."""
_BASES = ("$id", "$schema")
"""Keywords by which a schema inside another says that it is a document of its own."""

Place = tuple[str | int, ...]
"""The keys and indices that lead from the root to a value."""


class MendedReference(Struct, frozen=True):
    """A change of a schema: the path in it (".properties.unit.$ref"), what was done, and the rule that asks for it."""

    path: str
    detail: str
    rule: str


class _Reference(Struct, frozen=True):
    """A reference: the schema that holds it, the keys that lead from there to its text, the text, and the URI that it
    is relative to."""

    at: Place
    keys: Place
    text: str
    base: str


def with_references(schema: Any, keyword: str = "$ref") -> tuple[Any, tuple[MendedReference, ...]]:
    """A schema whose references all lead to a schema, read from its root, and what was changed for that; `schema`
    itself if nothing was. Of `$defs` with the same name the nearest above the reference is meant; a reference that
    leads nowhere or to itself is dropped. What refers to another document is left alone."""
    if not isinstance(schema, dict) or not _may_refer(schema, keyword):
        return schema, ()
    document = _Document(schema, keyword)
    return _Mending(document).done() if document.is_broken() else (schema, ())


def tool_with_references(tool: Tool) -> Tool:
    """A tool whose parameters are as `with_references` returns them; the tool itself if nothing changes."""
    parameters, mended = with_references(tool.parameters)
    return replace(tool, parameters=parameters) if mended else tool


def keys_of(reference: str) -> tuple[str, ...]:
    """The keys in a reference by JSON pointer, such as "#/$defs/Unit"."""
    return tuple(unquote(key).replace("~1", "/").replace("~0", "~") for key in reference.split("/")[1:])


def step(value: Any, key: str) -> Any:
    """The value at one key of a JSON pointer; None if there is none."""
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return None


def _may_refer(value: Any, keyword: str) -> bool:
    if isinstance(value, dict):
        return keyword in value or "mapping" in value or any(_may_refer(inner, keyword) for inner in value.values())
    return isinstance(value, list) and any(_may_refer(inner, keyword) for inner in value)


def _is_anchor(reference: str) -> bool:
    return reference.startswith("#") and reference != "#" and not reference.startswith("#/")


def _pointer(place: Place) -> str:
    escaped = (str(key).replace("~", "~0").replace("/", "~1").replace("%", "%25") for key in place)
    return "#" + "".join(f"/{key}" for key in escaped)


def _path(place: Place) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)


class _Document:
    """A schema with its references, and what each of them means.

    `schemas` are the schemas in it; `definitions` those that stand under `$defs` and the like; `anchors` those with an
    `$anchor`, by its name. `meant` is where each reference leads, None if nowhere; those to other documents are absent.
    """

    def __init__(self, root: dict[str, Any], keyword: str) -> None:
        self.root = root
        self.keyword = keyword
        self.holders = _DEFINITIONS[keyword]
        self.schemas: dict[Place, dict[str, Any]] = {}
        self.definitions: list[Place] = []
        self._references: list[_Reference] = []
        self._ids: dict[str, Place] = {}
        self.anchors: dict[str, Place] = {}
        self._scan(root, (), "", names=False)
        self._below: dict[Place, list[_Reference]] = {}
        self.meant = {
            reference: place for reference in self._references if (place := self._meaning(reference)) != _ELSEWHERE
        }
        self.endless = self._endless()

    def _scan(self, value: Any, at: Place, base: str, *, names: bool) -> None:
        if isinstance(value, list):
            for i, item in enumerate(value):
                self._scan(item, (*at, i), base, names=False)
        if not isinstance(value, dict):
            return
        if not names:
            base = self._opened(value, at, base)
        for key, inner in value.items():
            if not names and key in self.holders and isinstance(inner, dict):
                self.definitions += ((*at, key, name) for name in inner)
            if names or key not in _VALUES:
                self._scan(inner, (*at, key), base, names=not names and key in _NAMES)

    def _opened(self, schema: dict[str, Any], at: Place, base: str) -> str:
        """Note a schema and the references that it holds itself. Returns the URI that they are relative to."""
        self.schemas[at] = schema
        identifier = schema.get("$id")
        if isinstance(identifier, str):
            base = base if identifier.startswith("#") else _joined(base, identifier)[0]
            self._ids.setdefault(base, at)
            self._ids.setdefault(identifier, at)
        for word in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(word), str):
                self.anchors.setdefault(schema[word], at)
        if isinstance(schema.get(self.keyword), str):
            self._references.append(_Reference(at, (self.keyword,), schema[self.keyword], base))
        choice = schema.get("discriminator")
        mapping = choice.get("mapping") if isinstance(choice, dict) else None
        for name, text in mapping.items() if isinstance(mapping, dict) else ():
            if isinstance(text, str) and text.startswith("#"):
                self._references.append(_Reference(at, ("discriminator", "mapping", name), text, base))
        return base

    def _meaning(self, reference: _Reference) -> Place | None:
        here, text = reference.at, reference.text
        above = [here[:n] for n in range(len(here), -1, -1) if here[:n] in self.schemas]  # the nearest first
        base_place = next(
            (place for place in above if any(isinstance(self.schemas[place].get(b), str) for b in _BASES)), ()
        )
        if not text.startswith("#"):
            bases = (reference.base, str(self.root.get("$id", "")), "")  # the last two once the inner `$id` is gone
            addresses = [address for address in (_joined(base, text) for base in bases) if address[0] in self._ids]
            if not addresses:
                return _ELSEWHERE
            base_place, text = self._ids[addresses[0][0]], f"#{addresses[0][1]}"
            above = [base_place]
        if text == "#":
            return base_place
        if _is_anchor(text):
            return self.anchors.get(text[1:], self._ids.get(text))  # until draft 6, `$id` made anchors
        keys = keys_of(text)
        places = above if keys[0] in self.holders else [base_place, (), *above]
        followed = (self.follow(place, keys) for place in places)
        return next((place for place in followed if place is not None), None) or self._named(keys[-1], text)

    def _named(self, name: str, text: str) -> Place | None:
        """The only definition of a name, wherever it stands."""
        names = (name, text.rpartition("/")[2])
        places = [
            place for place in self.definitions if place[-1] in names and isinstance(self.value(place), (dict, bool))
        ]
        return places[0] if len(places) == 1 else None

    def value(self, place: Place) -> Any:
        """The value at a place."""
        value: Any = self.root
        for key in place:
            value = value[key]
        return value

    def follow(self, start: Place, keys: tuple[str, ...]) -> Place | None:
        """The place of the schema that a JSON pointer leads to from `start`."""
        value, place = self.value(start), start
        for key in keys:
            place = (*place, int(key) if isinstance(value, list) and key.isdigit() else key)
            value = step(value, key)
        if place and place[-1] in self.holders and place[:-1] in self.schemas:  # definitions are no schema themselves
            return None
        return place if isinstance(value, (dict, bool)) else None

    def is_broken(self) -> bool:
        """Whether a reference, read from the root, does not lead to what it means."""
        return bool(self.endless) or any(self.misleads(reference) for reference in self.meant)

    def misleads(self, reference: _Reference) -> bool:
        """Whether a reference, read from the root, does not lead to what it means."""
        meant, text = self.meant[reference], reference.text
        if meant is None or not text.startswith("#"):
            return True
        if _is_anchor(text):
            return text[1:] not in self.anchors
        read = self.follow((), keys_of(text))
        return read is None or not self.same(read, meant)

    def same(self, one: Place, other: Place) -> bool:
        """Whether two schemas say the same, with all that they refer to."""
        todo, seen = [(one, other)], set()
        while todo:
            pair = todo.pop()
            if pair[0] == pair[1] or pair in seen:
                continue
            seen.add(pair)
            if self.value(pair[0]) != self.value(pair[1]):
                return False
            for left, right in zip(self._inside(pair[0]), self._inside(pair[1]), strict=True):
                ends = self.meant.get(left), self.meant.get(right)
                if ends[0] is not None and ends[1] is not None:
                    todo.append((ends[0], ends[1]))
                elif ends[0] is not ends[1]:
                    return False
                if (left.at in self.endless) != (right.at in self.endless):  # one of them will lose its reference
                    return False
        return True

    def _inside(self, place: Place) -> list[_Reference]:
        if place not in self._below:
            self._below[place] = [reference for reference in self._references if reference.at[: len(place)] == place]
        return self._below[place]

    def _endless(self) -> set[Place]:
        """The schemas whose reference has to go, so that none leads back to itself in schemas of the same value."""
        schemas = [
            (reference.at, place) for reference, place in self.meant.items() if reference.keys == (self.keyword,)
        ]
        leads = {source: place for source, place in schemas if place is not None}
        closing: set[Place] = set()
        while (source := self._in_circle(leads)) is not None:
            closing.add(source)
            del leads[source]
        return closing

    def _in_circle(self, leads: Mapping[Place, Place]) -> Place | None:
        """A schema whose reference is part of a circle."""
        done: set[Place] = set()
        for start in leads:
            trail = {start: self._next(start, leads)}
            while trail:
                current = next(reversed(trail))
                to = None if current in done else next(trail[current], None)
                if to is None:
                    done.add(current)
                    del trail[current]
                elif to in trail:
                    circle = [*trail][[*trail].index(to) :]
                    after = [*circle[1:], to]
                    return [place for place, other in zip(circle, after, strict=True) if leads.get(place) == other][-1]
                else:
                    trail[to] = self._next(to, leads)
        return None

    def _next(self, at: Place, leads: Mapping[Place, Place]) -> Iterator[Place]:
        """The schemas that apply to the same value as a schema does."""
        if at in leads:
            yield leads[at]
        for word in _IN_PLACE:
            listed = self.schemas.get(at, {}).get(word)
            yield from ((*at, word, i) for i in range(len(listed) if isinstance(listed, list) else 0))


_ELSEWHERE: Place = ("", -1)
"""The meaning of a reference to another document."""


def _joined(base: str, text: str) -> tuple[str, str]:
    """The URI of a reference without its fragment, and the fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, text))
    except ValueError:  # no URI
        return text, ""
    return uri, fragment


_ROOT = "Invalid schema: references are read from the root of the schema."
_NOWHERE = "Invalid schema: reference to component {!r} which was not found in the schema."
_ENDLESS = "Invalid schema: reference to component {!r} is infinitely recursive."


class _Mending:
    """A document whose references are mended.

    `_moved` are the schemas that move to the root, with the keyword and the name that they get there; `_added` are
    those of them that the root did not have before.
    """

    def __init__(self, document: _Document) -> None:
        self._document = document
        self._moved: dict[Place, Place] = {}
        self._added: dict[Place, Place] = {}
        self._made: list[MendedReference] = []
        self._texts: dict[Place, str | None] = {}
        """The new texts of references, by the place of the text; None if it goes."""

    def done(self) -> tuple[dict[str, Any], tuple[MendedReference, ...]]:
        """The mended schema, and what was changed."""
        document = self._document
        for place in document.definitions:
            if len(place) > 2:
                self._move(place, (place[-2], place[-1]))
        for reference, meant in document.meant.items():
            if meant and document.misleads(reference) and self._stands_at(meant)[0] not in document.holders:
                named = next((key for key in reversed(meant) if isinstance(key, str)), "")
                self._move(meant, (document.holders[0], named))
        for reference in document.meant:
            self._refer(reference)
        schema: dict[str, Any] = self._built(document.root, ())
        for place, (holder, name) in self._added.items():
            existing = schema.get(str(holder))
            built = self._built(document.value(place), place)
            schema[str(holder)] = {**(existing if isinstance(existing, dict) else {}), name: built}
        return schema, tuple(self._made)

    def _move(self, place: Place, wanted: Place) -> None:
        """Give a schema a place at the root: that of an equal one, or a new one."""
        document, (holder, name) = self._document, wanted
        existing = document.root.get(str(holder))
        names = set(existing if isinstance(existing, dict) else ())
        taken = {(holder, key): (holder, key) for key in names} | {to: origin for origin, to in self._added.items()}
        to, n = wanted, 1
        while to in taken and not document.same(taken[to], place):
            n += 1
            to = (holder, f"{name}_{n}")
        if to not in taken:
            self._added[place] = to
        self._moved[place] = to
        where = f"moved to {_pointer(to)!r}" if to not in taken else f"left out: {_pointer(to)!r} is the same"
        self._made.append(MendedReference(_path(place), where, _ROOT))

    def _stands_at(self, place: Place) -> Place:
        """Where the schema of a place stands when all is moved."""
        for n in range(len(place), 0, -1):
            if place[:n] in self._moved:
                return (*self._moved[place[:n]], *place[n:])
        return place

    def _refer(self, reference: _Reference) -> None:
        """Decide on the text of a reference."""
        document, text = self._document, reference.text
        meant, here = document.meant[reference], (*reference.at, *reference.keys)
        if meant is None or (reference.at in document.endless and reference.keys == (document.keyword,)):
            self._texts[here] = None
            rule, where = (_NOWHERE, "nowhere") if meant is None else (_ENDLESS, "to itself without end")
            detail = f"dropped: {text!r} leads {where}"
            detail += ", so any value is allowed" if document.schemas[reference.at].keys() == {document.keyword} else ""
            self._made.append(MendedReference(_path(here), detail, rule.format(text)))
            return
        stands = self._stands_at(meant)
        # Of several anchors of one name the first is meant, and another may be the first when all is moved.
        stays = text.startswith("#") and not _is_anchor(text) and tuple(map(str, stands)) == keys_of(text)
        if not stays:
            self._texts[here] = _pointer(stands)
            if meant == stands:  # otherwise its move says so
                detail = f"{text!r} sent as {_pointer(stands)!r}"
                self._made.append(MendedReference(_path(here), detail, _NOWHERE.format(text)))

    def _built(self, value: Any, at: Place) -> Any:
        if isinstance(value, list):
            return [self._placed(item, (*at, i)) for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        document = self._document
        is_schema = at in document.schemas
        built: dict[str, Any] = {}
        for key, inner in value.items():
            here = (*at, key)
            if self._texts.get(here, "") is None:
                continue
            if here in self._texts:
                built[key] = self._texts[here]
            elif is_schema and at and key in document.holders and isinstance(inner, dict):
                continue
            elif is_schema and at and key in _BASES and isinstance(inner, str):
                self._made.append(MendedReference(_path(here), "dropped", _ROOT))
            else:
                built[key] = self._placed(inner, here)
        return built

    def _placed(self, value: Any, at: Place) -> Any:
        """A value as it stands in its old place: a reference if it moved."""
        if at in self._moved:
            return {self._document.keyword: _pointer(self._moved[at])}
        return self._built(value, at)
