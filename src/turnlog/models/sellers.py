"""Who sells which model at what price: the second shipped table, `data/prices.json`.

It is read only for a model that `data/models.json` does not have, or one that is bought from somebody else than its
maker. `scripts/prices_table.py` writes it, with its date and source.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .makers import makers

_SHIPPED = Path(__file__).parent / "data" / "prices.json"
_KINDS = ("input", "output", "cached", "cache_write", "cache_write_1h")
_WORDS = {
    "amazon-bedrock": "aws",
    "azure_ai": "azure",
    "bedrock": "aws",
    "copilot": "github-copilot",
    "fireworks-ai": "fireworks",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "github_copilot": "github-copilot",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "together-ai": "together",
    "together_ai": "together",
    "togetherai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
    "z-ai": "zai",
}
"""Other words for sellers, as gateways, SDKs and agents write them."""
_RESELLERS = frozenset({"aws", "azure", "google", "openrouter"})
"""Sellers that take the maker's price of a model that the table does not list for them. Of another seller's model that
it does not list, the price is unknown."""
_FREE = ":free"
"""What OpenRouter puts behind the name of a model that is served for nothing.
https://openrouter.ai/docs/api-reference/limits"""
_FOR_NOTHING = frozenset({"openrouter"})
_ROUTER = "router.huggingface.co"


class Sold(NamedTuple):
    """A seller, and its entry for a model, with the fields of `ModelFacts`; None if the table does not list it for this
    seller. `name` is what the seller calls the model. `is_resold`: it then costs what its maker takes."""

    seller: str
    name: str
    entry: dict[str, Any] | None
    is_resold: bool


def sold_as(model: str) -> Sold | None:
    """What `SELLER/MODEL` is and costs; None if it does not begin with the name of a seller in the table."""
    word, slash, name = model.partition("/")
    if not slash:
        return None
    seller = _WORDS.get(word.lower(), word.lower())
    if seller not in _sellers():
        return None
    rows = _rows(seller)
    found = next((spelling for spelling in _spellings(name.lower()) if spelling in rows), "")
    its_name, row = rows[found] if found else (name, None)
    if row is not None and seller in _FOR_NOTHING and name.endswith(_FREE) and name.lower() not in rows:
        row = [0, 0, *row[2:3]]
    return Sold(seller, its_name, None if row is None else _entry(seller, row), seller in _RESELLERS)


@lru_cache(maxsize=256)
def seller_at(base_url: str, model: str = "") -> str:
    """The seller at this address, `` if it is none in the table. Hugging Face's router names the seller behind the
    model (`MODEL:groq`)."""
    parts = urlsplit(base_url if "//" in base_url else f"//{base_url}")
    host, path = (parts.hostname or "").lower(), parts.path.strip("/")
    if host == _ROUTER and ":" in model:
        seller = f"huggingface_{model.rpartition(':')[2].lower()}"
        return seller if seller in _sellers() else ""
    for seller, sold in _sellers().items():
        for place in sold["hosts"]:
            at, _, folder = place.partition("/")
            if (host == at or (at.startswith(".") and host.endswith(at))) and (not folder or path.startswith(folder)):
                return seller
    return ""


@cache
def makers_models() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """The models that their makers sell, by name: the maker, what it calls the model, and the entry; {} for a model
    that `data/models.json` has. Names are in lower case."""
    found: dict[str, tuple[str, str, dict[str, Any]]] = {}
    document = _document()
    for maker in document["makers"]:
        sold = document["sellers"][maker]
        for name, row in sold["models"].items():
            if "/" not in name:
                found.setdefault(name.lower(), (maker, name, _entry(maker, row)))
        for name, own in sold["names"].items():
            row = sold["models"].get(own)
            found.setdefault(name, (maker, own, {} if row is None else _entry(maker, row)))
    return found


def maker_named(model: str) -> str:
    """The maker of a model that the second table has under this name; empty if it is not there."""
    maker: str = makers_models().get(model.lower(), ("",))[0]
    return maker


def source() -> str:
    """Where the table comes from, and when it was read."""
    told: str = _document()["source"]
    return told


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_SHIPPED.read_bytes())
    return document


def _sellers() -> dict[str, Any]:
    sellers: dict[str, Any] = _document()["sellers"]
    return sellers


@cache
def _rows(seller: str) -> dict[str, tuple[str, list[Any]]]:
    """A seller's rows by all names, in lower case, with the name that it uses."""
    sold = _sellers()[seller]
    rows = {name.lower(): (name, row) for name, row in sold["models"].items()}
    names = {name: rows[own.lower()] for name, own in sold.get("names", {}).items() if own.lower() in rows}
    return {**names, **rows}


def _spellings(name: str) -> tuple[str, ...]:
    """A name as given, without what a router adds, and without the path of its maker."""
    bare = name.partition(":")[0]
    return tuple(dict.fromkeys((name, bare, name.rpartition("/")[2], bare.rpartition("/")[2])))


def _entry(seller: str, row: list[Any]) -> dict[str, Any]:
    """A row with the names of its fields."""
    price_in, price_out, window, *others = [*row, *[None] * 7][:7]
    prices = dict(zip(_KINDS, (price_in, price_out, *others[:3]), strict=True))
    found: dict[str, Any] = {key: price for key, price in prices.items() if price is not None}
    if others[3]:
        found["tiers"] = [_tier(tier) for tier in others[3]]
    entry: dict[str, Any] = {"prices": found}
    if window is not None:
        entry["input"] = window
    if seller in makers():
        entry["provider"] = seller
        if "cached" in found:  # as in data/models.json: a model without a price for cached input is taken to have none
            entry["cache"] = {"mode": "marked" if seller == "anthropic" else "automatic"}
    return entry


def _tier(row: list[Any]) -> dict[str, Any]:
    prices = zip(("above", *_KINDS), row, strict=False)
    return {key: value for key, value in prices if value is not None}
