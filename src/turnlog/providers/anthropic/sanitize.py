"""What the Messages API would refuse outside the conversation's order, taken out of a request.

Every function takes a request and returns one; nothing is changed in place. Each change is an
`Edit` that quotes what the API would have answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...models.target import Target
from ...view.types import Edit
from ..protocol import Rendered
from ..schema import fit
from . import sanitize_messages, sanitize_tools
from .cache_marks import sanitize_marks
from .rules import NO_SAMPLING, ONE_SAMPLING, thinking_type
from .schema import BODY, MIN_BUDGET

_DEFAULT_MAX_TOKENS = 8192
"""Answer length where nobody asked for one, in tokens; less if the model's limit is lower."""

_Request = dict[str, Any]
_Edits = list[Edit]


def sanitize(request: _Request, target: Target) -> Rendered:
    """The request as the API takes it, and what had to change. The given request stays as it is.
    Raises FormatError for one that is nested too deeply to be looked at."""
    edits: _Edits = []
    try:
        return Rendered(body=_sanitized(request, target, edits), edits=tuple(edits))
    except RecursionError:
        raise FormatError("nested too deeply", path="body") from None


def _sanitized(request: _Request, target: Target, edits: _Edits) -> _Request:
    sanitized = sanitize_messages.mended(request, edits)
    sanitized = sanitize_tools.mended(sanitized, edits)
    sanitized = fit(sanitized, BODY, "", edits)
    sanitized = sanitize_messages.finished(sanitized, edits)
    if request.get("tools") and not sanitized.get("tools"):
        sanitized = sanitize_tools.from_calls(sanitized, edits)
    for step in (_model, _max_tokens, _thinking_excludes, _sampling, _tool_choice):
        sanitized = step(sanitized, target, edits)
    return sanitize_marks(sanitized, edits)


def without_thinking(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with thinking switched off, and without what the API takes only with it."""
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


def _setting(edits: _Edits, path: str, detail: str, rule: str) -> None:
    edits.append(Edit("setting", detail, rule=rule, path=path))


def _dropped(request: _Request, key: str, edits: _Edits, detail: str, rule: str) -> _Request:
    _setting(edits, key, detail, rule)
    return {name: value for name, value in request.items() if name != key}


def _model(request: _Request, target: Target, edits: _Edits) -> _Request:
    if request.get("model"):
        return request
    _setting(edits, "model", f"set to {target.model}", "Field required")
    return {**request, "model": target.model}


def _budget(request: Mapping[str, Any]) -> int | None:
    """The thinking budget in tokens, None if thinking is not enabled by budget."""
    budget = request["thinking"].get("budget_tokens") if thinking_type(request) == "enabled" else None
    return budget if isinstance(budget, int) else None


def required_settings(target: Target) -> dict[str, Any]:
    """The limit on the answer, which no request may be without."""
    return {"max_tokens": min(target.output_limit, _DEFAULT_MAX_TOKENS)}


def _max_tokens(request: _Request, target: Target, edits: _Edits) -> _Request:
    """A limit, above the thinking budget; a budget above the model's limit comes down below it."""
    given = request.get("max_tokens")
    budget = _budget(request)
    limit = given if given is not None else required_settings(target)["max_tokens"]
    rule = "Field required"
    if budget is not None and isinstance(limit, int) and limit <= budget:
        limit = min(budget + max(limit, MIN_BUDGET), max(target.output_limit, MIN_BUDGET + 1))
        rule = "`max_tokens` must be greater than `thinking.budget_tokens`."
        if limit <= budget:
            lowered = max(MIN_BUDGET, limit // 2)
            _setting(edits, "thinking.budget_tokens", f"lowered from {budget} to {lowered}", rule)
            request = {**request, "thinking": {**request["thinking"], "budget_tokens": lowered}}
    if limit == given:
        return request
    _setting(edits, "max_tokens", f"set to {limit}", rule)
    return {**request, "max_tokens": limit}


def _thinking_excludes(request: _Request, target: Target, edits: _Edits) -> _Request:
    """Thinking by budget allows no other temperature than 1, no top_k and no forced tool choice."""
    if thinking_type(request) != "enabled":
        return request
    if request.get("temperature") not in (None, 1):
        rule = "`temperature` may only be set to 1 when thinking is enabled."
        request = _dropped(request, "temperature", edits, "dropped: thinking is on", rule)
    if request.get("top_k") is not None:
        rule = "`top_k` must be unset when thinking is enabled."
        request = _dropped(request, "top_k", edits, "dropped: thinking is on", rule)
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        _setting(
            edits,
            "tool_choice",
            f"{choice['type']!r} became 'auto': thinking is on",
            "Thinking may not be enabled when tool_choice forces tool use.",
        )
        kept = {key: value for key, value in choice.items() if key != "name"}
        request = {**request, "tool_choice": {**kept, "type": "auto"}}
    return request


def _sampling(request: _Request, target: Target, edits: _Edits) -> _Request:
    model = str(request.get("model", ""))
    for key in ("temperature", "top_p", "top_k"):
        if key in request and NO_SAMPLING.search(model):
            rule = "sampling parameters are refused by the newest models"
            request = _dropped(request, key, edits, f"dropped: {model} takes none", rule)
    both = request.get("temperature") is not None and request.get("top_p") is not None
    if both and ONE_SAMPLING.search(model):
        rule = "`temperature` and `top_p` cannot both be specified for this model."
        request = _dropped(request, "top_p", edits, "dropped: temperature is set", rule)
    return request


def _tool_choice(request: _Request, target: Target, edits: _Edits) -> _Request:
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") == "none":
        return request
    tools = request.get("tools")
    if not tools or not isinstance(tools, list):
        rule = "tool_choice may only be specified while providing tools."
        return _dropped(request, "tool_choice", edits, "dropped: there are no tools", rule)
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    if choice.get("type") == "tool" and choice.get("name") not in names:
        rule = f"Tool '{choice.get('name')}' not found in provided tools"
        return _dropped(request, "tool_choice", edits, f"dropped: no tool {choice.get('name')!r}", rule)
    return request
