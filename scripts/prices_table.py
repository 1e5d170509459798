"""Writes src/turnlog/models/data/prices.json from the table of genai-prices (MIT), which must be installed.

    python scripts/prices_table.py

It has the models that are not in models.json, and what they cost with each seller: prices in dollars per million
tokens, the window, the names by which the maker knows the model too. Left out: models that are not billed by tokens in
and out (speech, embeddings, pages), and models of OpenAI, Anthropic and Google themselves that models.json has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import genai_prices
from genai_prices.data import providers
from genai_prices.types import ModelInfo, ModelPrice, Provider, StartDateConstraint, TieredPrices, TimeOfDateConstraint

DATA = Path(__file__).parent.parent / "src/turnlog/models/data"
READ = datetime(2026, 11, 28, tzinfo=UTC)
"""The day whose prices are taken, of models whose prices changed or will."""
DATE = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$")
ODD = re.compile(r"@|^ft:|\.ft|-20\d\d$|^gpt-35")
"""Names that are no names of a maker's own models: of other sellers, of tuned models, beginnings of dates."""
TUNED = re.compile(r"^ft:|\.ft|-$")
"""Ids of tuned models, and beginnings of ids: models.json has tuned models."""
UNITS = (
    "models of each seller: [input, output, window, cached, cache_write, cache_write_1h, tiers]; a tier is [above, "
    "input, output, cached, cache_write, cache_write_1h]; US dollars per million tokens, tokens; null: unknown"
)
KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
APART = {"requests_kcount", "output_reasoning_mtok", "output_citation_mtok"}
"""What makes a price that tokens in and out do not give: such a model is there without prices."""
NO_TOKENS = {"elevenlabs", "openai-decisions", "typesafe", "voyageai"}
"""Sellers of speech, decisions and embeddings."""
MAKERS = (
    "anthropic openai google x-ai deepseek moonshotai mistral zai zhipuai cohere minimax perplexity meta arcee".split()
)
"""Sellers whose models are their own: a model's name alone means the first of these that has it."""
HOSTS = {
    "aws": [".amazonaws.com"],
    "azure": [".openai.azure.com", ".azure-api.net", ".cognitiveservices.azure.com", ".services.ai.azure.com"],
    "baseten": ["inference.baseten.co"],
    "cloudflare": ["api.cloudflare.com"],
    "cohere": ["api.cohere.com", "api.cohere.ai"],
    "databricks": [".databricks.com", ".azuredatabricks.net"],
    "google": [".googleapis.com"],
    "minimax": ["api.minimax.io", "api.minimaxi.com", "api.minimax.com"],
    "modal": [".modal.run", ".modal.direct"],
    "moonshotai": ["api.moonshot.ai", "api.moonshot.cn"],
    "openrouter": ["openrouter.ai", "api.openrouter.ai"],
    "together": ["api.together.xyz", "api.together.ai"],
}
"""The hosts of servers whose pattern in the source is more than a host; a point at the beginning: any host in it."""
NAMES = {"google": {"gemini-3-pro": "gemini-3-pro-preview"}}
"""Names of models that the source does not have."""
WINDOWS = {400_000: 272_000, 1_050_000: 922_000}
"""Of OpenAI's models, what the API takes of the whole window, as in models_table.py."""


def priced(model: ModelInfo) -> ModelPrice:
    """The prices on the day. Of prices that depend on the time of day, the highest: no discount is assumed."""
    if isinstance(model.prices, ModelPrice):
        return model.prices
    found = ModelPrice()
    for each in model.prices:
        starts = each.constraint
        if isinstance(starts, StartDateConstraint) and not starts.active(READ):
            continue
        if isinstance(starts, TimeOfDateConstraint) and base(each.prices, "input_mtok") <= base(found, "input_mtok"):
            continue
        found = each.prices
    return found


def base(prices: ModelPrice, kind: str) -> Decimal:
    value = getattr(prices, kind)
    found: Decimal = value.base if isinstance(value, TieredPrices) else value or Decimal(0)
    return found


def number(price: Decimal | None) -> int | float | None:
    return None if price is None else int(price) if price == int(price) else float(price)


def short(row: list[Any]) -> list[Any]:
    """The row without what is unknown at its end."""
    while row and row[-1] in (None, []):
        row.pop()
    return row


def tiers(prices: ModelPrice) -> list[list[Any]]:
    """The prices of longer prompts. Each kind of price has tiers of its own in the source."""
    values = [getattr(prices, kind) for kind in KINDS]
    lengths = {tier.start for value in values if isinstance(value, TieredPrices) for tier in value.tiers}
    rows = []
    for above in sorted(lengths):
        row: list[Any] = [above]
        for value in values:
            longer = (
                [tier.price for tier in value.tiers if tier.start <= above] if isinstance(value, TieredPrices) else []
            )
            row.append(number(longer[-1]) if longer else None)
        rows.append(short(row))
    return rows


def windows() -> dict[str, int]:
    """The windows that OpenRouter tells of models, by the names of their makers."""
    router = next(seller for seller in providers if seller.id == "openrouter")
    models = [model for model in router.models if "/" in model.id and ":" not in model.id]
    return {model.id.rpartition("/")[2].lower(): model.context_window for model in models if model.context_window}


def row(seller: Provider, model: ModelInfo, others: dict[str, int]) -> list[Any]:
    """The row of a model; empty if it is not billed by tokens in and out. `others` are windows for makers' models that
    have none in the source."""
    prices, window = priced(model), model.context_window
    if window is None and seller.id in MAKERS:
        window = others.get(model.id.lower())
    if seller.id == "openai":
        window = WINDOWS.get(window or 0, window)
    given = {kind for kind, price in vars(prices).items() if price is not None}
    if seller.id == "openrouter" and model.id.endswith(":free") and not given:
        return short([0, 0, window])
    if not {"input_mtok", "output_mtok"} <= given:
        return []
    if given & APART:
        return short([None, None, window])
    found = [number(base(prices, kind)) if kind in given else None for kind in KINDS]
    return short([*found[:2], window, *found[2:], tiers(prices)])


def clauses(match: Any) -> Iterator[str]:
    """The names that a clause of the source is for, whole or as beginnings."""
    for part in getattr(match, "or_", ()):
        yield from clauses(part)
    yield from (name for key in ("equals", "starts_with") if (name := getattr(match, key, "")))


def names(seller: Provider, rows: dict[str, Any], known: set[str]) -> dict[str, str]:
    """Other names of a maker's models, as far as no rule of models/catalog.py finds them."""
    models = {*rows, *known}
    taken = {spelling for name in models for spelling in (name.lower(), name.lower().replace(".", "-"))}
    found = dict(NAMES.get(seller.id, {}))
    for model in seller.models:
        for given in clauses(model.match):
            name = given.lower().removesuffix("-").rpartition("/")[2]
            undated = DATE.sub("", name)
            if (
                "/" in model.id
                or model.id not in models
                or {name.replace(".", "-"), undated} & taken
                or ODD.search(name)
            ):
                continue
            found[name] = model.id
            taken.add(name)
    return found


def hosts(seller: Provider) -> list[str]:
    if seller.id in HOSTS:
        return HOSTS[seller.id]
    address = seller.api_pattern.removeprefix("https://").removesuffix("(?:/|$)").replace("\\", "")
    return [] if any(sign in address for sign in "()[]^*+?|") else [address]


def main() -> None:
    own = json.loads((DATA / "models.json").read_text("utf-8"))["models"]
    sellers, others = {}, windows()
    for seller in sorted(providers, key=lambda each: each.id):
        if seller.id in NO_TOKENS:
            continue
        known = {name for name, entry in own.items() if entry["provider"] == seller.id}
        models = (model for model in seller.models if not TUNED.search(model.id))
        rows = {model.id: made for model in models if (made := row(seller, model, others))}
        if seller.id == "openrouter":  # ids without a maker are other names of those with one
            rows = {name: made for name, made in rows.items() if "/" in name}
        rows = {name: made for name, made in rows.items() if name not in known}
        sold: dict[str, Any] = {"hosts": hosts(seller), "models": rows}
        if seller.id in MAKERS:
            sold["names"] = names(seller, rows, known)
        sellers[seller.id] = sold
    head = {
        "source": f"genai-prices {genai_prices.__version__}, read on {READ:%Y-%m-%d}",
        "units": UNITS,
        "makers": MAKERS,
    }
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(sold, separators=(',', ':'))}" for key, sold in sellers.items())
    (DATA / "prices.json").write_text(json.dumps(head)[:-1] + f',\n"sellers":{{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main()
