"""Change or leave out parts that a provider does not accept, one message at a time.

Nothing here looks at other messages, so the result for a message is always the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..._platform.lazy import lazy_pattern
from ..._platform.units import an
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    unchanged,
)
from ...log.texts import leaf_parts
from ...redaction.redactor import has_mark
from ..rules import Rules
from ..types import Edit, Loss, Shown, without_extras

# -- required word ---------------------------------------------------------------------------------
#
# Settings that require a word in the conversation.
#
# The word may leave a view with the message that contained it, so it is looked for in what is sent. If no message
# contains it, a message with it is added at the end: earlier messages, and so the prompt cache, stay as they are.


def contains_word(view: Sequence[Shown], rules: Rules) -> bool:
    """Whether a text of some message contains the word that the rules require; False if they require none."""
    required = rules.word
    if required is None:
        return False
    outside = required.outside
    return any(
        isinstance(part, Text) and required.word in part.text.lower()
        for shown in view
        if outside is None or not outside(shown.message)
        for part in leaf_parts(shown.message.parts)
    )


def add_word(view: list[Shown], rules: Rules, edits: list[Edit]) -> None:
    """Add a message with the word that the rules require; for views that do not contain it."""
    required = rules.word
    if required is None:
        return
    records = view[-1].records if view else ()
    view.append(Shown(Message("user", (Text(required.text),)), records, "synthetic"))
    edits.append(
        Edit("word", f"a user message added that says {required.word!r}: {required.setting} requires it", records)
    )


BLANK = "[blank message]"

_BELONGS_TO: dict[type, Role] = {ToolCall: "assistant", ToolResult: "user", Reasoning: "assistant"}

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def clean(view: Sequence[Shown], rules: Rules) -> tuple[list[Shown], list[Edit], list[Loss]]:
    """The messages as `rules` accept them, and the changes. Messages with no content left are left out."""
    cleaner = _Cleaner(rules)
    messages = [cleaned for shown in view if (cleaned := cleaner.shown(shown)) is not None]
    return messages, cleaner.edits, cleaner.losses


def sendable_name(name: str, rules: Rules) -> str:
    """A tool name that matches the rules. Unsuitable characters become `_`. A name that was changed or cut ends with a
    digest of the original name, so that two names never become the same."""
    return _fitting(name, rules.name_pattern, rules.name_max)


def is_sent_as(name: str, sent: str) -> bool:
    """Whether some rules send the tool of that name as `sent`."""
    if name == sent:
        return True
    stem, digest = _changed(name)
    begin = sent[: -len(digest) - 1]
    return sent.endswith(f"_{digest}") and stem.startswith((begin, begin.removeprefix("tool")))


@lru_cache(maxsize=1024)
def _fitting(name: str, pattern: str, longest: int) -> str:
    if len(name) <= longest and re.fullmatch(pattern, name):
        return name
    stem, digest = _changed(name)
    room = min(longest, 64) - len(digest) - 1
    fitting = f"{stem[:room]}_{digest}"
    return fitting if re.fullmatch(pattern, fitting) else f"tool{stem[: room - 4]}_{digest}"


@lru_cache(maxsize=1024)
def _changed(name: str) -> tuple[str, str]:
    """A name without unsuitable characters, and the digest of the original name."""
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "tool"
    if not re.match(r"[a-zA-Z_]", stem):
        stem = "_" + stem
    return stem, hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _extras(message: Message) -> str:
    """The end of a sentence that names the extra keys lost with a message that is left out."""
    added = (message.form.delta or {}).get("+", {}) if message.form is not None else {}
    return f" with {', '.join(sorted(added))}" if added else ""


def _is_url(url: str, schemes: frozenset[str]) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # `http://[`: brackets without an address
        return False
    return parts.scheme in schemes and bool(parts.netloc)


def is_blank(parts: Iterable[Part]) -> bool:
    """Whether the parts contain nothing but whitespace."""
    return all(isinstance(part, Text) and (not part.text or part.text.isspace()) for part in parts)


def _is_text(value: Any) -> bool:
    """Whether all strings of a JSON value can be sent. Encoding the value is the fastest way to find out."""
    try:
        msgspec.json.encode(value)
    except (UnicodeError, TypeError, ValueError, RecursionError):
        return False
    return True


def _begins_object(raw: str | None) -> bool:
    return raw is None or raw.lstrip().startswith("{")


class _Cleaner:
    """Cleans one message after another, and collects the changes."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.records: tuple[int, ...] = ()
        self.role: Role = "user"
        self.edits: list[Edit] = []
        self.losses: list[Loss] = []

    def shown(self, shown: Shown) -> Shown | None:
        self.records, self.role = shown.records, shown.message.role
        message = self.message(shown.message)
        if message is None:
            return None
        return shown if message is shown.message else shown.repaired(message)

    def message(self, message: Message) -> Message | None:
        parts: list[Part] = []
        for part in message.parts:
            cleaned = self.part(part)
            if cleaned is not None:
                parts.append(cleaned)
        name = self.text(message.name, "name")
        if not parts:
            return self._nothing_left(message)
        if not self.rules.blank_text and is_blank(parts):
            return self._empty(message)
        if message.role in self.rules.one_text:
            parts = self._with_one_text(parts)
        if name == message.name and unchanged(parts, message.parts):
            return message
        return msgspec.structs.replace(message, parts=tuple(parts), name=name)

    def _nothing_left(self, message: Message) -> Message | None:
        """What is sent for a message without parts. If its parts were left out, the edits say so already; only a
        message that was empty from the start is reported as empty."""
        said_nothing = all(isinstance(part, Text) and not part.text for part in message.parts)
        return self._empty(message) if said_nothing else None

    def _empty(self, message: Message) -> Message | None:
        """Handle a message without content: a user message becomes a placeholder, others leave the view."""
        if message.role != "user":
            self.edits.append(Edit("empty", f"empty {message.role} message{_extras(message)} left out", self.records))
            return None
        self.edits.append(Edit("empty", f"empty user message{_extras(message)} shown as a placeholder", self.records))
        return Message(role="user", parts=(Text(BLANK),), name=message.name)

    def part(self, part: Part) -> Part | None:
        if _BELONGS_TO.get(type(part), self.role) != self.role:
            what = type(part).__name__
            self.edits.append(Edit("misplaced", f"{what} in {an(self.role)} message left out", self.records))
            return None
        match part:
            case Text():
                return self._text_part(part)
            case Media():
                allowed = self.rules.user_media if self.role == "user" else self.rules.assistant_media
                return self._media(part, allowed if self.role != "system" else frozenset())
            case Reasoning():
                return self._reasoning(part)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case Opaque():
                return self._opaque(part)
            case Unknown():
                self.losses.append(Loss("unknown", f"part of unknown kind {part.kind!r} left out", self.records))
                return None

    def text(self, text: str, what: str) -> str:
        if text.isascii():
            return text
        try:
            text.encode()  # faster than searching for a surrogate
        except UnicodeEncodeError:
            self.edits.append(Edit("text", f"lone surrogates in {what} sent as U+FFFD", self.records))
            return _SURROGATE.sub("\ufffd", text)
        return text

    def _text_part(self, part: Text) -> Text | None:
        if not part.text and not self.rules.empty_text:
            return None
        text = self.text(part.text, "text")
        return part if text is part.text else msgspec.structs.replace(part, text=text)

    def _media(self, media: Media, allowed: frozenset[str]) -> Media | Text:
        why = self._refused_for(media, allowed)
        if not why:
            return media
        label = media.name or media.mime or media.kind
        size = f", {media.size:,} bytes" if media.size else ""
        bare = f"{media.kind} {label}{size} shown as a placeholder{without_extras(media.form)}"
        self.losses.append(Loss("media", f"{bare}: {why}", self.records))
        return Text(f"[{media.kind} left out ({label}{size}): {why}]")

    def _refused_for(self, media: Media, allowed: frozenset[str]) -> str:
        rules = self.rules
        if media.kind not in allowed and media.mime not in allowed:
            return f"this model takes no {media.kind} here"
        if not (media.sha256 or media.url or media.file_id):
            return "it has no source"
        if media.sha256 and not media.size:
            return "it is empty"
        if media.file_id and media.provider != rules.provider and media.provider not in rules.files_of:
            return f"a file of {media.provider or 'another provider'} cannot be sent to this one"
        if media.url and not _is_url(media.url, rules.media_url_schemes):
            return "this provider takes no such address"
        if media.sha256 and rules.media_mimes and media.mime not in rules.media_mimes:
            return f"this provider takes no {media.mime or 'media of unknown type'}"
        if media.sha256 and (media.size + 2) // 3 * 4 > rules.media_max_base64:
            return f"larger than {rules.media_max_base64:,} characters of base64"
        return ""

    def _reasoning(self, part: Reasoning) -> Reasoning | None:
        rules = self.rules
        if part.provider != rules.provider or rules.reasoning == "none":
            self.losses.append(Loss("reasoning", f"reasoning of {part.provider} left out", self.records))
            return None
        if any(_SURROGATE.search(text) for text in (part.text, *part.summary)):
            self.edits.append(Edit("reasoning", "reasoning that is not valid text left out", self.records))
            return None
        proof = part.encrypted if rules.reasoning == "encrypted" else part.signature or part.encrypted
        if rules.reasoning != "own" and not proof:
            self.edits.append(
                Edit("reasoning", "reasoning without its signature or encrypted form left out", self.records)
            )
            return None
        if rules.reasoning == "signed" and has_mark(part.text):  # the signature belongs to the original text
            self.edits.append(Edit("reasoning", "signed reasoning that was redacted left out", self.records))
            return None
        if rules.reasoning == "signed" and part.text and not part.signature:
            detail = "text of encrypted reasoning left out, as it has no signature; the encrypted part is sent"
            self.edits.append(Edit("reasoning", detail, self.records))
            return msgspec.structs.replace(part, text="")
        return part

    def _call(self, call: ToolCall) -> ToolCall:
        changes: dict[str, Any] = {}
        name = sendable_name(call.name, self.rules)
        if name != call.name:
            changes["name"] = name
            self.edits.append(Edit("name", f"call of tool {call.name!r} sent with the name {name!r}", self.records))
        if call.raw is not None:
            raw = self.text(call.raw, "arguments")
            if raw is not call.raw:
                changes["raw"] = raw
        if self.rules.arguments == "object" and isinstance(call.arguments, dict) and not _begins_object(call.raw):
            changes["raw"] = None  # JSON of a JSON text
        arguments = call.arguments if _is_text(call.arguments) else self.json(call.arguments)
        if arguments is not call.arguments:
            changes["arguments"] = arguments
        as_function = call.kind == "function" or call.kind not in (*self.rules.call_kinds, "custom")
        says_nothing = call.kind == "function" and arguments is None and not (call.raw or "").strip()
        if says_nothing and (call.raw is not None or self.rules.arguments == "object"):
            changes["arguments"], changes["raw"] = {}, None
            self.edits.append(Edit("arguments", f"empty arguments of {name!r} sent as {{}}", self.records))
        elif as_function and self.rules.arguments == "object" and not isinstance(arguments, dict):
            raw_text = changes.get("raw", call.raw)
            changes["arguments"] = {"input": arguments if raw_text is None or arguments is not None else raw_text}
            changes["raw"] = None
            self.edits.append(
                Edit("arguments", f'arguments of {name!r} are not an object: sent as {{"input": ...}}', self.records)
            )
        return msgspec.structs.replace(call, **changes) if changes else call

    def json(self, value: Any) -> Any:
        """`value` with lone surrogates replaced at every depth; the same object if there are none."""
        if isinstance(value, str):
            return self.text(value, "arguments")
        if isinstance(value, list):
            items = [self.json(item) for item in value]
            return value if unchanged(items, value) else items
        if isinstance(value, dict):
            pairs = [(self.json(key), self.json(item)) for key, item in value.items()]
            if all(key is old and item is value[old] for (key, item), old in zip(pairs, value, strict=True)):
                return value
            return dict(pairs)
        return value

    def _result(self, result: ToolResult) -> ToolResult:
        parts: list[Text | Media | Opaque | Unknown] = []
        for part in result.parts:
            cleaned: Part | None = part
            if isinstance(part, Media):
                cleaned = self._media(part, self.rules.result_media)
            elif isinstance(part, (Text, Opaque, Unknown)):
                cleaned = self.part(part)
            if isinstance(cleaned, (Text, Media, Opaque, Unknown)):
                parts.append(cleaned)
        if "tool" in self.rules.one_text:
            parts = self._with_one_text(parts)
        if unchanged(parts, result.parts):
            return result
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _may_hold(self, part: Opaque) -> bool:
        """Whether a message of this role may contain the part. The provider's own calls and their answers belong in
        assistant messages; system text that is sent apart from the messages cannot contain opaque parts."""
        if part.kind in self.rules.system_parts:
            return self.role == "system" and self.rules.system == "top_or_after_user"
        if self.role == "assistant":
            return True
        is_own = part.kind in self.rules.own_calls or bool(re.fullmatch(self.rules.own_answer, part.kind))
        return not is_own and (self.role == "user" or self.rules.system == "inline")

    def _opaque(self, part: Opaque) -> Opaque | None:
        if part.provider == self.rules.provider:
            if self.rules.own_kinds is not None and part.kind not in self.rules.own_kinds:
                self.losses.append(Loss("opaque", f"{part.kind} left out: this model does not accept it", self.records))
                return None
            if self.rules.accepts is not None:
                return self._accepted(part)
            if self._may_hold(part):
                return part
            self.losses.append(Loss("opaque", f"{part.kind} in {an(self.role)} message left out", self.records))
            return None
        self.losses.append(Loss("opaque", f"{part.kind} of {part.provider} left out", self.records))
        return None

    def _accepted(self, part: Opaque) -> Opaque | None:
        """The part as the server accepts it. A loss says what it does not accept; what only answers have is no loss."""
        accepted = self.rules.accepts(part) if self.rules.accepts is not None else part
        if accepted is not part and part.kind != "response":
            what = f"{part.kind} left out" if accepted is None else f"a part of {part.kind} left out"
            self.losses.append(Loss("opaque", f"{what}: this server does not accept it", self.records))
        return accepted

    def _with_one_text(self, parts: list[Any]) -> list[Any]:
        """The parts with one text, at the place of the first; as they are if there are media among them."""
        texts = [part for part in parts if isinstance(part, Text)]
        if len(texts) < 2 or any(isinstance(part, Media) for part in parts):
            return parts
        self.edits.append(Edit("part", "texts sent as one", self.records, "expected a string, got an array"))
        joined = Text("\n".join(text.text for text in texts))
        first = next(i for i, part in enumerate(parts) if part is texts[0])
        rest = [part for part in parts if not isinstance(part, Text)]
        return [*rest[:first], joined, *rest[first:]]
