"""Read a whole response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import COMPACTION, Message, Opaque, Part, Reasoning, ToolCall, is_compaction
from ...log.usage import Usage, charge_of, is_uncounted, tokens_billed
from ..cache_misses import openai_miss
from ..error_bodies import answer_body, error_text
from ..protocol import Reply, Stop
from ..schema.walk import fits
from ..sdk_objects import plain
from ..spelling import inner, string
from .calls import read_call
from .compaction import OBJECT, compacted, new_window
from .form import NAME
from .item_types import CALLS, RESULTS
from .items import check_item, read_items, read_output
from .schema import ITEM

# Keys of output items that input items do not accept: those that the SDK's `parse` adds, and `created_by`.
_RESPONSE_ONLY = frozenset({"parsed_arguments", "parsed", "created_by"})
_RESPONSE_ONLY_OF = {"custom_tool_call": frozenset({"status"})}
# Keys that an input item must have even if they are null.
_NULL_STAYS = {"code_interpreter_call": frozenset({"code", "outputs"})}
STOPS: dict[str, Stop] = {
    "max_output_tokens": "length",
    "content_filter": "filtered",
    "incomplete": "length",
}
"""The values of `status` and, for an incomplete response, of `incomplete_details.reason`."""
REFUSALS = frozenset({"refusal"})
"""The word in the form of a text that was a refusal."""
_BESIDE = ("prompt_cache_diagnostics",)
_UNFINISHED = ("incomplete", "in_progress")


def parse_response(response: Any) -> Reply:
    """Read a whole response. Raises FormatError, also for an error body.

    A response that failed or is still running is incomplete. A response that was cut off by a limit is complete, and
    `stop` names the limit.
    """
    whole = plain(response, "response")
    if not isinstance(whole.get("output"), list):
        answer_body(whole)
        raise FormatError("expected a list; is this a response of the Responses API?", path="response.output")
    return _read_window(whole) if whole.get("object") == OBJECT else read_response(whole)


def _read_window(whole: Mapping[str, Any]) -> Reply:
    """The reply in a result of `/responses/compact`: messages of the user, and the compaction that replaces everything
    else."""
    blobs: dict[str, bytes] = {}
    for i, item in enumerate(whole["output"]):
        check_item(item, f"output[{i}]")
    window = read_items([_clean(item) for item in whole["output"]], blobs, "output")
    usage = whole.get("usage")
    return Reply(
        message=Message(
            "assistant", tuple(part for message in window for part in message.parts if is_compaction(part))
        ),
        usage=_usage(usage) if isinstance(usage, dict) else None,
        raw_usage=usage,
        stop=COMPACTION,
        response_id=string(whole, "id"),
        blobs=blobs,
        compacted=new_window(window),
    )


def read_response(whole: Mapping[str, Any], fragments: tuple[Part, ...] = (), error: str = "") -> Reply:
    """The reply in a response. `error` is the reason why the stream ended early, if known."""
    blobs: dict[str, bytes] = {}
    items, halves = _split(whole["output"])
    parts: list[Part] = read_output(items, blobs)
    stop = string(whole, "status")
    if stop == "incomplete":
        stop = string(inner(whole, "incomplete_details"), "reason") or stop
    error = error or error_text(whole.get("error"))
    if not error and stop in ("failed", "cancelled", "in_progress", "queued"):
        error = f"the response is {stop}"
    usage = whole.get("usage")
    return Reply(
        message=Message("assistant", tuple(parts)),
        usage=_usage(usage) if isinstance(usage, dict) else None,
        raw_usage=usage,
        model=string(whole, "model"),
        stop=stop,
        response_id=string(whole, "id"),
        beside={key: whole[key] for key in _BESIDE if whole.get(key)},
        cache_miss=openai_miss(whole),
        complete=not error,
        error=error,
        fragments=(*halves, *fragments),
        blobs=blobs,
        compacted=compacted(parts),
    )


def check_output(item: Any, path: str) -> dict[str, Any]:
    """An output item. Raises FormatError if it cannot be read."""
    check_item(item, path)
    try:
        read_response({"output": [item]})
    except FormatError as error:
        full_path = error.path.replace("output[0]", path, 1)
        raise FormatError(str(error).removeprefix(f"{error.path}: "), path=full_path) from error
    return dict(item)


def _clean(item: dict[str, Any]) -> dict[str, Any]:
    """An output item in the shape of requests: without nulls and response-only keys."""
    kind = item.get("type")
    stays, goes = _NULL_STAYS.get(str(kind), frozenset()), _RESPONSE_ONLY_OF.get(str(kind), frozenset())
    cleaned = {
        "async" if key == "async_" else key: value  # the SDK's name for `async`, in a dump without aliases
        for key, value in item.items()
        if key not in _RESPONSE_ONLY and key not in goes and (value is not None or key in stays)
    }
    if kind == "message" and isinstance(item.get("content"), list):
        cleaned["content"] = [_clean_part(part) for part in item["content"]]
    elif isinstance(cleaned.get("action"), dict):
        cleaned["action"] = {key: value for key, value in cleaned["action"].items() if value is not None}
    return cleaned


def _clean_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {
        key: value
        for key, value in part.items()
        if key not in _RESPONSE_ONLY and value is not None and not (key == "logprobs" and not value)
    }


def _split(items: list[Any]) -> tuple[list[Any], list[Part]]:
    """The complete items, and the fragments of incomplete ones.

    A truncated call lacks arguments, and truncated reasoning lacks the encrypted content that replays it. A truncated
    message is sent as far as it arrived. A result without a complete call before it would be refused, so it becomes a
    fragment.
    """
    whole: list[Any] = []
    halves: list[Part] = []
    called: set[Any] = set()
    for i, item in enumerate(items):
        check_item(item, f"output[{i}]")
        unfinished = item.get("status") in _UNFINISHED
        if unfinished and item.get("type") in CALLS:
            halves.append(_half_call(item, i))
        elif unfinished and item.get("type") == "reasoning" and not item.get("encrypted_content"):
            halves.extend(part for part in read_output([_clean(item)], {}) if isinstance(part, Reasoning))
        elif item.get("type") in RESULTS and not (_answers(item) in called and fits(_clean(item), ITEM)):
            halves.append(Opaque(NAME, item["type"], item))
        else:
            whole.append(_clean(item))
            if item.get("type") in CALLS and fits(whole[-1], ITEM):
                called.add(item.get("call_id"))
    return whole, halves


def _answers(item: Mapping[str, Any]) -> Any:
    """The id of the call that an output item answers."""
    return item.get("id" if item["type"] == "local_shell_call_output" else "call_id")


def _half_call(item: dict[str, Any], i: int) -> ToolCall:
    """An incomplete call, with the text of its arguments so far in `raw`."""
    call = read_call({"call_id": "", "name": "", **item}, (), f"output[{i}]")
    raw = item.get("arguments", item.get("input"))
    return ToolCall(call.id, call.name, None, raw if isinstance(raw, str) else call.raw_arguments, call.kind)


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Usage in common terms. `input_tokens` includes cached tokens, `output_tokens` includes reasoning."""
    read, wrote = inner(usage, "input_tokens_details"), inner(usage, "output_tokens_details")
    return Usage(
        input=tokens_billed(usage.get("input_tokens")),
        output=tokens_billed(usage.get("output_tokens")),
        cached=tokens_billed(read.get("cached_tokens")),
        cache_write=tokens_billed(read.get("cache_write_tokens")),
        reasoning=tokens_billed(wrote.get("reasoning_tokens")),
        incomplete=is_uncounted(usage.get("input_tokens"), usage.get("output_tokens")),
        charged=charge_of(usage),
    )
