"""Which requests ask a model with a whole conversation, by their address and body; all others pass through."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..models.makers import PROVIDER_ROWS
from ..models.sellers import seller_at
from ..models.target import Target, target


class Route(Struct, frozen=True):
    """A request that asks a model: the provider whose format its body has, the server's address ("" for the maker's
    own), and the model if the path names it."""

    provider: str
    base_url: str
    model: str

    def target(self, body: Mapping[str, Any]) -> Target | None:
        """The target of the body; None if it holds a part of the conversation only. Raises InputError."""
        if any(body.get(key) for key in PROVIDER_ROWS[self.provider].held):
            return None
        model = self.model or body.get("model", "")
        return target(self.provider, model, base_url=self.base_url)


def route_of(method: str, url: str) -> Route | None:
    """The route of a request; None if it does not ask a model with a conversation."""
    parts = urlsplit(url)
    for provider, row in PROVIDER_ROWS.items() if method == "POST" else ():
        if row.path and (match := re.fullmatch(row.path, parts.path)):
            place = parts.netloc.rpartition("@")[2]
            base_url = f"{parts.scheme}://{place}{match['base']}"
            model = match.groupdict().get("model", "")
            is_own = seller_at(base_url, model) == row.maker.name
            return Route(provider, "" if is_own else base_url, model)
    return None
