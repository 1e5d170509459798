"""What a provider accepts, as data.

`view.repair` takes these rules as an argument and knows no provider by name. A new model with a
new habit is a new value here or in the provider's own module, not a branch elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from ..log.messages import ToolCall

NO_LIMIT = 1 << 62


class Rules(Struct, frozen=True, kw_only=True):
    """What one provider's requests for one model must satisfy. Lengths are in characters.

    Each field says what is *required*; repair does the least that reaches it.
    """

    provider: str
    """Name of the provider: parts that are bound to it stay, others' leave the view."""

    results: Literal["adjacent", "counted", "later"]
    """Where answers stand. `adjacent`: in the messages directly after the calls, before anything
    else. `counted`: the next turn holds exactly as many, among other things. `later`: anywhere after
    the call."""

    merge_calls: bool
    """Whether calls answered together must stand in one message (parallel calls that a log holds
    in several messages are joined)."""

    calls_last: bool = False
    """Whether nothing that an answer says (text, media) may stand between its calls and their results."""

    results_apart: bool = False
    """Whether each result is a message of its own."""

    results_together: bool = False
    """Whether results of one answer's calls are best sent in one message, though they were recorded one by one: so in
    requests of our own making."""

    first: Literal["any", "not_call", "user"]
    """What a conversation may start with, system text aside."""

    last: Literal["any", "user"]
    """What it may end with. `user`: no assistant message may be last (no prefill)."""

    strip_last: bool
    """Whether trailing whitespace of a final assistant text is refused."""

    system: Literal["inline", "top", "top_or_after_user"]
    """Where system text may stand: anywhere, ahead of everything, or there and after a user turn
    if an assistant message or the end follows."""

    calls_elsewhere: bool = False
    """Whether calls may stand outside the request, at the provider: results without a call stay, and
    there need not be a message."""

    tools_required: bool = False
    """Whether a request with calls or results must declare tools."""

    system_only: bool = False
    """Whether a request with nothing but system text is accepted."""

    call_id_pattern: str = r".+"
    call_id_max: int = NO_LIMIT
    call_id_unique: Literal["turn", "view"] = "turn"
    """Ids of calls that repair may leave as they are; others are replaced by derived ones."""

    sent_without_id: Callable[[ToolCall], bool] | None = None
    """Which calls go out without an id: results of one tool can be told apart by their order alone then."""

    name_pattern: str = r".+"
    name_max: int = NO_LIMIT
    """Names of tools, in calls and results."""

    arguments: Literal["text", "object"]
    """`object`: arguments that are no JSON object are wrapped as `{"input": ...}`."""

    call_kinds: frozenset[str] = frozenset({"function"})
    """Kinds of calls that are taken natively; others are shown as function calls."""

    failed_says: str = ""
    """If set, what stands in a failed result that has no text: it may not be without."""

    empty_text: bool = False
    """Whether an empty text part is accepted."""

    blank_text: bool = True
    """Whether a message whose only content is whitespace is accepted."""

    own_calls: frozenset[str] = frozenset()
    """Kinds of `Opaque` parts that the provider answers itself, by another `Opaque` in the same
    assistant turn; their id is at `id` of the data."""

    own_answer: str = ""
    """Pattern of the kinds of those answers; what they answer is at `own_answer_key`."""

    own_answer_key: str = ""

    reasoning: Literal["own", "signed", "encrypted", "none"]
    """Which reasoning is replayed: the provider's own; its own if signed; its own if it holds an
    encrypted blob; none."""

    reasoning_needs_follower: bool = False
    """Whether reasoning must be directly followed by what it led to."""

    not_followers: frozenset[str] = frozenset()
    """Kinds of `Opaque` parts that may not stand between reasoning and what it led to."""

    reasoning_not_last: bool = False
    """Whether a message may not end with reasoning."""

    loop_needs_reasoning: bool = False
    """Whether, with thinking switched on, an open tool loop must start with reasoning."""

    reasoning_bound: bool = False
    """Whether reasoning is refused behind anything but what stood ahead of it when it was made (see
    `view.bound_reasoning`)."""

    step_signature: str = ""
    """If set, the first call of each step must be signed, and this documented stand-in is accepted
    for calls that the provider did not make."""

    user_media: frozenset[str] = frozenset()
    """Media kinds or MIME types accepted in user messages, e.g. `image`, `application/pdf`."""

    assistant_media: frozenset[str] = frozenset()
    result_media: frozenset[str] = frozenset()

    media_mimes: frozenset[str] = frozenset()
    """MIME types accepted for bytes; empty: any of an accepted kind."""

    true_media_types: bool = False
    """Whether the bytes of an image must be of the type that it is declared as."""

    files_of: frozenset[str] = frozenset()
    """Other providers whose file ids are taken: those that keep files in the same place."""

    media_url_schemes: frozenset[str] = frozenset({"http", "https"})
    """Schemes of the URLs by which media may be given."""

    media_max_base64: int = NO_LIMIT
    """Largest base64 text of one media part."""

    media_max_total: int = NO_LIMIT
    """Most characters of base64 of all media of one request together."""

    many_media: int = NO_LIMIT
    many_media_side: int = NO_LIMIT
    """No image may have a side of more than `many_media_side` pixels where there are more than `many_media`."""

    tools_max: int = NO_LIMIT
    """Most tools that one request may declare; those beyond are left out."""

    media_max_count: int = NO_LIMIT
    """Most images of one request; the oldest beyond it become placeholders."""
