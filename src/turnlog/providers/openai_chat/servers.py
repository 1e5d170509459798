"""Fit a request to the server that it is for, by the row of that server (`turnlog.models.servers`).

`rules` says how the conversation has to be arranged, which repair does; here, single messages and settings get the form
that the server accepts. A row of OpenAI's own rules changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ...log.messages import Opaque
from ...models.abilities import Abilities
from ...models.catalog import model_abilities
from ...models.servers import Server
from ...models.target import Target
from ...view.rules import NO_LIMIT, RequiredWord, Rules
from ..edits import Edits, Object, at, brief, changed
from ..protocol import SdkCall
from ..tool_declarations import JSON_PLEASE, is_json_mode
from .parts import tool_choice
from .schema import BODY, MEDIA_TYPES, OPAQUE_FIELDS, TEXT_TYPES

# "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
JSON_WORD = RequiredWord(word="json", setting="response_format json_object", text=JSON_PLEASE)

PLACEHOLDER = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made.
https://ai.google.dev/gemini-api/docs/thought-signatures"""

_TEXTS = {*TEXT_TYPES, "refusal"}


def thinks(row: Server, model: str, settings: Mapping[str, Any]) -> bool:
    """Whether the model thinks in a request with these settings."""
    thinking = settings.get("thinking")
    said = thinking.get("type") if isinstance(thinking, Mapping) else None
    if said:
        return bool(said != "disabled")
    if isinstance(settings.get("enable_thinking"), bool):
        return bool(settings["enable_thinking"])
    return bool(row.thinks and re.search(row.thinks, model.lower()))


def wants_reasoning(settings: Mapping[str, Any]) -> bool:
    """Whether a request asks for reasoning by OpenRouter's setting or OpenAI's."""
    reasoning = settings.get("reasoning")
    if isinstance(reasoning, Mapping) and reasoning.get("enabled", True) and reasoning.get("effort") != "none":
        return bool(reasoning.get("effort") or reasoning.get("max_tokens") or reasoning.get("enabled"))
    return settings.get("reasoning_effort") not in (None, "none")


def without_reasoning(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that ask for no reasoning."""
    return {key: value for key, value in settings.items() if key not in ("reasoning", "reasoning_effort")}


def accepts(row: Server, model: str) -> Callable[[Opaque], Opaque | None]:
    """A function that returns an opaque part as a server accepts it for a model, None if it does not."""
    formats = next((of for names, of in row.details.items() if re.search(names, model.lower())), None)

    def accepted(part: Opaque) -> Opaque | None:
        if part.kind == "reasoning_details":
            entries = part.data if isinstance(part.data, list) else []
            own = [each for each in entries if formats is not None and _is_of(each, formats) and _is_whole(each, row)]
            return part if own == part.data else replace(part, data=own) if own else None
        if part.kind in OPAQUE_FIELDS:
            return part if part.kind in row.opaque_keys or (part.kind == "audio" and row.own_api) else None
        if part.kind == "thinking":
            return part if row.thinking_parts else None
        known = row.part_keys is None or part.kind in row.part_keys
        media = part.kind not in MEDIA_TYPES or row.media is None
        return part if known and media else None

    return accepted


def _is_whole(entry: Mapping[str, Any], row: Server) -> bool:
    """Whether an entry of reasoning has its signature, if texts of its format need one."""
    needs = row.signed_details and entry.get("type") == "reasoning.text" and _is_of(entry, row.signed_details)
    return bool(not needs or entry.get("signature"))


def _is_of(entry: Any, formats: str) -> bool:
    return isinstance(entry, Mapping) and bool(re.search(formats, str(entry.get("format") or "")))


def server_rules(own: Rules, target: Target, settings: Mapping[str, Any]) -> Rules:
    """OpenAI's own rules for a target, changed as the row of its server says."""
    row, abilities = target.server_row, target.abilities
    if row.own_api:
        kinds = own.call_kinds if row.custom_tools else frozenset({"function"})
        return replace(own, call_kinds=kinds, arguments="object" if row.parses_arguments else "text")
    taught = abilities if row.templates else Abilities()
    alternates = frozenset((*row.alternates, *taught.template_alternates))
    media = own.user_media if row.media is None else frozenset(own.user_media & set(row.media))
    one_system = row.one_system or taught.template_system == "first"
    nowhere = not row.system or taught.template_system == "none"
    as_text = not row.tool_messages or not taught.tool_template
    word = is_json_mode(settings.get("response_format")) or (
        _is_schema_mode(settings) and row.answer_formats is not None and "json_schema" not in row.answer_formats
    )
    return replace(
        own,
        system="none" if nowhere else "top" if one_system else "inline",
        one_system=one_system,
        system_only=False,
        alternates=alternates,
        calls_as_text=as_text,
        first="user" if row.needs_user or taught.template_user or "user" in alternates else "any",
        last="user" if row.ends_with_user else "any",
        call_id_pattern=row.call_ids or taught.template_call_ids or own.call_id_pattern,
        call_id_max=NO_LIMIT if row.call_ids or taught.template_call_ids else own.call_id_max,
        name_pattern=row.tool_names or own.name_pattern,
        arguments="object" if row.parses_arguments and not as_text else "text",
        call_kinds=frozenset({"function"}),
        one_text=frozenset(row.texts),
        empty_text=row.empty,
        own_kinds=None,
        accepts=accepts(row, target.model),
        reasoning="own" if row.reasoning or row.details else "none",
        reasoning_needs_follower=not row.empty,
        not_followers=frozenset(OPAQUE_FIELDS) | {"response"},
        loop_needs_kind="reasoning_details" if _thinks_first(target, settings) else "",
        user_media=media,
        # A user's message may not follow results, so that there is no place for their media.
        result_media=frozenset() if "results" in alternates else media,
        media_mimes=own.media_mimes if row.media_types is None else frozenset(row.media_types),
        media_url_schemes=own.media_url_schemes if row.media_urls else frozenset(),
        word=JSON_WORD if word and row.json_word else None,
    )


def _is_schema_mode(settings: Mapping[str, Any]) -> bool:
    given = settings.get("response_format")
    return isinstance(given, Mapping) and given.get("type") == "json_schema"


def _thinks_first(target: Target, settings: Mapping[str, Any]) -> bool:
    names = target.server_row.thinks_first
    return bool(names and re.search(names, target.model.lower()) and wants_reasoning(settings))


def sdk_call(body: dict[str, Any], target: Target, streamed: bool) -> SdkCall:
    """The call that sends a body; a stream reports its usage if the server knows the setting for that."""
    options: dict[str, Any] = {"stream": True} if streamed else {}
    keys = target.server_row.body_keys
    if streamed and (keys is None or "stream_options" in keys or target.server_row.own_api):
        options["stream_options"] = {"include_usage": True}
    return SdkCall("chat.completions.create", {**body, **options}, extra_body=True)


def on_server(body: Object, target: Target, edits: Edits) -> Object:
    """The request as the target's server accepts it; each change is an edit. Doing it again changes nothing."""
    row, model = target.server_row, target.model or str(body.get("model") or "")
    if row.own_api and row.body_keys is None:
        return body
    fitting = _Fitting(row, model, edits, body)
    messages = body.get("messages")
    if isinstance(messages, list):
        fitted = [fitting.message(message, f"messages[{i}]") for i, message in enumerate(messages)]
        body = {**body, "messages": [message for message in fitted if message is not None]}
    body = changed(body, "tools", "", fitting.tool)
    return fitting.settings(body)


class _Fitting:
    """Fits the messages, tools and settings of one request to a row."""

    def __init__(self, row: Server, model: str, edits: Edits, body: Object) -> None:
        self.row = row
        self.model = model
        self.edits = edits
        self.thinking = False
        self.thinking = thinks(row, model, {key: body[key] for key in body if not self._is_refused(key, body[key])})
        self.title = row.title or "this server"
        abilities = model_abilities(model)
        self.one_system = row.one_system or (row.templates and abilities.template_system != "any")
        self.signed = row.signature if abilities.signed_calls else ""
        self.untaught = row.tools_by_template and not abilities.tool_template

    # -- messages ------------------------------------------------------------------------------------

    def message(self, message: Object, path: str) -> Object | None:
        """The message as the server accepts it; None if nothing of it can be sent."""
        row = self.row
        if row.own_api:
            return message
        role = message.get("role")
        accepted = row.roles if role != "developer" or not self.one_system else ()
        if role not in accepted:
            message = self._put(message, "role", "system" if role == "developer" else "user", path, "role")
        message = self._refusal(message, path)
        keys = row.message_keys
        for key in [key for key in message if key not in ("role", "content")]:
            if (key == "name" and not row.names) or (keys is not None and key not in keys and key != "name"):
                message = self._drop(message, key, path)
        message = self._content(message, path)
        if message["role"] == "assistant":
            message = self._reasoning(message, path)
            message = changed(message, "tool_calls", path, self._call)
            if self.signed:
                message = self._signed(message, path)
        if not row.empty and message["role"] != "tool" and not message.get("tool_calls") and _is_empty(message):
            self.edits.add("empty", path, "message without content left out", f"{self.title} refuses empty messages")
            return None
        return message

    def _refusal(self, message: Object, path: str) -> Object:
        """An answer whose refusals are texts: only OpenAI's own software has a key and a type for them."""
        message = changed(message, "content", path, self._plain)
        refusal, content = message.get("refusal"), message.get("content")
        if not isinstance(refusal, str) or not refusal:
            return message
        text = {"type": "text", "text": refusal}
        whole = [*content, text] if isinstance(content, list) else f"{content}\n{refusal}" if content else refusal
        rest = {key: value for key, value in message.items() if key != "refusal"}
        return self._put(rest, "content", whole, path, "part", "the refusal sent as text")

    def _plain(self, part: Object, path: str) -> Object:
        if part.get("type") != "refusal":
            return part
        self.edits.add("part", path, "the refusal sent as text", f"{self.title} knows no type for refusals")
        return {"type": "text", "text": part.get("refusal") or ""}

    def _content(self, message: Object, path: str) -> Object:
        content = message.get("content")
        if not isinstance(content, list):
            return message
        row = self.row
        if message["role"] in row.texts and all(_is_text(part) for part in content):
            text = "\n".join(str(part.get(part["type"]) or part.get("text") or "") for part in content)
            return self._put(message, "content", text, path, "part", "sent as one text")
        if row.part_keys is not None:
            message = changed(message, "content", path, self._part)
        return message

    def _part(self, part: Object, path: str) -> Object:
        for key in [key for key in part if key != "type" and key not in (self.row.part_keys or ())]:
            part = self._drop(part, key, path)
        return part

    def _reasoning(self, message: Object, path: str) -> Object:
        """An answer with calls, with something under the key for its reasoning if the server requires that."""
        stand_in, key = self.row.reasoning_of_calls, self.row.reasoning
        if stand_in is None or not self.thinking or not message.get("tool_calls"):
            return message
        if message.get(key) or message.get(key) == stand_in:
            return message
        return self._put(message, key, stand_in, path, "reasoning", "added, as another model made this answer")

    def _call(self, call: Object, path: str) -> Object:
        row = self.row
        keys = row.call_keys
        for key in list(call):
            is_signature = key == "extra_content" and row.signature != "call"
            if is_signature or (keys is not None and key not in keys):
                call = self._drop(call, key, path)
        if isinstance(call.get("function"), dict) and call.get("type") not in ("function", *row.call_types):
            call = self._put(call, "type", "function", path, "call")
        return call

    def _signed(self, message: Object, path: str) -> Object:
        """An answer whose first call is signed; calls of other models get the documented placeholder."""
        calls = message.get("tool_calls")
        first = calls[0] if isinstance(calls, list) and calls else None
        if not isinstance(first, dict):
            return message
        detail = "sent with the placeholder that Google documents, as another model made this call"
        if self.signed == "details":
            details = message.get("reasoning_details") or []
            if any(isinstance(each, Mapping) and each.get("data") for each in details):
                return message
            sign = {"type": "reasoning.encrypted", "data": PLACEHOLDER, "id": first.get("id"), "index": len(details)}
            signed = [*details, {**sign, "format": "google-gemini-v1"}]
            return self._put(message, "reasoning_details", signed, path, "signature", detail)
        given = first.get("extra_content")
        google = given.get("google") if isinstance(given, Mapping) else None
        if isinstance(google, Mapping) and google.get("thought_signature"):
            return message
        extra = {"google": {"thought_signature": PLACEHOLDER}}
        first = self._put(first, "extra_content", extra, at(path, "tool_calls[0]"), "signature", detail)
        return {**message, "tool_calls": [first, *(calls or ())[1:]]}

    # -- tools and settings --------------------------------------------------------------------------

    def tool(self, tool: Object, path: str) -> Object:
        """A tool's declaration as the server accepts it."""
        function = tool.get("function")
        if not isinstance(function, dict):
            return tool
        if self.row.tool_parameters and not function.get("parameters"):
            schema = {"type": "object", "properties": {}}
            function = self._put(function, "parameters", schema, at(path, "function"), "tool")
        if self.row.any_of_alone and isinstance(function.get("parameters"), dict):
            schema = _any_of_alone(function["parameters"])
            if schema != function["parameters"]:
                detail = "`type` left out beside `anyOf`"
                function = self._put(function, "parameters", schema, at(path, "function"), "tool", detail)
        return tool if function is tool["function"] else {**tool, "function": function}

    def settings(self, body: Object) -> Object:
        """The request with the settings that the server has."""
        row = self.row
        if self.untaught and "tools" in body:
            rule = f"{self.model} does not support tools"
            for key in ("tools", "tool_choice", "parallel_tool_calls"):
                body = self.edits.drop(body, key, rule) if key in body else body
        for ours, theirs in row.renamed.items():
            if ours in body:
                self.edits.add("setting", ours, f"sent as {theirs}", f"{self.title} knows no {ours!r}")
                value = body[ours]
                body = {key: inner for key, inner in body.items() if key != ours}
                body.setdefault(theirs, value)
        for key in [key for key in body if key not in ("model", "messages")]:
            known = row.body_keys is None or key in row.body_keys or (row.own_api and key in BODY.keys)
            if not known or self._is_refused(key, body[key]):
                body = self._drop(body, key, "", "setting")
        body = self._choice(self._answer_format(body))
        if row.unstreamed and not body.get("stream"):
            for key, value in row.unstreamed.items():
                if body.get(key) != value:
                    body = self._put(body, key, value, "", "setting", f"set to {brief(value)}: no stream is asked for")
        return body

    def _is_refused(self, key: str, value: Any) -> bool:
        row = self.row
        if key in row.refused or (self.thinking and key in row.refused_thinking):
            return True
        if key in row.ranges and isinstance(value, (int, float)):
            return isinstance(value, bool) or not row.ranges[key].fit(value)
        return key in row.only and value is not None and value not in row.only[key]

    def _answer_format(self, body: Object) -> Object:
        formats, given = self.row.answer_formats, body.get("response_format")
        kind = given.get("type") if isinstance(given, Mapping) else None
        if formats is None or kind is None or kind in formats:
            return body
        if kind == "json_schema" and "json_object" in formats:
            return self._put(body, "response_format", {"type": "json_object"}, "", "setting")
        return self._drop(body, "response_format", "", "setting")

    def _choice(self, body: Object) -> Object:
        allowed = self.row.tool_choice
        if self.thinking and self.row.tool_choice_thinking != "any":
            allowed = self.row.tool_choice_thinking
        given, choice = body.get("tool_choice"), tool_choice(body)
        if allowed == "any" or given in (None, "auto", "none") or (allowed == "words" and given == "required"):
            return body
        if allowed == "words" and choice in ("auto", "none"):
            return self._put(body, "tool_choice", choice, "", "setting")
        if allowed == "words":
            return self._put(body, "tool_choice", "required", "", "setting")
        return self._drop(body, "tool_choice", "", "setting")

    # -- edits ---------------------------------------------------------------------------------------

    def _drop(self, holder: Object, key: str, path: str, kind: str = "unknown_key") -> Object:
        return self.edits.drop(holder, key, f"{self.title} does not accept it", path=path, kind=kind)

    def _put(self, holder: Object, key: str, value: Any, path: str, kind: str, detail: str = "") -> Object:
        rule = f"{self.title} accepts no other form"
        return self.edits.put(holder, key, value, rule, path=path, detail=detail, kind=kind)


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _TEXTS


def _is_empty(message: Object) -> bool:
    """Whether a message has neither text nor media."""
    content = message.get("content")
    if not isinstance(content, list):
        return not content
    return all(_is_text(part) and not part.get(part["type"]) for part in content)


_SCHEMAS = lazy_pattern(r"^(default|examples|enum|const)$")
"""Keys of a schema whose values are data."""


def _any_of_alone(schema: Any) -> Any:
    """A schema without `type` beside `anyOf`, at every depth."""
    if isinstance(schema, list):
        return [_any_of_alone(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    alone = isinstance(schema.get("anyOf"), list)
    return {
        key: value if _SCHEMAS.search(key) else _any_of_alone(value)
        for key, value in schema.items()
        if not (alone and key == "type")
    }
