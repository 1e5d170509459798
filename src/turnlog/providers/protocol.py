"""What a provider is to the rest of turnlog: a reader and a writer of its wire format.

Readers accept what SDKs return, objects or dicts; writers return plain dicts to splat into an SDK
call. Both are pure: media bytes come and go by hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from ..errors import BlobMissing
from ..log.messages import Message, Opaque, Part
from ..log.records import Configuration, Usage
from ..models.target import Target
from ..view.rules import Rules
from ..view.types import Edit, Loss, Shown

BlobReader = Callable[[str], bytes]
"""Media bytes by hex SHA-256; raises BlobMissing."""

SettingPaths = Mapping[str, tuple[str, ...]]
"""Where a provider keeps the settings that all share: common name -> path of keys in the body.

Common names: `max_output_tokens`, `temperature`, `top_p`, `stop` (a list of strings), `stream`; where several have it
and each of their models takes it, others."""

OPENAI_SETTINGS: SettingPaths = {
    name: (name,)
    for name in (
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    )
}
"""What both of OpenAI's APIs have under one name."""


class Parsed(Struct, frozen=True, kw_only=True):
    """A request body, read: its messages in order (leading system text included), everything else
    as a configuration, and the media bytes it carried, by hash."""

    messages: tuple[Message, ...]
    configuration: Configuration
    blobs: dict[str, bytes] = {}

    def blob(self, sha256: str) -> bytes:
        """The media bytes of that hash. Raises BlobMissing."""
        if sha256 not in self.blobs:
            raise BlobMissing(f"no media with hash {sha256} in this request")
        return self.blobs[sha256]


class Reply(Struct, frozen=True, kw_only=True):
    """A model's answer, whole or as far as it came.

    `complete` is False if the stream ended early; `error` then says what is known. `fragments` are
    tool calls whose arguments had not fully come; they are not part of `message`. `beside` is what the answer tells
    people and no model is sent: Google's sources.
    """

    message: Message
    usage: Usage | None = None
    raw_usage: Any = None
    model: str = ""
    stop: str = ""
    response_id: str = ""
    complete: bool = True
    error: str = ""
    fragments: tuple[Part, ...] = ()
    beside: dict[str, Any] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


class Rendered(Struct, frozen=True, gc=False, kw_only=True):
    """A request body as the provider takes it, and what it could not express."""

    body: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    edits: tuple[Edit, ...] = ()


class Assembler(Protocol):
    """Puts a streamed answer together."""

    def feed(self, chunk: Any) -> None:
        """Take the next chunk: an SDK event object, or its JSON as a dict. Raises FormatError."""

    def reply(self) -> Reply:
        """The answer so far. `complete` only after the provider's own end of the stream."""


class Renderer(Protocol):
    """Spells a view as a request body."""

    def __call__(
        self, view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader
    ) -> Rendered:
        """Never repairs: renders what is there, declares losses.

        `configuration` is in this provider's terms. What a part's own `Form` says is replayed.
        """


def _unchanged(settings: Mapping[str, Any]) -> dict[str, Any]:
    return dict(settings)


def _always(part: Opaque) -> bool:
    return True


def _nothing(target: Target) -> dict[str, Any]:
    return {}


class Provider(Struct, frozen=True, kw_only=True):
    """One wire format: its functions, side by side."""

    name: str

    conversation: str
    """The key of a request body under which the conversation stands, a list."""

    setting_paths: SettingPaths

    parse: Callable[[Mapping[str, Any]], Parsed]
    """Reads a request body. Raises FormatError with the path of what cannot be read."""

    parse_response: Callable[[Any], Reply]
    """Reads a whole response. Raises FormatError, for a body that is nothing but an error with what that says."""

    assembler: Callable[[], Assembler]
    """A fresh assembler for one streamed answer."""

    rules: Callable[[Target, Mapping[str, Any]], Rules]
    """What this model accepts, given the request's settings."""

    render: Renderer

    sanitize: Callable[[dict[str, Any], Target], Rendered]
    """The request without what the provider would refuse outside the conversation's order: unknown
    keys, settings that exclude each other, missing required limits. Each an edit."""

    tool_choice: Callable[[Mapping[str, Any]], str | None]
    """The tool choice in common words: `auto`, `none`, `required`, `tool:NAME`, or None."""

    with_tool_choice: Callable[[dict[str, Any], str], dict[str, Any]]
    """Settings with a tool choice given in common words."""

    older_paths: SettingPaths = {}
    """Where a provider takes some of these settings too, under a name that a newer one took the place of."""

    counted_key: str = ""
    """A key of messages of which a whole request may hold only so many."""

    text_documents: bool = True
    """Whether it takes files of plain text; else what they say stands in the message."""

    knows: Callable[[Opaque], bool] = _always
    """Whether an opaque part of this provider's own is one that it takes in requests."""

    without_thinking: Callable[[Mapping[str, Any]], dict[str, Any]] = _unchanged
    """Settings with thinking switched off, for providers that need it in a foreign tool loop."""

    mark_cache: Callable[[dict[str, Any], Sequence[int]], dict[str, Any]] | None = None
    """A request with prompt-cache marks behind these of its messages, for providers that want marks."""

    required_settings: Callable[[Target], dict[str, Any]] = _nothing
    """Settings that no request may be without, for requests of our own making."""
