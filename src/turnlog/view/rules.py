"""What a provider accepts, as data.

`view.repair` takes these rules as an argument and knows no provider by name. For a model that behaves differently, add
a value here or in the provider's module, not a branch elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from ..log.messages import Message, Opaque, ToolCall

NO_LIMIT = 1 << 62


class RequiredWord(Struct, frozen=True, kw_only=True):
    """A word that some message must contain, in any case, because a setting requires it."""

    word: str
    """The word, in lower case."""

    setting: str
    """The setting that requires the word, as an edit names it."""

    text: str
    """A text with the word, added in a message if no other message contains the word."""

    outside: Callable[[Message], bool] | None = None
    """Which messages are sent as a setting, where the provider does not look for the word."""


class Rules(Struct, frozen=True, kw_only=True):
    """The rules that one provider's requests for one model must satisfy. Lengths are in characters.

    Each field says what is *required*; repair makes the smallest change that satisfies it.
    """

    provider: str
    """Name of the provider. Parts that are bound to it stay; parts bound to another provider leave the view."""

    results: Literal["adjacent", "counted", "later"]
    """Where the results of calls must be. `adjacent`: in the messages directly after the calls, before anything else.
    `counted`: in the next turn, exactly as many as calls, possibly among other content. `later`: anywhere after the
    call."""

    merge_calls: bool
    """Whether calls that are answered together must be in one message (parallel calls that were recorded in several
    messages are joined)."""

    calls_last: bool = False
    """Whether text and media of an answer must not come between its calls and their results."""

    results_apart: bool = False
    """Whether each result must be a message of its own."""

    results_together: Literal["", "added", "all"] = ""
    """Which results of one answer's calls are best sent in one message, although they were recorded one by one: `all`
    in requests that turnlog builds itself; in a request that the caller gave, those that repair `added`."""

    results_in_one: bool = False
    """Whether the results of calls that are answered together must be in one message."""

    first: Literal["any", "not_call", "user"]
    """What a conversation may start with, apart from system text."""

    last: Literal["any", "user"]
    """What a conversation may end with. `user`: the last message must not be an assistant's (no prefill)."""

    strip_last: bool
    """Whether the provider refuses trailing whitespace in a final assistant text."""

    system: Literal["inline", "top", "top_or_after_user", "none"]
    """Where system text may be. `inline`: anywhere. `top`: before all messages. `top_or_after_user`: there, and after a
    user turn that is followed by an assistant message or the end. `none`: nowhere."""

    one_system: bool = False
    """Whether system text must be one message."""

    alternates: frozenset[Literal["user", "assistant", "results"]] = frozenset()
    """Roles of which two messages in a row are refused, so that they are joined. `results`: a user's message may not
    directly follow results, so that an answer is put between them."""

    calls_as_text: bool = False
    """Whether calls and results have to be sent as texts."""

    system_appended: bool = False
    """Whether system text that replaces other text is added to the conversation where the change was made. Otherwise,
    the text at the beginning is changed. Applies only to requests of sessions."""

    tools_appended: bool = False
    """Whether changes of the tools are added to the conversation in the same way."""

    system_parts: frozenset[str] = frozenset()
    """Kinds of `Opaque` parts that only system messages may contain."""

    calls_elsewhere: bool = False
    """Whether the provider may have stored calls outside the request: then results without a call stay, and the request
    needs no message."""

    tools_required: bool = False
    """Whether a request with calls or results must declare tools."""

    system_only: bool = False
    """Whether a request with nothing but system text is accepted."""

    call_id_pattern: str = r".+"
    call_id_max: int = NO_LIMIT
    call_id_unique: Literal["turn", "view"] = "turn"
    """The ids of calls that repair leaves as they are; it replaces all others by derived ids."""

    sent_without_id: Callable[[ToolCall], bool] | None = None
    """Which calls are sent without an id, so that only the order shows which result of a tool belongs to which call."""

    name_pattern: str = r".+"
    name_max: int = NO_LIMIT
    """Names that tools may have in declarations, calls and results."""

    arguments: Literal["text", "object"]
    """`object`: arguments that are not a JSON object are wrapped as `{"input": ...}`."""

    call_kinds: frozenset[str] = frozenset({"function"})
    """Kinds of calls that the provider supports; others are shown as function calls."""

    failed_says: str = ""
    """If set, the text to put into a failed result without text, as the provider requires one."""

    one_text: frozenset[Literal["system", "user", "assistant", "tool"]] = frozenset()
    """The roles of messages (`tool`: results) whose texts must be one, unless they have media."""

    empty_text: bool = False
    """Whether an empty text part is accepted."""

    blank_text: bool = True
    """Whether a message whose only content is whitespace is accepted."""

    own_kinds: frozenset[str] | None = None
    """Kinds of the provider's own `Opaque` parts that the model accepts; None: all that the provider knows."""

    accepts: Callable[[Opaque], Opaque | None] | None = None
    """Returns an `Opaque` part of the provider as this model accepts it, None if it does not."""

    own_calls: frozenset[str] = frozenset()
    """Kinds of `Opaque` parts that are calls which the provider answers itself, by another `Opaque` part in the same
    assistant turn. Their data has the id of the call under the key `id`."""

    own_answer: str = ""
    """Pattern for the kinds of such answers. Its first group is the tool: the name or kind of the call begins with it.
    Their data has the id of the call under the key `own_answer_key`."""

    own_answer_key: str = ""

    reasoning: Literal["own", "signed", "encrypted", "none"]
    """Which reasoning is sent back. `own`: the provider's own. `signed`: its own if signed. `encrypted`: its own if it
    contains encrypted data. `none`: none."""

    reasoning_needs_follower: bool = False
    """Whether reasoning must be directly followed by what it led to."""

    not_followers: frozenset[str] = frozenset()
    """Kinds of `Opaque` parts that must not come between reasoning and what it led to."""

    reasoning_not_last: bool = False
    """Whether a message may not end with reasoning."""

    loop_needs_reasoning: bool = False
    """Whether, with thinking switched on, an open tool loop must start with reasoning."""

    loop_needs_kind: str = ""
    """If set, each answer with calls in an open tool loop must have an `Opaque` part of this kind; else thinking is
    switched off until the loop closes."""

    reasoning_bound: bool = False
    """Whether reasoning is refused if the content before it has changed since it was made (see
    `view.bound_reasoning`)."""

    step_signature: str = ""
    """If set, the first call of each step must be signed, and the provider accepts this documented placeholder as the
    signature of calls made by others."""

    user_media: frozenset[str] = frozenset()
    """Media kinds or MIME types accepted in user messages, e.g. `image`, `application/pdf`."""

    assistant_media: frozenset[str] = frozenset()
    result_media: frozenset[str] = frozenset()

    media_mimes: frozenset[str] = frozenset()
    """MIME types accepted for bytes; if empty, any of an accepted kind."""

    true_media_types: bool = False
    """Whether the bytes of an image must match its declared type."""

    files_of: frozenset[str] = frozenset()
    """Other providers whose file ids are accepted, because they store files in the same place."""

    media_url_schemes: frozenset[str] = frozenset({"http", "https"})
    """Schemes of URLs that are accepted for media."""

    media_max_base64: int = NO_LIMIT
    """The most characters of base64 in one media part."""

    media_max_total: int = NO_LIMIT
    """The most characters of base64 of all media in one request."""

    many_media: int = NO_LIMIT
    many_media_side: int = NO_LIMIT
    """If a request has more than `many_media` media, no image may have a side of more than `many_media_side` pixels."""

    tools_max: int = NO_LIMIT
    """Most tools that one request may declare; further tools are left out."""

    media_max_count: int = NO_LIMIT
    """Most media of one request; if there are more, the oldest become placeholders."""

    word: RequiredWord | None = None
    """A word that a setting of the request requires in the conversation."""
