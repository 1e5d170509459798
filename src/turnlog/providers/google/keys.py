"""Google's two spellings of a key: proto3 JSON accepts `functionCall` and `function_call` alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from ..._platform.lazy import lazy_pattern
from ...errors import FormatError
from ...models.target import Target
from ..protocol import SdkCall
from ..schema.walk import check_depth

# -- sdk -------------------------------------------------------------------------------------------
#
# A request body as keyword arguments of the official SDK.


def sdk_arguments(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Keyword arguments with which `Client.models.generate_content` (or `generate_content_stream`) of google-genai
    sends `request` unchanged.

    The SDK's own configuration does not have every REST field, and writes bytes in another alphabet (which changes
    signatures). `HttpOptions.extra_body` is its documented way to send a custom body: it is merged over the body that
    the SDK builds.
    """
    return {
        "model": model,
        "contents": request["contents"],
        "config": {"http_options": {"extra_body": dict(request)}},
    }


def sdk_call(body: dict[str, Any], target: Target, streamed: bool) -> SdkCall:
    """The SDK call that sends a body."""
    method = "generate_content_stream" if streamed else "generate_content"
    return SdkCall(f"aio.models.{method}", sdk_arguments(body, target.model))


FREE = frozenset(
    {
        "args",
        "defs",
        "labels",
        "parameters",
        "parametersJsonSchema",
        "partMetadata",
        "properties",
        "response",
        "responseFormat",
        "responseJsonSchema",
        "responseSchema",
        "_responseJsonSchema",
    }
)
"""Keys (camelCase) whose values are the user's own JSON or schemas: keys inside keep their spelling."""

DATA = (
    "text",
    "inlineData",
    "functionCall",
    "functionResponse",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "audioTranscription",
)
"""The fields of a part; exactly one of them is set (the `data` oneof of google.ai.generativelanguage Part)."""

_CAPITAL = lazy_pattern(r"(?<=[a-z0-9])([A-Z])")


def role_of(role: str | None) -> Literal["user", "assistant", "system"]:
    """The role of a content. The API accepts only `user` and `model`; the roles of chat APIs are understood."""
    word = (role or "").lower()
    return "assistant" if word in ("model", "assistant") else "system" if word == "system" else "user"


@lru_cache(4096)
def camel(key: str) -> str:
    """`key` in camelCase, the default spelling."""
    if "_" not in key.strip("_"):
        return key
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


@lru_cache(4096)
def snake(key: str) -> str:
    """`key` in snake_case."""
    return _CAPITAL.sub(lambda match: "_" + match[1].lower(), key)


def find(wire: Mapping[str, Any], key: str) -> str:
    """The spelling in which `wire` has the camelCase `key`; `key` itself if it has neither spelling."""
    if key in wire:
        return key
    other = snake(key)
    return other if other in wire else key


def camel_deep(value: Any) -> Any:
    """An object with every known key in camelCase, at every depth except inside lists and `FREE` keys. If a key is
    present in both spellings, both are kept."""
    if not isinstance(value, dict):
        return value
    names = _camel_names(value)
    return {key: item if key in FREE else camel_deep(item) for key, item in zip(names, value.values(), strict=True)}


def _camel_names(keys: Iterable[str]) -> list[str]:
    present = set(keys)
    return [key if camel(key) in present else camel(key) for key in keys]


def check_json(value: Any, path: str = "") -> None:
    """Raises FormatError for a key that is present in both spellings, which is ambiguous, and for values that are
    nested too deeply."""
    check_depth(value)
    _check_twins(value, path)


def _check_twins(value: Any, path: str) -> None:
    if isinstance(value, list):
        for i, item in enumerate(value):
            _check_twins(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        if len({camel(key) for key in value}) < len(value):
            _refuse_twins(path, value)
        for key, item in value.items():
            if isinstance(item, (dict, list)) and camel(key) not in FREE:
                _check_twins(item, f"{path}.{key}" if path else key)


def _refuse_twins(path: str, holder: dict[str, Any]) -> None:
    seen: dict[str, str] = {}
    for key in holder:
        twin = seen.setdefault(camel(key), key)
        if twin != key:
            where = f"{path}.{key}" if path else key
            raise FormatError(f"the same key as {twin}: use one of the two spellings", path=where)
