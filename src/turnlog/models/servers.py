"""Servers that imitate OpenAI's Chat Completions API: what each accepts, answers and leaves out.

`data/servers.json` has a row for each server, written by hand, with a source. A user's own file of models may have rows
of its own under `servers` (docs/servers.md). No code depends on a server's name: all that differs is a field.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from .._platform.msgspec_init import ready
from ..errors import InputError
from .catalog import VARIABLE, own_entries, own_file

_ROWS = Path(__file__).parent / "data" / "servers.json"  # importlib.resources takes 10 ms to import


class Range(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The numbers that a setting may have. `above`: the lowest itself is not allowed."""

    low: float | None = None
    high: float | None = None
    above: bool = False

    def fit(self, value: float) -> bool:
        """Whether a value is allowed."""
        low_enough = self.high is None or value <= self.high
        high_enough = self.low is None or (value > self.low if self.above else value >= self.low)
        return low_enough and high_enough


class Server(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A server that imitates Chat Completions. The defaults are OpenAI's own rules.

    Names of models are regular expressions that are searched in the name, in any case.
    """

    # -- how it is recognised ----------------------------------------------------------------------

    title: str = ""
    """Its name for people."""

    source: str = ""
    """Where the facts of the row come from."""

    words: tuple[str, ...] = ()
    """Other names by which it may be given."""

    hosts: tuple[str, ...] = ()
    """Ends of the host names at which it is found; `*` stands for anything."""

    port: int = 0
    """Its usual port on the user's own machine; 0 for a server that is found elsewhere."""

    models: str = ""
    """Names of models that tell that a target without a known address means this server; "" if none do."""

    seller: str = ""
    """Its name in the table of prices; "" if it sells nothing."""

    # -- conversations -----------------------------------------------------------------------------

    own_api: bool = False
    """Whether it is OpenAI's own software: then OpenAI's rules for its models hold too."""

    templates: bool = False
    """Whether it uses the model's own chat template, so that the rules of the template hold (`Abilities`)."""

    roles: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool", "function")
    """The roles that a message may have. Text of `developer` becomes system text, others a user's."""

    one_system: bool = False
    """Whether there may be only one system message, the first."""

    system: bool = True
    """Whether system text is accepted at all."""

    alternates: tuple[Literal["user", "assistant", "results"], ...] = ()
    """Roles of which two messages in a row are refused. `results`: a user's message directly after results."""

    needs_user: bool = False
    """Whether a request must begin with a user's message, apart from system text."""

    ends_with_user: bool = False
    """Whether the last message must not be an answer."""

    tool_messages: bool = True
    """Whether calls and results may be sent; else they are shown as texts."""

    empty: bool = True
    """Whether a message without content is accepted."""

    texts: tuple[Literal["system", "user", "assistant", "tool"], ...] = ()
    """The roles whose contents must be one string, unless they have media."""

    names: bool = True
    """Whether messages may have a `name`."""

    message_keys: tuple[str, ...] | None = None
    """The keys that a message may have, besides `role` and `content`; None: any."""

    part_keys: tuple[str, ...] | None = None
    """The keys that a part of a content may have, besides `type`; None: any."""

    call_keys: tuple[str, ...] | None = None
    """The keys that a call may have; None: any."""

    call_types: tuple[str, ...] = ()
    """Further types of calls that are sent as they came, for example of tools that the server runs."""

    # -- tools -------------------------------------------------------------------------------------

    call_ids: str = ""
    """A pattern for ids of calls; "" for OpenAI's rule."""

    parses_arguments: bool = False
    """Whether arguments of calls are read as a JSON object, so that other texts are refused."""

    tool_names: str = ""
    """A pattern for names of tools; "" for OpenAI's rule."""

    tool_parameters: bool = False
    """Whether each tool needs a schema, also one without parameters."""

    custom_tools: bool = True
    """Whether tools whose input is free text are accepted, for models that accept them."""

    any_of_alone: bool = False
    """Whether a schema with `anyOf` may not have a `type` beside it."""

    tools_by_template: bool = False
    """Whether tools are refused if the model's template has no place for them (`Abilities.tool_template`)."""

    tool_choice: Literal["any", "words", "auto"] = "any"
    """The tool choice that is accepted: any, only `auto`, `none` and `required`, or none that forces a call."""

    tool_choice_thinking: Literal["any", "words", "auto"] = "any"
    """The same while the model thinks."""

    # -- reasoning ---------------------------------------------------------------------------------

    reasoning: Literal["", "as_received", "reasoning", "reasoning_content", "reasoning_text"] = ""
    """The key of an answer under which its reasoning goes back; "" if none goes back."""

    thinks: str = ""
    """Models that think unless the setting `thinking` says otherwise."""

    reasoning_of_calls: str | None = None
    """What stands for the reasoning of an answer with calls that has none, while the model thinks; None if none has
    to."""

    details: dict[str, str] = {}
    """The formats of `reasoning_details` that go back, by the names of models: patterns for both."""

    signed_details: str = ""
    """The formats of `reasoning_details` whose texts are refused without a signature; "" for none."""

    opaque_keys: tuple[str, ...] = ()
    """Further keys of its answers that go back, for example a signature."""

    thinking_parts: bool = False
    """Whether reasoning goes back as content of the type `thinking`."""

    thinks_first: str = ""
    """Models that refuse calls of an open step without their reasoning if reasoning is asked for."""

    signature: Literal["", "call", "details"] = ""
    """Where the signature of the first call of a step stands, for models that need one: in the call, or in
    `reasoning_details`."""

    # -- settings ----------------------------------------------------------------------------------

    body_keys: tuple[str, ...] | None = None
    """The top-level keys of a request, besides `model` and `messages`; None: any."""

    refused: tuple[str, ...] = ()
    """Settings that are refused."""

    refused_thinking: tuple[str, ...] = ()
    """Settings that are refused while the model thinks."""

    renamed: dict[str, str] = {}
    """Settings that have another name here, by OpenAI's name."""

    ranges: dict[str, Range] = {}
    """The numbers that settings may have."""

    only: dict[str, tuple[Any, ...]] = {}
    """Settings that may have only these values."""

    unstreamed: dict[str, Any] = {}
    """Settings that a request must have if its answer is not streamed."""

    answer_formats: tuple[str, ...] | None = None
    """The types of `response_format` that are accepted; None: any."""

    json_word: bool = True
    """Whether the answer format `json_object` requires the word json in the conversation."""

    # -- media -------------------------------------------------------------------------------------

    media: tuple[str, ...] | None = None
    """The kinds of media that can be sent to any model here; None: those of OpenAI."""

    media_types: tuple[str, ...] | None = None
    """The MIME types of images; None: those of OpenAI."""

    media_urls: bool = True
    """Whether media may be given by URL."""

    # -- answers -----------------------------------------------------------------------------------

    stops: dict[str, Literal["end", "tool_calls", "length", "refusal", "filtered", "interrupted"]] = {}
    """The meaning of further words for the end of an answer (`turnlog.Stop`)."""

    too_long: tuple[str, ...] = ()
    """Patterns of its further messages for a request that is too long, with the groups `tokens` and `limit`."""

    rate_limited: tuple[str, ...] = ()
    """Patterns of its further messages for a request that has to wait."""

    overloaded: tuple[str, ...] = ()
    """Patterns of its further messages for a server that is too busy."""

    truncates: str = ""
    """Its setting for the length of requests, if it silently leaves out the beginning of longer ones; else ""."""

    reasoning_apart: bool = False
    """Whether reasoning is billed beside `completion_tokens`."""

    variants: tuple[dict[str, Any], ...] = ()
    """What is different for some models: each has a pattern `models` and other fields."""


OPENAI = Server(title="OpenAI", own_api=True)
"""The rules of OpenAI's own server, which hold for a server that is not known."""


def server_given(name: str) -> str:
    """The name of the row that `name` means. Raises InputError for a name of none."""
    rows = server_rows()
    wanted = name.lower()
    for key, row in rows.items():
        if wanted == key or wanted in row.words:
            return key
    raise InputError(f"no server {name!r}; use one of {', '.join(rows)}, or add a row of your own (docs/servers.md)")


def server_rows() -> Mapping[str, Server]:
    """All rows, by name: the shipped ones, and those of the user's own file, which override them. Raises InputError."""
    return {key: server_row(key, "") for key in _entries()}


def server_row(name: str, model: str) -> Server:
    """The row of a server for one of its models; OpenAI's rules for "". Raises InputError for a name of none."""
    return _row(name, model.lower(), own_file(), os.environ.get(VARIABLE, "")) if name else OPENAI


def recognised(base_url: str, model: str) -> str:
    """The server that an address or else the name of a model means, "" if neither tells."""
    host, port = _place(base_url)
    entries = _entries()
    for key, entry in entries.items():
        if host and any(fnmatchcase(f".{host}", f"*.{end}") for end in entry.get("hosts", ())):
            return key
    if host in _LOCAL:
        for key, entry in entries.items():
            if port and entry.get("port") == port:
                return key
    return _by_model(model)


def _by_model(model: str) -> str:
    patterns = ((key, entry.get("models", "")) for key, entry in _entries().items())
    return next((key for key, pattern in patterns if pattern and re.search(pattern, model, re.IGNORECASE)), "")


_LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "::1", "host.docker.internal")


def _place(base_url: str) -> tuple[str, int | None]:
    """The host and the port of an address, ("", None) if there is none."""
    try:
        parts = urlsplit(base_url)
        return (parts.hostname or "").lower(), parts.port
    except ValueError:  # `http://[`: an address that the SDK will refuse
        return "", None


@lru_cache(maxsize=256)
def _row(name: str, model: str, path: Path, named: str) -> Server:
    """A row, with what is different for the model. `path` and `named` as for `_with_own`."""
    entry = _with_own(path, named).get(name)
    if entry is None:
        raise InputError(f"no server {name!r}; use one of {', '.join(_with_own(path, named))}, or add it to {path}")
    merged = dict(entry)
    for variant in entry.get("variants", ()) if model else ():
        if re.search(variant["models"], model):
            merged |= {key: value for key, value in variant.items() if key != "models"}
    return _converted(name, merged)


def _converted(name: str, entry: Mapping[str, Any]) -> Server:
    try:
        return msgspec.convert(entry, Server)
    except msgspec.ValidationError as error:
        raise InputError(f"{own_file()}: server {name!r}: {error}") from error


_PATTERNS = "models call_ids tool_names thinks signed_details thinks_first too_long rate_limited overloaded".split()


def _check_patterns(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Raises InputError for a pattern of the user's that is none."""
    fields = {field: entry[field] for field in _PATTERNS if field in entry}
    fields["details"] = [pattern for pair in entry.get("details", {}).items() for pattern in pair]
    for field, given in fields.items():
        for pattern in [given] if isinstance(given, str) else given:
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(f"{path}: server {name!r}: {field}: {pattern!r} is no pattern: {error}") from error


def _entries() -> Mapping[str, dict[str, Any]]:
    """All rows as JSON objects, those of the user's file first, as they win."""
    return _with_own(own_file(), os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _with_own(path: Path, named: str) -> Mapping[str, dict[str, Any]]:
    """All rows. `named` is the file that the environment names: then it must be readable."""
    shipped = _shipped()
    own: dict[str, dict[str, Any]] = {}
    for name, given in own_entries("servers", path, named=bool(named)).items():
        if not isinstance(given, dict):
            raise InputError(f"{path}: server {name!r}: expected an object")
        like = given.get("like", name if name in shipped else "")
        if like and like not in shipped:
            raise InputError(f"{path}: server {name!r}: like must be one of {', '.join(shipped)}, not {like!r}")
        below = {key: value for key, value in shipped.get(like, {}).items() if like == name or key not in _PLACES}
        own[name] = {**below, **{key: value for key, value in given.items() if key != "like"}}
        if not name:
            raise InputError(f"{path}: a server needs a name, not ''")
        _converted(name, own[name])
        _check_patterns(path, name, own[name])
        for variant in own[name].get("variants", ()):
            if "models" not in variant:
                raise InputError(f"{path}: server {name!r}: variants: each needs `models`, a pattern for their names")
            _converted(name, {**own[name], **variant})
            _check_patterns(path, name, {**own[name], **variant})
    return {**own, **{name: entry for name, entry in shipped.items() if name not in own}}


_PLACES = ("words", "hosts", "port", "models", "title", "seller")
"""The fields by which a row is recognised: a row that is like another one does not take them over."""


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(_ROWS.read_bytes())["servers"]
    ready(Server)  # here, as most sessions need no row
    return rows
