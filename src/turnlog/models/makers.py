"""The makers of models and the providers of their APIs: what must be known before a provider's folder is loaded.

`PROVIDER_ROWS` has a row for each provider. All else that is true of a provider is in its folder (`turnlog.providers`).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Sdk(Struct, frozen=True, kw_only=True):
    """A maker's official Python SDK: the class of its client, the environment variables with a key, and the base of its
    errors ("": ValueError). `address` is the path of keyword arguments by which the client is given a base URL."""

    module: str
    client: str
    keys: tuple[str, ...]
    errors: str = ""
    address: tuple[str, ...] = ("base_url",)


class Maker(Struct, frozen=True, kw_only=True):
    """A maker of models.

    `name` is its name in the table of models, the extra that installs its SDK, and the argument of `SdkRunner`. `words`
    are other words for it. `otel_name` is its name in OpenTelemetry's conventions. `provider` is the API in which its
    models are best spoken to, `imitated` the one that other makers' servers speak, "" if none do. Of several keys in
    the environment, `turnlog chat` uses that of the maker with the lowest `precedence`.

    `input_limit`, `output_limit` and `input_media` are assumed of an unknown model: the smallest among the current chat
    models in the table, to be safe. `cheap_model` writes summaries: the smallest that keeps names and numbers.
    `counted_as` begins the names of the models as which one without a name is counted, "" if their vocabulary is not
    known.
    """

    name: str
    words: tuple[str, ...] = ()
    otel_name: str
    provider: str
    imitated: str = ""
    sdk: Sdk
    precedence: int = 9
    input_limit: int
    output_limit: int
    input_media: frozenset[str]
    cheap_model: str
    counted_as: str = ""


class ProviderRow(Struct, frozen=True, kw_only=True):
    """A provider before its folder is loaded.

    `conversation` is the key of the request body that contains the conversation, a list; `system_keys` are the keys for
    system text. `model` is a widely available model, used if none is named. `framing` is the framing of OpenAI's
    counters, "" for models of other makers. `hosts` are other names that `turnlog.count` accepts, for hosts of the API
    that bill it differently. `module` is the module with its `PROVIDER`, "" for the folder of its name.
    """

    maker: Maker
    conversation: str
    system_keys: tuple[str, ...] = ()
    model: str
    framing: Literal["", "chat", "responses"] = ""
    hosts: tuple[str, ...] = ()
    module: str = ""
    path: str = ""
    held: tuple[str, ...] = ()


_ANTHROPIC = Maker(
    name="anthropic",
    otel_name="anthropic",
    provider="anthropic",
    sdk=Sdk(module="anthropic", client="AsyncAnthropic", keys=("ANTHROPIC_API_KEY",), errors="AnthropicError"),
    precedence=1,
    input_limit=200_000,
    output_limit=8_192,
    input_media=frozenset({"image", "document"}),
    cheap_model="claude-haiku-4-5",
    counted_as="claude",
)
_OPENAI = Maker(
    name="openai",
    otel_name="openai",
    provider="openai-responses",
    imitated="openai-chat",
    sdk=Sdk(module="openai", client="AsyncOpenAI", keys=("OPENAI_API_KEY",), errors="OpenAIError"),
    precedence=2,
    input_limit=128_000,
    output_limit=16_384,
    input_media=frozenset({"image"}),
    cheap_model="gpt-5-mini",
    counted_as="gpt-5",
)
_GOOGLE = Maker(
    name="google",
    words=("gemini",),
    otel_name="gcp.gemini",
    provider="google",
    sdk=Sdk(
        module="google.genai",
        client="Client",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        address=("http_options", "base_url"),
    ),
    precedence=3,
    input_limit=1_048_576,
    output_limit=8_192,
    input_media=frozenset({"image", "document", "audio", "video"}),
    cheap_model="gemini-2.5-flash-lite",
    counted_as="gemini",
)

PROVIDER_ROWS: dict[str, ProviderRow] = {
    "openai-chat": ProviderRow(
        maker=_OPENAI, conversation="messages", model="gpt-4o", framing="chat", path=r"(?P<base>.*)/chat/completions"
    ),
    "openai-responses": ProviderRow(
        maker=_OPENAI,
        conversation="input",
        system_keys=("instructions",),
        model="gpt-5",
        framing="responses",
        path=r"(?P<base>.*)/responses",
        held=("previous_response_id", "conversation", "background"),
    ),
    "anthropic": ProviderRow(
        maker=_ANTHROPIC,
        conversation="messages",
        system_keys=("system",),
        model="claude-sonnet-4-5",
        path=r"(?P<base>.*)/v1/messages",
    ),
    "google": ProviderRow(
        maker=_GOOGLE,
        conversation="contents",
        system_keys=("systemInstruction", "system_instruction"),
        model="gemini-2.5-pro",
        hosts=("google-vertex",),
        path=r"(?P<base>.*?)/v\w+/.*models/(?P<model>[^/:]+):(?:stream)?[gG]enerateContent",
        held=("cachedContent", "cached_content"),
    ),
    "google-interactions": ProviderRow(
        maker=_GOOGLE,
        conversation="input",
        system_keys=("system_instruction",),
        model="gemini-2.5-pro",
        path=r"(?P<base>.*?)/v\w+/(?:.*/)?interactions",
        held=("previous_interaction_id", "background"),
    ),
}
"""All providers, by name. Of several that a body may be for, the first one reads it."""


def makers() -> dict[str, Maker]:
    """All makers, by name, in the order in which keys for them are looked for."""
    found = {row.maker.name: row.maker for row in PROVIDER_ROWS.values()}
    return dict(sorted(found.items(), key=lambda item: item[1].precedence))


def maker_of(provider: str) -> Maker | None:
    """The maker of a provider's models. A name that is no provider's is one of the maker's that it begins with
    (`google-vertex`); None if there is none."""
    row = PROVIDER_ROWS.get(provider)
    return row.maker if row else makers().get(provider.partition("-")[0])


def default_model(provider: str) -> str:
    """A widely available model of a provider, "" for a name that is none's."""
    return PROVIDER_ROWS[provider].model if provider in PROVIDER_ROWS else ""


def api_of(name: str) -> str:
    """The provider whose host has that name; the name itself if it is no host's."""
    return next((provider for provider, row in PROVIDER_ROWS.items() if name in row.hosts), name)
