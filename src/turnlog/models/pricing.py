"""What usage costs in US dollars, at the list prices in the table of models.

Costs are Decimal: prices are decimal fractions, and sums of floats would depend on their order. Not included, because
usage does not report them: batch discounts, regional prices, tool fees, separate prices for media. Some models cost
more per token in long prompts (`Prices.up_to`). The length of each prompt in a sum is not known: if the sum is longer
than the prices hold for, the cost is a minimum.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from msgspec import Struct

from ..errors import InputError
from ..log.bills import Bills
from ..log.usage import Usage
from .catalog import Prices, find_model

_MILLION = 1_000_000
_ZERO = Decimal(0)
_Amount = Decimal | None


class Cost(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """A cost in US dollars, by what was paid for.

    `input` is input that was neither read from the cache (`cached`) nor written to it (`cache_write`), `output` what
    the model wrote. A part is None if its price is unknown. `at_least` is the sum of all known parts. `unpriced`
    names the models with a missing price, `assumed` those with the prices of another model because they are not in the
    table, `longer` those whose prices hold for shorter prompts than these may have been (`Prices.up_to`), `incomplete`
    those of which more was billed than is known. Costs can be added.
    """

    input: Decimal | None = _ZERO
    cached: Decimal | None = _ZERO
    cache_write: Decimal | None = _ZERO
    output: Decimal | None = _ZERO
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
    prices = match.facts.prices if match else Prices()
    # Tokens written to an automatic cache cost what input costs, unless the table has a price for writing.
    plain = prices.input if match and match.facts.cache.mode == "automatic" else None
    cached, written = max(usage.cached, 0), max(usage.cache_write, 0)
    long = min(max(usage.cache_write_1h, 0), written)
    parts = {
        "input": _price(usage.input - cached - written, prices.input),
        "cached": _price(cached, prices.cached),
        "cache_write": _sum(
            _price(written - long, plain if prices.cache_write is None else prices.cache_write),
            _price(long, plain if prices.cache_write_1h is None else prices.cache_write_1h),
        ),
        "output": _price(usage.output, prices.output),
    }
    priced = [part for part in parts.values() if part is not None]
    return Cost(
        **parts,
        at_least=sum(priced, _ZERO),
        unpriced=(model,) if len(priced) < len(parts) else (),
        assumed=(model,) if match and match.taken_for and any(priced) else (),
        longer=(model,) if prices.up_to is not None and usage.input > prices.up_to else (),
        incomplete=(model,) if usage.incomplete else (),
    )


def total_cost(bills: Bills) -> Cost:
    """The cost of all `bills`, each at its own model's prices."""
    return reduce(Cost.__add__, (cost(usage, model) for model, usage in bills.items()), Cost())


def _price(tokens: int, per_million: _Amount) -> _Amount:
    """The price of `tokens` in dollars; 0 for no tokens, even if the price is unknown."""
    if tokens <= 0:
        return _ZERO
    return None if per_million is None else tokens * per_million / _MILLION


def _sum(one: _Amount, other: _Amount) -> _Amount:
    return None if one is None or other is None else one + other


def _names(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return some if some == more else tuple(sorted({*some, *more}))
