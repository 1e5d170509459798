"""Tokens and dollars in a few words, the same in the terminal and on the page."""

from __future__ import annotations

from ..log.bills import Bills, total_usage
from ..log.usage import Usage
from ..models.catalog import Prices, find_model
from ..models.pricing import Cost, dollars, is_priced, total_cost


def cents(found: Cost) -> str:
    """As `dollars`, with two decimals if they say enough."""
    sign, dollar, amount = dollars(found).partition("$")
    return sign + dollar + amount if not amount or 0 < found.at_least < 0.01 else f"{sign}${found.at_least:,.2f}"


def charged(found: Cost) -> str:
    """What of a cost the provider said itself, and what that is at list prices; empty if it said nothing."""
    if not found.charged and found.listed == 0:
        return ""
    listed = "unknown" if found.listed is None else f"${found.listed:,.4f}"
    part = "" if found.charged == found.at_least else f"${found.charged:,.4f} "
    return f"{part}as charged by the provider, list price {listed}"


def longer(model: str) -> str:
    """Why the cost of a model's long prompts is a minimum."""
    match = find_model(model)
    prices = match.facts.prices if match else Prices()
    above = [tier.above for tier in prices.tiers] if prices.up_to is None else [prices.up_to]
    return f"{model} costs more in prompts of over {min(above):,} tokens" if above else ""


def tokens_of(usage: Usage) -> str:
    """Usage in a few words."""
    written = f", {usage.cache_write:,} written to the cache" if usage.cache_write else ""
    return f"{usage.input:,} tokens in ({usage.cached:,} cached{written}), {at_least(usage, usage.output)} out"


def at_least(usage: Usage, tokens: int, *, short: bool = False) -> str:
    """A number of tokens of this usage, with `>` if more were billed than is known; `short`: `25.7M`, `3.1k`."""
    return f"{'>' if usage.incomplete else ''}{_in_thousands(tokens) if short else f'{tokens:,}'}"


def amounts(bills: Bills) -> tuple[str, str]:
    """Tokens and cost in few characters: `25.7M`, `$1.20`."""
    usage = total_usage(bills)
    return at_least(usage, usage.input + usage.output, short=True), dollars(total_cost(bills), digits=2)


def _in_thousands(tokens: int) -> str:
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:,.1f}k" if tokens < 999_950 else f"{tokens / 1_000_000:,.1f}M"


def in_short(bills: Bills) -> str:
    """A bill on one line."""
    total = total_cost(bills)
    doubts = [charged(total)] if charged(total) else []
    doubts += [f"no full price for {name or 'a model without a name'}" for name in total.unpriced]
    doubts += [longer(name) for name in total.longer]
    doubts += [f"more was billed for {name or 'a model without a name'} than is on record" for name in total.incomplete]
    for name in total.assumed:
        like = find_model(name)
        doubts.append(f"{name} priced as {like.taken_for if like else name}")
    price = dollars(total) if is_priced(total) else "price unknown"
    return f"{tokens_of(total_usage(bills))}, {price}" + (f" ({'; '.join(doubts)})" if doubts else "")
