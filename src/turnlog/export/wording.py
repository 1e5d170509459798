"""Tokens and dollars in a few words, the same in the terminal and on the page."""

from __future__ import annotations

from ..log.bills import Bills, total_usage
from ..log.usage import Usage
from ..models.catalog import Prices, find_model
from ..models.pricing import Cost, total_cost


def is_priced(found: Cost) -> bool:
    """Whether anything is known of a cost."""
    return found.total is not None or bool(found.at_least)


def dollars(found: Cost) -> str:
    """A cost in a word: `$1.20`; `~$1.20` at the prices of another model, `>$1.20` if it may be more, `?` if no price
    is known."""
    if not is_priced(found):
        return "?"
    sign = ">" if found.total is None else "~" if found.assumed else ""
    return f"{sign}${found.at_least:,.4f}"


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


def at_least(usage: Usage, tokens: int) -> str:
    """A number of tokens of this usage, with `>` if more were billed than is known."""
    return f"{'>' if usage.incomplete else ''}{tokens:,}"


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
