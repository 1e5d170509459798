"""The signs of each API, as data, by which its requests are told from requests to other APIs.

A word that all APIs in question know says nothing; a word that only some know is a sign of those. So each provider
lists all its words, not only its own: `recognise.py` compares them.
"""

from __future__ import annotations

from msgspec import Struct

from .schema.shapes import ObjectShape, Tagged


class Signs(Struct, frozen=True, kw_only=True):
    """The words of the requests of one API. Its settings are in `Provider.settings`."""

    blocks: Tagged | ObjectShape
    """The contents of a message by type or, for an API without types, the keys of one content."""

    server_blocks: frozenset[str] | None = None
    """Types of contents that the API itself does not have, but servers that imitate it read. Contents of other types
    may be sent to them too, but their meaning is unknown. None for an API without such servers."""

    content: str = "content"
    """The key of a message that holds its contents."""

    roles: frozenset[str] = frozenset()
    """The roles of its messages; "" if a message may have none. Empty for an API whose items have no role."""

    later_roles: frozenset[str] = frozenset()
    """The roles with which no conversation begins."""

    call_keys: frozenset[str] = frozenset()
    """Keys of a message for its calls, or for the call that it answers."""

    message_keys: frozenset[str] = frozenset()
    """Other keys of a message. They are a weak sign, as clients of other APIs send some of them too."""

    items: Tagged | None = None
    """Items of the conversation that are not messages, by type."""

    single: tuple[type, ...] = ()
    """The types that a conversation may have instead of a list."""

    loose_blocks: bool = False
    """Whether contents may be in the conversation without a message around them."""

    tools: Tagged | None = None
    """Tool declarations, by type."""

    settings: frozenset[str] = frozenset()
    """Keys of a request that the API itself does not have, but servers that imitate it accept."""

    models: str = ""
    """A pattern for the beginning of its models' names, in lower case. It is a weak sign: gateways serve any model in
    any format."""

    urls: str = ""
    """A pattern that is in the URLs of its requests."""
