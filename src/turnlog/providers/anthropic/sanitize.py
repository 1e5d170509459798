"""Remove from a request what the Messages API refuses, apart from the order of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.messages import compact_json
from ...models.abilities import Abilities
from ...models.catalog import find_model, model_abilities
from ...models.target import Target
from ...tokens.dimensions import image_type
from ..edits import Edits, Object, changed, sanitizer
from ..media_bytes import encode_base64
from ..schema.walk import fit
from . import sanitize_tools
from .cache_marks import sanitize_marks
from .media import decoded, document_text
from .parts import NO_OUTPUT
from .rules import thinking_taken, thinking_type
from .schema import BODY, MIN_BUDGET

# -- sanitize messages -----------------------------------------------------------------------------
#
# Sanitize single blocks for the Messages API; `repair` handles pairing, order and limits.
#
# Before the schema is applied, `mended` puts understood blocks into the documented form; afterwards, `finished` fills
# values that must not be empty.

_ONLY: dict[str, tuple[str, ...]] = {"image": ("transformations",), "document": ("title", "context", "citations")}
"""Keys that one of the two media blocks has and the other does not."""
_POINTED = lazy_pattern(r"claude-[a-z]+-\d+\.\d+")  # as gateways spell it
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]*={0,2}")


def mended(message: Object, path: str, edits: Edits) -> Object:
    """The message with every block in its documented form."""
    return changed(message, "content", path, lambda block, where: _block(block, where, edits))


def _block(block: Object, path: str, edits: Edits) -> Object:
    kind = block.get("type")
    mend = _MEND.get(kind) if isinstance(kind, str) else None
    return block if mend is None else mend(block, path, edits)


def finished(message: Object, path: str, edits: Edits) -> Object:
    """The message without failed results that have no content."""
    return changed(message, "content", path, lambda block, where: _with_content(block, where, edits))


def _with_content(block: Object, path: str, edits: Edits) -> Object:
    if block.get("type") != "tool_result" or not block.get("is_error") or block.get("content"):
        return block
    return _set(block, "content", NO_OUTPUT, path, edits)


def _set(block: Object, key: str, value: Any, path: str, edits: Edits) -> Object:
    return edits.put(block, key, value, "Field required", path=path, kind="value")


def _thinking_block(block: Object, path: str, edits: Edits) -> Object:
    return block if isinstance(block.get("thinking"), str) else _set(block, "thinking", "", path, edits)


def _call(block: Object, path: str, edits: Edits) -> Object:
    given = block.get("input")
    if isinstance(given, dict):
        return block
    return _set(block, "input", {} if given is None else {"input": given}, path, edits)


def _result(block: Object, path: str, edits: Edits) -> Object:
    failed = block.get("is_error")
    if failed is not None and not isinstance(failed, bool):
        block = _set(block, "is_error", bool(failed), path, edits)
    content = block.get("content")
    if isinstance(content, dict):
        rule, detail = "Input should be a valid string", "sent as text"
        block = edits.put(block, "content", compact_json(content), rule, path=path, detail=detail, kind="value")
    return mended(block, path, edits)


def _media(block: Object, path: str, edits: Edits) -> Object:
    """Media with the block and source that fit their MIME type."""
    source = block.get("source")
    if not isinstance(source, dict):
        return block
    if source.get("type") == "content":
        return changed(block, "source", path, lambda source, where: mended(source, where, edits))
    mime, data = source.get("media_type"), source.get("data")
    if source.get("type") == "text" and isinstance(data, str) and mime != "text/plain":
        return {**block, "source": _set(source, "media_type", "text/plain", f"{path}.source", edits)}
    if source.get("type") != "base64" or not isinstance(data, str):
        return block
    if not isinstance(mime, str):
        mime = image_type(decoded(data)) or "application/pdf"
        source = _set(source, "media_type", mime, f"{path}.source", edits)
        block = {**block, "source": source}
    if mime.startswith("text/"):
        try:
            text = document_text(decoded(data))
        except UnicodeDecodeError:
            edits.add("media", path, f"left out: {mime} in no encoding that is known", "application/pdf")
            return {"type": "text", "text": f"[document left out: {mime}]"}
        edits.add("media", f"{path}.source", f"sent as text: it was base64 of {mime}", "application/pdf")
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return _retyped({**block, "source": source}, "document", path, edits)
    if not _BASE64.fullmatch(data):
        again, rule = encode_base64(decoded(data)), "invalid base64 data"
        source = edits.put(source, "data", again, rule, path=f"{path}.source", detail="encoded again", kind="media")
        block = {**block, "source": source}
    return _retyped(block, "image" if mime.startswith("image/") else "document", path, edits)


def _retyped(block: Object, kind: str, path: str, edits: Edits) -> Object:
    if block["type"] == kind:
        return block
    lost = [key for key in _ONLY[block["type"]] if block.get(key) is not None]
    detail = f"sent as {kind}, it was {block['type']}" + (f" with {', '.join(lost)}" if lost else "")
    edits.add("media", path, detail, "Input should be of another type")
    rest = {key: value for key, value in block.items() if key not in _ONLY[block["type"]]}
    return {**rest, "type": kind}


_MEND: dict[str, Callable[[Object, str, Edits], Object]] = {
    "thinking": _thinking_block,
    "tool_use": _call,
    "tool_result": _result,
    "image": _media,
    "document": _media,
    "search_result": mended,
}


_MISSING = "Field required"
_DEFAULT_MAX_TOKENS = 8192
"""Default limit on the answer, in tokens; lower if the model's own limit is lower."""


@sanitizer(BODY.keys)
def sanitize(request: Object, target: Target, edits: Edits) -> Object:
    """The request in the form that the API accepts; each change is an edit."""
    body = changed(request, "messages", "", lambda message, path: mended(message, path, edits))
    body = fit(sanitize_tools.mended(body, edits), BODY, "", edits)
    body = changed(body, "messages", "", lambda message, path: finished(message, path, edits))
    if request.get("tools") and not body.get("tools"):
        body = sanitize_tools.from_calls(body, edits)
    body = _envelope(body, target, edits)
    abilities = model_abilities(str(body.get("model") or target.model))
    body = _thinking(body, abilities, edits)
    body = _max_tokens(body, target, edits)
    body = _thinking_excludes(body, edits)
    body = _sampling(body, abilities, edits)
    body = _tool_choice(body, abilities, edits)
    return sanitize_marks(body, edits)


def _envelope(body: Object, target: Target, edits: Edits) -> Object:
    """The request with a model, as Anthropic's API requires, or without one, as Vertex AI and Amazon Bedrock require:
    there the URL names the model, and the body the version of the API."""
    if not body.get("model"):
        if body.get("anthropic_version"):
            return body
        body = edits.put(body, "model", target.model, _MISSING)
    name = body.get("model")
    if isinstance(name, str) and _POINTED.fullmatch(name) and not target.base_url:
        known = find_model(name)
        if known is not None and not known.taken_for and known.id != name:
            body = edits.put(body, "model", known.id, f"model: {name}")
    for key in ("anthropic_version", "anthropic_beta"):
        if key in body:
            body = edits.drop(body, key, "Extra inputs are not permitted", reason="only Vertex and Bedrock take it")
    return body


def _model(request: Object) -> str:
    return str(request.get("model") or "this model")


def without_thinking(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with thinking switched off, and without settings that the API accepts only with thinking."""
    changed: dict[str, Any] = {**settings, "thinking": {"type": "disabled"}}
    management = changed.get("context_management")
    if isinstance(management, Mapping) and isinstance(management.get("edits"), list):
        # "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive" (known
        # from use, not among the recorded refusals).
        other_edits = [edit for edit in management["edits"] if not _clears_thinking(edit)]
        if len(other_edits) != len(management["edits"]):
            changed["context_management"] = {**management, "edits": other_edits}
            if not other_edits:
                del changed["context_management"]
    return changed


def _clears_thinking(edit: Any) -> bool:
    return isinstance(edit, Mapping) and str(edit.get("type", "")).startswith("clear_thinking")


def _budget(request: Mapping[str, Any]) -> int | None:
    """The thinking budget in tokens, None if thinking is not enabled by budget."""
    budget = request["thinking"].get("budget_tokens") if thinking_type(request) == "enabled" else None
    return budget if isinstance(budget, int) else None


def required_settings(target: Target) -> dict[str, Any]:
    """The limit on the answer, which every request must have."""
    return {"max_tokens": min(target.output_limit, _DEFAULT_MAX_TOKENS)}


def _max_tokens(request: Object, target: Target, edits: Edits) -> Object:
    """Set a limit on the answer above the thinking budget; lower a budget that exceeds the model's limit."""
    given = request.get("max_tokens")
    budget = _budget(request)
    limit = given if given is not None else required_settings(target)["max_tokens"]
    rule = _MISSING
    if budget is not None and isinstance(limit, int) and limit <= budget:
        limit = min(budget + max(limit, MIN_BUDGET), max(target.output_limit, MIN_BUDGET + 1))
        rule = "`max_tokens` must be greater than `thinking.budget_tokens`."
        if limit <= budget:
            lowered = max(MIN_BUDGET, limit // 2)
            thinking = edits.put(request["thinking"], "budget_tokens", lowered, rule, path="thinking")
            request = {**request, "thinking": thinking}
    return request if limit == given else edits.put(request, "max_tokens", limit, rule)


def _thinking(request: Object, abilities: Abilities, edits: Edits) -> Object:
    """If the model does not accept the type of thinking in the settings, use the closest type that it accepts."""
    kind = thinking_type(request)
    taken = thinking_taken(kind, abilities)
    if taken == kind:
        return request
    rule = f'"thinking.type.{kind}" is not supported for this model.'
    if not taken:
        return edits.drop(request, "thinking", rule, reason=f"{_model(request)} does not take {kind!r}")
    thinking = {key: value for key, value in request["thinking"].items() if key != "budget_tokens"}
    detail = f"{kind!r} became {taken!r}: {_model(request)} does not take it"
    return edits.put(request, "thinking", {**thinking, "type": taken}, rule, detail=detail)


def _thinking_excludes(request: Object, edits: Edits) -> Object:
    """With a thinking budget, the API allows only temperature 1, no top_k and no forced tool choice."""
    if thinking_type(request) != "enabled":
        return request
    if request.get("temperature") not in (None, 1):
        rule = "`temperature` may only be set to 1 when thinking is enabled."
        request = edits.drop(request, "temperature", rule, reason="thinking is on")
    if request.get("top_k") is not None:
        rule = "`top_k` must be unset when thinking is enabled."
        request = edits.drop(request, "top_k", rule, reason="thinking is on")
    return _unforced(request, "Thinking may not be enabled when tool_choice forces tool use.", "thinking is on", edits)


def _unforced(request: Object, rule: str, reason: str, edits: Edits) -> Object:
    """The request without a tool choice that forces a call."""
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") not in ("any", "tool"):
        return request
    auto = {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
    return edits.put(request, "tool_choice", auto, rule, detail=f"{choice['type']!r} became 'auto': {reason}")


def _sampling(request: Object, abilities: Abilities, edits: Edits) -> Object:
    for key in ("temperature", "top_p", "top_k") if abilities.sampling == "none" else ():
        if key in request:
            rule = "sampling parameters are refused by the newest models"
            request = edits.drop(request, key, rule, reason=f"{_model(request)} takes none")
    both = request.get("temperature") is not None and request.get("top_p") is not None
    if both and abilities.sampling == "one":
        rule = "`temperature` and `top_p` cannot both be specified for this model."
        request = edits.drop(request, "top_p", rule, reason="temperature is set")
    return request


def _tool_choice(request: Object, abilities: Abilities, edits: Edits) -> Object:
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") == "none":
        return request
    tools = request.get("tools")
    if not tools or not isinstance(tools, list):
        rule = "tool_choice may only be specified while providing tools."
        return edits.drop(request, "tool_choice", rule, reason="there are no tools")
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    if choice.get("type") == "tool" and choice.get("name") not in names:
        rule = f"Tool '{choice.get('name')}' not found in provided tools"
        return edits.drop(request, "tool_choice", rule, reason=f"no tool {choice.get('name')!r}")
    if abilities.forced_tools:
        return request
    rule = "tool_choice that forces tool use is not supported for this model."
    return _unforced(request, rule, f"{_model(request)} cannot be forced", edits)
