"""Whole responses of the Messages API, and its usage counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..._platform.units import counted
from ...errors import FormatError
from ...log.messages import Message, Part, ToolCall
from ...log.usage import Usage, is_uncounted, summed, tokens_billed
from ..cache_misses import claude_miss
from ..error_bodies import answer_body
from ..protocol import Reply, Stop
from ..schema.walk import check_depth, check_types, prune
from ..spelling import inner, string
from .compaction import compacted
from .containers import container_form
from .parse import read_blocks
from .schema import BLOCK, RESPONSE

_MADE = ("message", "fallback_message")
"""Types of iterations that produced the answer or a part of it."""

BESIDE = ("context_management", "diagnostics", "input_transformations")
"""Keys of a response, for people, that say how the API handled the request: which tool results and thinking it left
out, and why its cache could not be used."""

STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",  # the loop of the server's tools: sent again, the model goes on
    "refusal": "refusal",
}
"""The values of `stop_reason`. Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons"""

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")

INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The keys of a usage object that add up to the input."""


ANSWER_KEYS = ("content",)


def parse_response(response: Any) -> Reply:
    """Read a whole response. Raises FormatError, also for an error body."""
    return read_reply(answer_body(response, ANSWER_KEYS))


def read_reply(message: Mapping[str, Any]) -> Reply:
    """The reply in a message object of the API."""
    check_depth(message)
    content = message.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise FormatError("expected a list of content blocks", path="response.content")
    blocks = [replayable(block) if isinstance(block, Mapping) else block for block in content]
    begun = _begun(blocks, message.get("stop_reason"))
    parts, blobs = read_blocks(blocks[: len(blocks) - len(begun)], "response.content")
    check_types(message, RESPONSE, "response")
    usage = message.get("usage")
    cleared = _cleared(message.get("context_management"))
    return Reply(
        message=Message(role="assistant", parts=parts, form=container_form(message.get("container"))),
        usage=replace(usage_of(usage), cleared=cleared) if isinstance(usage, Mapping) else None,
        raw_usage=usage,
        model=string(message, "model"),
        stop=string(message, "stop_reason"),
        response_id=string(message, "id"),
        fragments=begun,
        beside={key: message[key] for key in BESIDE if _says_anything(message.get(key))},
        remark=_dropped(message.get("input_transformations")),
        cache_miss=claude_miss(message),
        blobs=blobs,
        compacted=compacted(parts),
    )


def _dropped(transformations: Any) -> str:
    """What the API left out of the request (`BetaThinkingDroppedInputTransformation` of the SDK)."""
    listed = transformations if isinstance(transformations, Sequence) else ()
    left = [each for each in listed if isinstance(each, Mapping) and each.get("type") == "thinking_dropped"]
    if not left:
        return ""
    reasons = ", ".join(dict.fromkeys(str(each["reason"]) for each in left if each.get("reason")))
    return f"the provider left out {counted(len(left), 'thought')}" + (f" ({reasons})" if reasons else "")


def _cleared(management: Any) -> int:
    """The tokens of tool results and thinking that context editing left out of the request (`applied_edits`)."""
    edits = management.get("applied_edits") if isinstance(management, Mapping) else None
    listed = edits if isinstance(edits, Sequence) else ()
    return sum(tokens_billed(edit.get("cleared_input_tokens")) for edit in listed if isinstance(edit, Mapping))


def _says_anything(value: Any) -> bool:
    return any(value.values()) if isinstance(value, Mapping) else bool(value)


def _begun(blocks: Sequence[Any], stop: Any) -> tuple[Part, ...]:
    """The call that the answer had only begun when it reached `max_tokens`: the last block, without input. It must not
    be run without its arguments; the guide on stop reasons recommends a new request."""
    last = blocks[-1] if blocks and isinstance(blocks[-1], Mapping) else {}
    if stop != "max_tokens" or last.get("type") != "tool_use" or last.get("input"):
        return ()
    return (ToolCall(string(last, "id"), string(last, "name"), raw=""),)


def replayable(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of a response in the shape of requests: without nulls, defaults and response-only keys."""
    request_block = {key: value for key, value in block.items() if value is not None}
    if not request_block.get("citations", True):
        del request_block["citations"]
    if request_block.get("type") == "tool_use" and request_block.get("caller") == {"type": "direct"}:
        del request_block["caller"]
    if request_block.get("type") in _CALLS:
        request_block.setdefault("input", {})  # some servers leave out an empty input
    pruned: dict[str, Any] = prune(request_block, BLOCK)
    return pruned


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """Usage in common terms. The API's `input_tokens` excludes tokens read from and written to the cache, and all
    top-level figures exclude the bill of a compaction, which is an iteration of its own (`BetaUsage` of the SDK). The
    window is that of the last iteration that made the answer. Each iteration has the price of its own prompt, if
    together they are what the top-level figures say."""
    given = raw.get("iterations")
    iterations = [each for each in given if isinstance(each, Mapping)] if isinstance(given, Sequence) else []
    made = [_billed(each) for each in iterations if each.get("type") in _MADE]
    answered, steps = _billed(raw), summed(made)
    if made and replace(steps, apart=()) == answered:
        answered = steps
    usage = sum((_billed(each) for each in iterations if each.get("type") == "compaction"), start=answered)
    if made and made[-1].input != usage.input:
        priced, usage = usage.brackets(), replace(usage, window=made[-1].input)
        usage = usage if usage.brackets() == priced else replace(usage, apart=priced)
    return usage


def _billed(raw: Mapping[str, Any]) -> Usage:
    """The billed tokens of one usage object by itself."""
    fresh, written, read = (tokens_billed(raw.get(key)) for key in INPUT)
    return Usage(
        input=fresh + written + read,
        output=tokens_billed(raw.get("output_tokens")),
        cached=read,
        cache_write=written,
        reasoning=tokens_billed(inner(raw, "output_tokens_details").get("thinking_tokens")),
        cache_write_1h=tokens_billed(inner(raw, "cache_creation").get("ephemeral_1h_input_tokens")),
        incomplete=is_uncounted(*map(raw.get, (*INPUT, "output_tokens"))),
    )
