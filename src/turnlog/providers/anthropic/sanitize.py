"""Remove from a request what the Messages API refuses, apart from the order of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.abilities import Abilities
from ...models.catalog import model_abilities
from ...models.target import Target
from ..edits import Edits, Object, changed, sanitizer
from ..schema import fit
from . import sanitize_tools
from .cache_marks import sanitize_marks
from .rules import thinking_taken, thinking_type
from .sanitize_messages import finished, mended
from .schema import BODY, MIN_BUDGET

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
    """The request with a model, as the API of Anthropic requires it, or without one, as those of Vertex AI and Amazon
    Bedrock do: there the URL names the model, and the body has the version of the API."""
    if not body.get("model"):
        if body.get("anthropic_version"):
            return body
        body = edits.put(body, "model", target.model, _MISSING)
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
        kept = [edit for edit in management["edits"] if not _clears_thinking(edit)]
        if len(kept) != len(management["edits"]):
            changed["context_management"] = {**management, "edits": kept}
            if not kept:
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
    kept = {key: value for key, value in request["thinking"].items() if key != "budget_tokens"}
    detail = f"{kind!r} became {taken!r}: {_model(request)} does not take it"
    return edits.put(request, "thinking", {**kept, "type": taken}, rule, detail=detail)


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
