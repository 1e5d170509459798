"""The provider protocol: a reader and a writer of a wire format.

Readers accept what SDKs return, objects or dicts; writers return plain dicts to pass to an SDK call. Both are pure
functions: media bytes are passed by hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field

from .._platform.lazy import lazy_pattern
from ..errors import BlobMissing
from ..log.messages import Message, Opaque, Part, Tool
from ..log.records import Configuration
from ..log.usage import Usage
from ..models.makers import PROVIDER_ROWS, ProviderRow
from ..models.target import Target
from ..view.rules import Rules
from ..view.types import Edit, Loss, Shown

if TYPE_CHECKING:  # the schemas that it names need this module
    from .signs import Signs

BlobReader = Callable[[str], bytes]
"""Returns media bytes for a hex SHA-256; raises BlobMissing."""

SettingPaths = Mapping[str, tuple[str, ...]]
"""The paths of settings that several providers share: common name -> path of keys in the body.

Common names: `max_output_tokens`, `temperature`, `top_p`, `stop` (a list of strings), `stream`, and others that more
than one provider has for all its models.
"""

_NOT_CACHED = frozenset(
    """background diagnostics frequency_penalty include logit_bias logprobs max_completion_tokens max_output_tokens
    max_tokens metadata n presence_penalty prompt_cache_options safety_identifier seed stop stop_sequences store stream
    stream_options temperature top_k top_logprobs top_p user""".split()
)

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
"""Settings that both of OpenAI's APIs have under the same name."""


class Parsed(Struct, frozen=True, kw_only=True):
    """A parsed request body: its messages in order (including leading system text), everything else as a configuration,
    and its media bytes by hash."""

    messages: tuple[Message, ...]
    configuration: Configuration
    blobs: dict[str, bytes] = {}

    def blob(self, sha256: str) -> bytes:
        """The media bytes with that hash. Raises BlobMissing."""
        if sha256 not in self.blobs:
            raise BlobMissing(f"no media with hash {sha256} in this request")
        return self.blobs[sha256]


class Compacted(Struct, frozen=True, kw_only=True):
    """A provider's compaction of the messages it was sent.

    `window` are the messages that it wants instead from now on. `summary` is its summary, "" if only the provider can
    read it. `through` is the number of parts at the beginning of the answer that `window` covers too.
    """

    window: tuple[Message, ...]
    summary: str = ""
    through: int = 0


Stop = Literal["end", "tool_calls", "length", "refusal", "filtered", "interrupted"]
"""How an answer ended, in the same words for every provider. `end`: the model was done. `tool_calls`: it waits for
results. `length`: a limit cut it off. `refusal`: the model declined. `filtered`: the provider withheld the answer, or
the rest of it. `interrupted`: the stream broke off, or the provider failed."""


_FAILED = lazy_pattern(r"(?i)error|fail|malformed|abort|interrupt|cancel|time_?d?_?out|overload|unavailable")
"""Words of failures, such as `network_error` (Z.ai, opencode, hermes-agent#92161), `error` (OpenRouter),
`malformed_function_call` (Gemini behind a gateway, hermes-agent#83882) and `abort` (vLLM, SGLang)."""


def meaning(word: str, stops: Mapping[str, Stop]) -> Stop | None:
    """What a word for the end of an answer means, by the provider's table or as it says of itself that something
    failed; None if the parts of the answer decide."""
    known = stops.get(word)
    return "interrupted" if known is None and _FAILED.search(word) else known


class CacheMiss(Struct, frozen=True):
    """What a provider says about a prompt-cache miss: the `reason` in its own words ("" if it found no change), and
    what may have `changed` (see `CacheUse.changed`; empty if the reason does not tell)."""

    reason: str
    changed: frozenset[str]


class Reply(Struct, frozen=True, kw_only=True):
    """A model's answer, complete or the part that arrived.

    `complete` is False if the stream ended early; `error` is then the reason, if known. `fragments` are tool calls
    whose arguments are incomplete; they are not part of `message`. `beside` is information for people that is not sent
    to a model, for example Google's sources. `remark` is a sentence about what the provider left out of the request, ""
    if nothing. `compacted` is set if the provider compacted the conversation, `cache_miss` if it said anything about a
    miss of its cache.
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
    remark: str = ""
    cache_miss: CacheMiss | None = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    compacted: Compacted | None = None


class Rendered(Struct, frozen=True, gc=False, kw_only=True):
    """A request body, and the losses and edits made while creating it. `gives` and `asks` as in `LinkedRenderer`."""

    body: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    edits: tuple[Edit, ...] = ()
    gives: frozenset[str] = frozenset()
    asks: frozenset[str] = frozenset()


class CacheMarks(Struct, frozen=True, gc=False):
    """Where prompt-cache marks are best placed in a request: after the `messages` with these indices, the last of which
    is the end of the request. `key` is the same for all requests of a conversation. With `long`, cache entries are kept
    for longer, if the provider offers that."""

    messages: tuple[int, ...]
    key: str = ""
    long: bool = False


class ToolNews(Struct, frozen=True, kw_only=True):
    """What an item of a conversation says about the model's tools: those that it adds, defined or only named, and the
    names of those that it removes."""

    added: tuple[Tool | str, ...] = ()
    removed: tuple[str, ...] = ()


class Delta(Struct, frozen=True, gc=False):
    """Text that a chunk of a stream adds to an answer, or to its reasoning."""

    kind: Literal["text", "reasoning"]
    text: str


class OnDemand(Struct, frozen=True, kw_only=True):
    """How a provider keeps tools back until the model asks for them by `find_tools`.

    `declared`: returns the declaration of a tool that is kept back, None if it has none. `search`: the declaration of
    `find_tools`. `found`: returns the content of the result that loads tools. `searches_itself`: calls and results of
    `find_tools` are of the kind `tool_search`, else of the usual kind.
    """

    declared: Callable[[Tool], Tool | None]
    search: Tool
    found: Callable[[Sequence[Tool]], tuple[Opaque, ...]]
    searches_itself: bool = False


class Assembler(Protocol):
    """Assembles a streamed answer."""

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Process the next chunk: an SDK event object, or its JSON as a dict. Returns the text that it adds; text that
        a server does not send piece by piece is only in the reply. Raises FormatError."""

    def reply(self) -> Reply:
        """The answer so far. It is `complete` only once the provider's own end of the stream has arrived."""


class Renderer(Protocol):
    """Writes a view as a request body."""

    def __call__(
        self, view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader
    ) -> Rendered:
        """Render the view and declare losses; nothing is repaired.

        `configuration` uses this provider's terms, with the target's settings merged in. Forms of this provider are
        replayed.
        """


class LinkedRenderer(Protocol):
    """Writes a part of a view whose form depends on earlier parts."""

    def __call__(
        self,
        view: Sequence[Shown],
        configuration: Configuration,
        target: Target,
        blob: BlobReader,
        earlier: Collection[str],
    ) -> Rendered:
        """As `Renderer`, for a part of a request. Words that only this provider reads link the parts: `Rendered.gives`
        are the words for the part itself, `Rendered.asks` those on which its form depends, and `earlier` those that the
        parts before it gave."""


class SdkCall(Struct, frozen=True):
    """A call of the maker's SDK: the path of a method from its client, and the arguments. `extra_body`: the method has
    an argument of that name for keys that are not its own arguments."""

    method: str
    arguments: dict[str, Any]
    extra_body: bool = False


def sdk_method(
    method: str, *, extra_body: bool = True, **streaming: Any
) -> Callable[[dict[str, Any], Target, bool], SdkCall]:
    """A function that makes calls of a method that takes a body as its arguments, with these too if the answer is
    streamed."""
    return lambda body, target, streamed: SdkCall(method, {**body, **(streaming if streamed else {})}, extra_body)


def _nothing(view: Sequence[Shown], tools: Iterable[Tool], settings: Mapping[str, Any], now: str) -> dict[str, Any]:
    return {}


class Provider(Struct, frozen=True, kw_only=True):
    """One wire format: its functions and facts."""

    name: str

    setting_paths: SettingPaths

    settings: frozenset[str]
    """The keys at the top level of a request."""

    signs: Signs
    """The other words of its requests, by which they are recognised."""

    parse: Callable[[Mapping[str, Any]], Parsed]
    """Reads a request body. Raises FormatError with the path of the value that cannot be read."""

    declares: Callable[[Mapping[str, Any]], bool]
    """Whether a tool declaration is in this provider's format and in no other provider's. Hosted tools, for example a
    search, are recognised by their type alone."""

    declares_rest: bool = False
    """Whether `declares` is asked last, because it accepts declarations that other providers recognise as theirs."""

    parse_response: Callable[[Any], Reply]
    """Reads a whole response. Raises FormatError; for an error body, with the provider's message."""

    answer_keys: tuple[str, ...]
    """Keys with the content of an answer. A body with such a key and an error is an interrupted answer."""

    chunk_keys: tuple[str, ...]
    """Attributes of SDK objects: each whole answer and each chunk that is not an event with a type has one of them."""

    assembler: Callable[[], Assembler]
    """Creates an assembler for one streamed answer."""

    sdk_call: Callable[[dict[str, Any], Target, bool], SdkCall]
    """The call that sends a body to a target, with the answer streamed or whole."""

    user_message: Callable[[str], dict[str, Any]] = lambda text: {"role": "user", "content": text}
    """A text of the user as an element of the conversation."""

    answer_schemas: tuple[tuple[str, ...], ...] = ()
    """Where settings contain the schema for the answer, as paths of keys. Keys may also be spelled with underscores."""

    answer_forms: tuple[Mapping[str, Any], ...] = ()
    """The settings that ask for an answer by a schema, as `providers/answer_forms.py` reads and writes them. The first
    is written; none if the provider has no such settings."""

    effort_form: Mapping[str, Any] = {}
    """The setting for how much the model reasons, in the same way; empty if there is none."""

    answers_loosely: bool = False
    """Whether these settings take schemas that are not strict."""

    answers_recursively: bool = False
    """Whether they take schemas that contain themselves."""

    answer_limits: Mapping[str, int] = {}
    """How large a strict schema may be for them, in the words of `strict_schemas.sizes`."""

    rules: Callable[[Target, Mapping[str, Any]], Rules]
    """What this model accepts, given the request's settings."""

    render: Renderer

    render_linked: LinkedRenderer | None = None
    """Writes a part of a view, if its form depends on the parts before it; None if it never does."""

    render_as_recorded: Renderer | None = None
    """As `render`, but joins no messages, and keeps ids that the provider would refuse; None if `render` does so."""

    sanitize: Callable[[dict[str, Any], Target], Rendered]
    """Removes what the provider would refuse, except for the order of the conversation: unknown keys, settings that
    exclude each other, missing limits. Each change is an edit."""

    stops: Mapping[str, Stop]
    """The meaning of the provider's words for the end of an answer. For other words, the parts of the answer decide."""

    tool_choice: Callable[[Mapping[str, Any]], str | None]
    """The tool choice in common words: `auto`, `none`, `required`, `tool:NAME`, or None."""

    with_tool_choice: Callable[[dict[str, Any], str], dict[str, Any]]
    """Settings with a tool choice, given in common words."""

    refusals: frozenset[str] = frozenset()
    """The words in the form of a text with which the model declines."""

    older_paths: SettingPaths = {}
    """Older names of some of these settings that the provider still accepts."""

    turns_of_steps: bool = False
    """Whether a body has a message for each step of a turn that the model reads as one message; such steps are counted
    as one."""

    deferred: Literal["", "tool", "schema"] = ""
    """The part of a tool with `defer_loading` that enters the prompt only when a search has found the tool: nothing,
    the whole tool, or its schema."""

    billed_by: Callable[[Parsed], str] | None = None
    """The provider, or one of its `hosts`, that a request was made for; None if nothing in a request tells hosts
    apart."""

    counted_key: str = ""
    """A key of messages that may occur only a few times in a whole request, for example a cache mark."""

    text_documents: bool = True
    """Whether the provider accepts plain-text files; if not, their text becomes part of the message."""

    knows: Callable[[Opaque], bool] = lambda part: True
    """Whether the provider accepts this opaque part, one of its own, in a request."""

    unread_media: Callable[[Opaque], str] = lambda part: ""
    """The kind of media (`image`, `document`, ...) that an opaque part of the provider is in its format; "" for other
    parts. Such a part was kept whole, because its media could not be read."""

    on_demand: OnDemand | None = None
    """How tools are kept back until the model asks for them, for models that can find deferred tools."""

    search_tool: Tool | None = None
    """The provider's own search for deferred tools."""

    tool_news: Callable[[Opaque], ToolNews] = lambda part: ToolNews()
    """What one of the provider's own items says about the model's tools."""

    client_tools: Callable[[Tool], tuple[Tool, ...]] = lambda tool: ()
    """The tools that the client runs in a declaration of the provider's own, for example a namespace."""

    tool_changes: Callable[[Sequence[Tool], Sequence[Tool], Sequence[Tool]], tuple[Opaque, ...] | None] = (
        lambda declared, before, now: None
    )
    """The parts of a system message that change the model's tools in the middle of a conversation: from the second to
    the third, if the request declares the first. None if no parts can express it."""

    handed_on: Callable[[Sequence[Shown], Iterable[Tool], Mapping[str, Any], str], dict[str, Any]] = _nothing
    """Settings that the answers of a view hand on to the next request, beside tools and settings, at the time of the
    newest record ("" if it is not known)."""

    without_thinking: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    """Settings with thinking switched off, for providers that require this in a tool loop that another provider
    began."""

    mark_cache: Callable[[dict[str, Any], CacheMarks], dict[str, Any]] | None = None
    """Adds prompt-cache marks to a request, for providers that use cache marks. A request that has marks or a key keeps
    them."""

    not_cached: frozenset[str] = _NOT_CACHED
    """The keys of settings that may differ between requests that share a cache."""

    marks_every_model: bool = True
    """Whether requests to all models may have cache marks; else only those to models whose cache has breakpoints."""

    after_compaction: Callable[[Sequence[Message]], Sequence[Message]] = lambda messages: messages
    """The messages of a body that the model reads: those from the provider's last compaction on."""

    takes_out: Callable[[Mapping[str, Any]], frozenset[str]] = lambda settings: frozenset()
    """The strategy steps that the provider performs itself, given the settings of a request."""

    compaction_request: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """Turns a request body into the body that asks the provider to compact this conversation; None if it cannot."""

    required_settings: Callable[[Target], dict[str, Any]] = lambda target: {}
    """Settings that every request made by turnlog must have."""

    @property
    def row(self) -> ProviderRow:
        """What is known of the provider before its folder is loaded."""
        return PROVIDER_ROWS[self.name]

    @property
    def conversation(self) -> str:
        """The key of the request body that contains the conversation, a list."""
        return self.row.conversation
