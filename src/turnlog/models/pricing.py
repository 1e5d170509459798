"""What usage costs in US dollars: what the provider says that it charged, else list prices of the table of models.

Costs are Decimal: prices are decimal fractions, and sums of floats would depend on their order. Not included, because
usage does not report them: batch discounts, regional prices, tool fees, separate prices for media. Some models cost
more per token in long prompts (`Prices.tiers`): each answer counts at the price of its own prompt, also in a sum
(`Usage.apart`).
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from msgspec import Struct

from ..errors import InputError
from ..log.bills import Bills
from ..log.usage import PROMPT_LENGTHS, Bracket, Usage
from .catalog import Found, Prices, find_model

_MILLION = 1_000_000
_ZERO = Decimal(0)
_Amount = Decimal | None


class Cost(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """A cost in US dollars, by what was paid for.

    `input` is input that was neither read from the cache (`cached`) nor written to it (`cache_write`), `output` what
    the model wrote, all at list prices. Answers of which the provider said what it charged are not in these parts:
    `charged` is their sum, and `listed` what they would cost at list prices. A part is None if its price is unknown.
    `at_least` is the sum of all known parts and of `charged`. `unpriced` names the models with a missing price,
    `assumed` those with the prices of another model because they are not in the table, `longer` those whose prices
    hold for shorter prompts than these may have been (`Prices.up_to`), `incomplete` those of which more was billed than
    is known. Costs can be added.
    """

    input: Decimal | None = _ZERO
    cached: Decimal | None = _ZERO
    cache_write: Decimal | None = _ZERO
    output: Decimal | None = _ZERO
    charged: Decimal = _ZERO
    listed: Decimal | None = _ZERO
    at_least: Decimal = _ZERO
    unpriced: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    longer: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def total(self) -> Decimal | None:
        """The sum of all parts; None if one of them is unknown, or known only as a minimum."""
        return None if self.unpriced or self.longer or self.incomplete else self.at_least

    def __add__(self, other: Cost) -> Cost:
        """The sum of two costs."""
        return Cost(
            input=_sum(self.input, other.input),
            cached=_sum(self.cached, other.cached),
            cache_write=_sum(self.cache_write, other.cache_write),
            output=_sum(self.output, other.output),
            charged=self.charged + other.charged,
            listed=_sum(self.listed, other.listed),
            at_least=self.at_least + other.at_least,
            unpriced=_names(self.unpriced, other.unpriced),
            assumed=_names(self.assumed, other.assumed),
            longer=_names(self.longer, other.longer),
            incomplete=_names(self.incomplete, other.incomplete),
        )


def cost(usage: Usage, model: str) -> Cost:
    """The cost of `usage` of a model. Raises InputError for anything that is not a Usage, and if the user's own file of
    models cannot be used."""
    if not isinstance(usage, Usage):
        raise InputError(
            f"usage must be `answer.usage` or `session.usage`, a turnlog.Usage, not {type(usage).__name__}"
        )
    match = find_model(model)
    if not usage.apart:
        least = min(usage.window or usage.input, usage.input)  # of several steps: the last one
        return _of(usage.brackets()[0], model, match, least, usage.input)
    found = Cost()
    for part in usage.apart:
        most = min(part.input, next((length for length in PROMPT_LENGTHS if length > part.above), part.input))
        found += _of(part, model, match, part.above + 1, most)
    return found


def _of(part: Bracket, model: str, match: Found | None, least: int, most: int) -> Cost:
    """The cost of one part of a sum. Its prompts have at least `least` and at most `most` tokens."""
    listed = _listed(part, model, match, least, most)
    if part.charged is None:
        return listed
    return Cost(charged=part.charged, listed=listed.total, at_least=part.charged)


def _listed(usage: Bracket, model: str, match: Found | None, least: int, most: int) -> Cost:
    """What it costs at list prices."""
    prices = match.facts.prices if match else Prices()
    price = prices.at(least)
    is_longer = price != prices.at(most) or (prices.up_to is not None and most > prices.up_to)
    # Tokens written to an automatic cache cost what input costs, unless the table has a price for writing.
    plain = price.input if match and match.facts.cache.mode == "automatic" else None
    cached, written = max(usage.cached, 0), max(usage.cache_write, 0)
    long = min(max(usage.cache_write_1h, 0), written)
    parts = {
        "input": _price(usage.input - cached - written, price.input),
        "cached": _price(cached, price.cached),
        "cache_write": _sum(
            _price(written - long, plain if price.cache_write is None else price.cache_write),
            _price(long, plain if price.cache_write_1h is None else price.cache_write_1h),
        ),
        "output": _price(usage.output, price.output),
    }
    priced = [part for part in parts.values() if part is not None]
    return Cost(
        input=parts["input"],
        cached=parts["cached"],
        cache_write=parts["cache_write"],
        output=parts["output"],
        at_least=sum(priced, _ZERO),
        unpriced=(model,) if len(priced) < len(parts) else (),
        assumed=(model,) if match and match.taken_for and any(priced) else (),
        longer=(model,) if is_longer else (),
        incomplete=(model,) if usage.incomplete else (),
    )


def total_cost(bills: Bills) -> Cost:
    """The cost of all `bills`, each at its own model's prices."""
    return reduce(Cost.__add__, (cost(usage, model) for model, usage in bills.items()), Cost())


def is_priced(found: Cost) -> bool:
    """Whether anything is known of a cost."""
    return found.total is not None or bool(found.at_least)


def dollars(found: Cost, *, digits: int = 4) -> str:
    """A cost in a word: `$1.2000`; `~$1.20` at the prices of another model, `>$1.20` if it may be more, `?` if no price
    is known."""
    if not is_priced(found):
        return "?"
    sign = ">" if found.total is None else "~" if found.assumed else ""
    return f"{sign}${found.at_least:,.{digits}f}"


def _price(tokens: int, per_million: _Amount) -> _Amount:
    """The price of `tokens` in dollars; 0 for no tokens, even if the price is unknown."""
    if tokens <= 0:
        return _ZERO
    return None if per_million is None else tokens * per_million / _MILLION


def _sum(one: _Amount, other: _Amount) -> _Amount:
    return None if one is None or other is None else one + other


def _names(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return some if some == more else tuple(sorted({*some, *more}))
