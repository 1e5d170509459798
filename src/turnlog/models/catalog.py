"""The facts about each model: limits, prices, cache rules and abilities.

They come from three sources, each of which overrides the ones before it, field by field: the model's family, the
shipped tables, and the user's own file (docs/models.md). `scripts/models_table.py` writes the first table,
`data/models.json`, with its date and source; the user's file has the same format. They are read when a model is first
looked up. The second table (`sellers.py`) has all other models, and what sellers other than the makers take.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from .._platform.given import text_given
from .._platform.lazy import lazy_pattern
from .._platform.msgspec_init import ready
from .._platform.paths import config_folder
from ..errors import InputError
from .abilities import Abilities, family_entries, turned
from .makers import makers
from .sellers import Sold, maker_named, makers_models, seller_at, sold_as
from .sellers import source as source_of_prices

VARIABLE = "TURNLOG_MODELS"
"""Environment variable that names the user's own file."""

_Tokens = Annotated[int, Meta(ge=1)]
_SHIPPED = Path(__file__).parent / "data" / "models.json"  # importlib.resources takes 10 ms to import


_BUILT_IN = {
    "scripted/demo": {"input": 128_000, "output": 16_384, "media": [], "prices": {"input": 0, "output": 0}},
}
"""The models that are part of turnlog: see `turnlog.runners`."""


class PriceTier(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The prices of a whole request whose prompt has more than `above` tokens, as in `Prices`; None: as for a shorter
    prompt."""

    above: _Tokens
    input: Decimal | None = None
    output: Decimal | None = None
    cached: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None

    def __str__(self) -> str:
        given = (f"{kind} {price}" for kind, price in asdict(self).items() if isinstance(price, Decimal))
        return f"over {self.above:,} tokens: {', '.join(given)}"


class Prices(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """US dollars per million tokens; None if a price is unknown.

    `input` is the price of input, `cached` of input that is read from the cache, `cache_write` of input that is written
    to the cache for the usual time (five minutes with Anthropic), `cache_write_1h` for an hour. `output` is the price
    of the answer, reasoning included. `tiers` are the prices of longer prompts, the shortest first. Prompts of more
    than `up_to` tokens cost more, but it is not known how much; None: all is known, as far as is known.
    """

    input: Decimal | None = None
    output: Decimal | None = None
    cached: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    up_to: _Tokens | None = None
    tiers: tuple[PriceTier, ...] = ()

    def at(self, tokens: int) -> Prices:
        """The prices of a request whose prompt has so many tokens."""
        found = self
        for tier in sorted(self.tiers, key=lambda tier: tier.above):
            if tokens > tier.above:
                given = {kind: price for kind, price in asdict(tier).items() if isinstance(price, Decimal)}
                found = replace(self, **given)
        return found


class CacheRules(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a model's prompt cache works.

    An `automatic` cache finds repeated prefixes itself; for a `marked` one, the request marks where they end; None: no
    cache, or unknown. Prefixes of fewer than `minimum` tokens are not cached. With `breakpoints`, an automatic cache
    finds only prefixes that end at a breakpoint of an earlier request; a request may set breakpoints itself.

    A prefix is cached in whole steps of `step` tokens. It stays in the cache for `lifetime` seconds after its last use,
    or for `long_lifetime` if it is written for longer (None: unknown). A mark finds a prefix that ends fewer than
    `lookback` blocks of content before it (0: any).
    """

    mode: Literal["automatic", "marked"] | None = None
    minimum: _Tokens | None = None
    breakpoints: bool = False
    step: _Tokens = 1
    lifetime: _Tokens | None = None
    long_lifetime: _Tokens | None = None
    lookback: Annotated[int, Meta(ge=0)] = 0


@ready
class ModelFacts(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The facts about a model. `provider` is its maker; `input` and `output` are its limits in tokens, `media` the
    kinds of media that it reads. None: not known."""

    provider: str | None = None
    input: _Tokens | None = None
    output: _Tokens | None = None
    media: tuple[Literal["image", "document", "audio", "video"], ...] | None = None
    cache: CacheRules = CacheRules()
    prices: Prices = Prices()
    abilities: Abilities = Abilities()

    def __post_init__(self) -> None:
        if self.provider is not None and self.provider not in makers():
            raise ValueError(f"provider: {self.provider!r}; use one of {', '.join(makers())}")


class Found(NamedTuple):
    """The facts about a model. If they are those of another model, `taken_for` is its name in the table, and `newer`
    says whether the model is a newer version of it. `id` is what the seller, or else the maker, calls the model whose
    facts they are. `seller` is who sells it at these prices, if that was asked; empty: the maker."""

    facts: ModelFacts
    taken_for: str
    newer: bool = False
    id: str = ""
    seller: str = ""


class Origin(NamedTuple):
    """A fact about a model, such as `prices.input`, and its source."""

    name: str
    value: Any
    source: str


_HIGHEST_PRICE = 1_000_000
"""Highest accepted price: a dollar per token. A higher one is a mistake."""

_NESTED: dict[str, Struct] = {"cache": CacheRules(), "prices": Prices(), "abilities": Abilities()}
"""The fields that contain several facts, with their values if nothing is known."""

_VENDOR = lazy_pattern(r"^([a-z-]+\.)?anthropic\.")  # Bedrock: `us.anthropic.claude-...-v1:0`
_POINT = lazy_pattern(r"(?<=\d)\.(?=\d)")  # OpenRouter: `claude-sonnet-4.5`
_AZURE = lazy_pattern(
    r"^gpt-(?:(3)(?=5\b)|([45])-(?=\d\b))"
)  # names of deployments on Azure have no point: `gpt-35`, `gpt-5-1`
_TUNED = lazy_pattern(r"ft:([^:]+)")  # OpenAI: `ft:gpt-4o-mini-2024-07-18:acme::id`, which has its own price
_EDITION = lazy_pattern(r"-v\d+(:\d+)?$")
_DATED = lazy_pattern(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest|-preview.*|-exp.*|-\d{3})$")


def model_facts(model: str) -> ModelFacts | None:
    """The facts about a model, as `find_model` finds them; None if nothing is known. Raises InputError."""
    match = find_model(model)
    return match.facts if match else None


def model_abilities(model: str) -> Abilities:
    """What is known about the abilities of a model. Raises InputError."""
    text_given("model", model)
    return _abilities(model, os.environ.get(VARIABLE, ""))


def family_media(model: str, usual: frozenset[str]) -> frozenset[str]:
    """The media kinds that a model reads that is not in the table, by its family; `usual` if that says nothing."""
    media = _facts(model, {}).media
    return usual if media is None else frozenset(media)


def known_models() -> dict[str, ModelFacts]:
    """The facts about all models that their makers sell, and those in the user's file, by name. Raises InputError."""
    return {name: _facts(name, entry) for name, entry in sorted(_ids(os.environ.get(VARIABLE, "")).items())}


def find_model(model: str) -> Found | None:
    """The facts about a model. `taken_for` names the model that they belong to; empty if it is the model itself.

    A name alone has the prices of the model's maker; `SELLER/MODEL` has those of that seller. Any other prefix of a
    gateway or vendor (`us.anthropic.`) is ignored. A dated or preview name falls back to the name without its suffix.
    An unknown version gets the facts of the newest known version before it, without prices; any other name gets those
    of the longest known name that it begins with; a tuned model gets those of its base model, without prices. Raises
    InputError if the user's own file cannot be used or `model` is not a string.
    """
    return _find(text_given("model", model), os.environ.get(VARIABLE, ""))


def seller_of(model: str, base_url: str, usual: str = "") -> str:
    """Who sells a model at this address, `usual` without one; empty if it is not known, or the maker of the model.
    Raises InputError."""
    seller = seller_at(base_url, model) if base_url else usual
    found = find_model(model) if seller else None
    return "" if found is not None and seller == _maker(found) else seller


def model_origins(model: str) -> list[Origin]:
    """All known facts about a model, each with its source. Raises InputError."""
    match = find_model(model)
    facts = match.facts if match else _facts(model, {})
    sources: dict[str, str] = {}
    for entry, source in (*family_entries(model), *_table_entries(model, match)):
        for key, value in entry.items():
            names = [f"{key}.{name}" for name in value] if key in _NESTED else [key]
            sources |= dict.fromkeys(names, source)
    origins = []
    for key in ModelFacts.__struct_fields__:
        value = getattr(facts, key)
        inner = [(f"{key}.{name}", fact) for name, fact in asdict(value).items()] if key in _NESTED else [(key, value)]
        given = [(name, fact) for name, fact in inner if name in sources and fact is not None]
        origins += [Origin(name, fact, sources[name]) for name, fact in given if fact or name != "prices.tiers"]
    return origins


def model_name(model: str) -> str:
    """The name of a model without the path of a gateway and without its date: under both names, requests share a
    cache."""
    return _undated(model.rsplit("/", 1)[-1].lower())


def own_file() -> Path:
    """The user's own file: the one that TURNLOG_MODELS names, else `models.json` beside the user's configuration."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    return config_folder() / "models.json"


@lru_cache(maxsize=1024)
def _find(model: str, named: str) -> Found | None:
    table = _table(named)
    names = _spellings(model)
    known = next((name for name in names if name in table), "")
    if known and (known == model or _is_makers_own(model, table[known])):
        return Found(_facts(model, table[known]), "", id=known)
    sold = sold_as(model)
    if known:
        return _sold(Found(_facts(model, table[known]), "", id=known), sold, named)
    if sold is not None and sold.entry is not None:
        return Found(_facts(model, sold.entry), "", id=sold.name, seller=sold.seller)
    found = _alike(model, names, named)
    return None if found is None else _sold(found, sold, named)


def _alike(model: str, names: tuple[str, ...], named: str) -> Found | None:
    """The facts about a model by its name alone, if the first table does not have that name."""
    table = _wide(named)
    for name in names:
        if name in table:
            return Found(_facts(model, table[name]), "", id=_id(name, named))
    for name in map(_undated, names):
        if name in table:
            return Found(_facts(model, table[name]), name, id=_id(name, named))
    ids = _ids(named)
    older = next(filter(None, (_older(name, ids) for name in names)), "")
    if older:
        return Found(replace(_facts(model, ids[older]), prices=Prices()), older, newer=True, id=older)
    like = next(filter(None, (_closest(name, table) for name in names)), "")
    if like:
        return Found(_facts(model, table[like]), like, id=_id(like, named))
    tuned = next(filter(None, map(_TUNED.match, names)), None)
    base = _find(tuned[1], named) if tuned is not None else None
    if tuned is None or base is None:
        return None
    return Found(replace(base.facts, prices=Prices()), base.taken_for or tuned[1], id=base.id)


def _is_makers_own(model: str, entry: dict[str, Any]) -> bool:
    """Whether a name has no seller, or names the maker as the seller: then the second table is not needed."""
    return "/" not in model or model.partition("/")[0].lower() == entry.get("provider")


def _sold(found: Found, sold: Sold | None, named: str) -> Found:
    """The facts about a model, at the prices of the seller. Prices in the user's own file come first."""
    if sold is None or "prices" in _own_models(named).get(found.id, {}):
        return found
    if sold.seller == _maker(found):
        return found
    if sold.entry is not None:
        prices = msgspec.convert(sold.entry["prices"], Prices)
    else:
        prices = found.facts.prices if sold.is_resold else Prices()
    return found._replace(facts=replace(found.facts, prices=prices), seller=sold.seller)


def _maker(found: Found) -> str:
    """The maker of a model, as a seller; empty if it is not known, or sells no models."""
    return found.facts.provider or maker_named(found.id)


def _id(name: str, named: str) -> str:
    """What the maker calls the model that the tables have under this name."""
    return name if name in _table(named) else makers_models()[name][1]


@lru_cache(maxsize=1024)
def _abilities(model: str, named: str) -> Abilities:
    match = _find(model, named)
    return match.facts.abilities if match else _facts(model, {}).abilities


def _facts(model: str, entry: dict[str, Any]) -> ModelFacts:
    """The facts of a table entry, which override those of the model's families."""
    merged: dict[str, Any] = {}
    for facts in (*(facts for facts, _ in family_entries(model)), entry):
        merged = _merged(facts, merged)
    return msgspec.convert(merged, ModelFacts)


def _spellings(model: str) -> tuple[str, ...]:
    """The name as given, without the path of a gateway, and in the maker's spelling instead of other sellers'."""
    last = model.rsplit("/", 1)[-1]
    bare = _EDITION.sub("", _VENDOR.sub("", last.lower()))
    dashed = _POINT.sub("-", bare)
    others = (dashed, _AZURE.sub(r"gpt-\1\2.", bare), turned(dashed))
    return tuple(dict.fromkeys((model, last, last.lower(), bare, *others)))


def _undated(name: str) -> str:
    return _DATED.sub("", name)


def _closest(name: str, table: dict[str, dict[str, Any]]) -> str:
    """The known name that `name` is a variant of; empty if there is none."""
    short = _undated(name)
    if short in table:
        return short
    return max((key for key in table if name.startswith((key + "-", key + ".", key + ":"))), key=len, default="")


_VERSION = lazy_pattern(r"(?<=-)\d+(?:[-.]\d{1,2})*(?![\d\w])")


def _older(name: str, table: dict[str, dict[str, Any]]) -> str:
    """The newest known model whose name differs only in having the same or an older version; empty if there is none."""
    family, version = _versioned(name)
    if not version:
        return ""
    alike = (
        (candidate, key)
        for key in table
        for kind, candidate in [_versioned(key)]
        if kind == family and candidate <= version
    )
    # Of equal versions, the shortest name wins: `-preview-tts` and other special previews come after the model itself.
    return max(alike, key=lambda each: (each[0], -len(each[1])), default=((), ""))[1]


@lru_cache(maxsize=1024)
def _versioned(name: str) -> tuple[str, tuple[int, ...]]:
    """A name with `#` in place of its version and without its date, and the version: `claude-opus-#` and (5, 5)."""
    short = _undated(name)
    match = _VERSION.search(short)
    numbers = tuple(map(int, re.split(r"[-.]", match[0]))) if match else ()
    return _VERSION.sub("#", short, count=1), numbers


@cache
def _shipped() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_SHIPPED.read_bytes())
    document["models"].update(_BUILT_IN)
    return document


@cache
def _table(named: str) -> dict[str, dict[str, Any]]:
    """All entries of the first table and of the user's file by name; the user's override the shipped ones. `named` is
    the file that the environment names: it is part of the cache key."""
    shipped: dict[str, dict[str, Any]] = _shipped()["models"]
    return {**shipped, **{name: _over(name, entry, shipped) for name, entry in _own_models(named).items()}}


@cache
def _ids(named: str) -> dict[str, dict[str, Any]]:
    """As `_table`, with the models of the second table that their makers sell, under the makers' names for them."""
    return {**{own: entry for _, own, entry in makers_models().values() if entry}, **_table(named)}


@cache
def _wide(named: str) -> dict[str, dict[str, Any]]:
    """As `_ids`, with other names of these models."""
    table = _table(named)
    others = {name: entry or table.get(own, {}) for name, (_, own, entry) in makers_models().items()}
    return {**others, **table}


@cache
def _own_models(named: str) -> dict[str, dict[str, Any]]:
    """The entries of the user's file as they are, by name."""
    return _own(own_file(), named=bool(named))


def _over(name: str, entry: dict[str, Any], shipped: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A user's entry, completed from the shipped entry of the same name, or else of the closest name."""
    return _merged(entry, _below(name, shipped)[1])


def _below(name: str, shipped: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The shipped entry that a user's entry completes, and its name; "" and {} if there is none."""
    if name in shipped:
        return name, shipped[name]
    sold = sold_as(name)
    if sold is not None and sold.entry is not None:
        return name, sold.entry
    others = {other: entry or shipped.get(own, {}) for other, (_, own, entry) in makers_models().items()}
    wide = {**others, **shipped}
    like = name.lower() if name.lower() in wide else _closest(name, wide)
    return like, wide.get(like, {})


def _merged(entry: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    """`entry`, completed from `below`, field by field."""
    nested = {key: {**below.get(key, {}), **entry.get(key, {})} for key in _NESTED if key in below or key in entry}
    return {**below, **entry, **nested}


def _table_entries(model: str, found: Found | None) -> Iterator[tuple[dict[str, Any], str]]:
    """The entries that a model's facts come from, in the shipped tables and in the user's file, each with its
    source."""
    if found is None:
        return
    named = os.environ.get(VARIABLE, "")
    shipped, own_models = _shipped(), _own_models(named)
    spellings = _spellings(found.taken_for or model)
    name = next((name for name in spellings if name in own_models or name in shipped["models"]), found.id)
    below, entry = _below(name, shipped["models"])
    other = f", of {below}" if below not in (*_spellings(model), "") else ""
    first = f"table of models ({shipped['source']}){other}"
    second = f"table of prices ({source_of_prices()}){other}" if below not in shipped["models"] or found.seller else ""
    if entry:
        yield entry, first if below in shipped["models"] else second
    sold = sold_as(model) if found.seller else None
    if sold is not None and sold.entry is not None:
        yield (sold.entry if not entry else {"prices": sold.entry["prices"]}), f"{second}, sold by {sold.seller}"
    if name in own_models:
        yield own_models[name], str(own_file())


def own_entries(key: str, path: Path, *, named: bool) -> dict[str, dict[str, Any]]:
    """The objects under a key of the user's own file, by name; {} if it has none. `named`: the environment names the
    file, so that it must be there. Raises InputError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        if named or os.path.lexists(path):  # a link to nothing, a folder, a file of another user
            why = f"; {VARIABLE} names this file" if named else ""
            raise InputError(f"{path}: cannot be read ({error.strerror}){why}") from error
        return {}
    try:
        document = json.loads(text.decode("utf-8-sig"), parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    entries = document.get(key, {}) if isinstance(document, dict) and not _KEYS.isdisjoint(document) else None
    if not isinstance(entries, dict):
        raise InputError(f'{path}: expected {{"models": {{NAME: {{...}}}}}} or {{"servers": {{NAME: {{...}}}}}}')
    return entries


_KEYS = frozenset({"models", "servers"})
"""The keys of the user's own file."""


def _own(path: Path, *, named: bool) -> dict[str, dict[str, Any]]:
    """The models of the user's file. Raises InputError with file, model and field."""
    models = own_entries("models", path, named=named)
    for name, entry in models.items():
        for key, unknown in _NESTED.items():
            if isinstance(entry, dict) and entry.get(key, ...) is None:  # null: nothing of it is known
                entry[key] = asdict(unknown)
        try:
            prices = msgspec.convert(entry, ModelFacts).prices
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: model {name!r}: {error}") from error
        lists = [("", prices), *((f"tiers[{i}].", tier) for i, tier in enumerate(prices.tiers))]
        given = [(at + kind, price) for at, some in lists for kind, price in asdict(some).items()]
        wrong = [(kind, how) for kind, price in given if isinstance(price, Decimal) and (how := _wanted_price(price))]
        if wrong:
            raise InputError(f"{path}: model {name!r}: prices.{wrong[0][0]} must {wrong[0][1]}")
    return models


def _wanted_price(price: Decimal) -> str:
    """What a price must be, if this one is wrong; else empty."""
    if not price.is_finite():
        return "be a number"
    high = price > _HIGHEST_PRICE
    return "not be below 0" if price < 0 else f"not be above {_HIGHEST_PRICE:,}" if high else ""


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")
