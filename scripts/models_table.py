"""Writes src/turnlog/models/data/models.json from a copy of litellm's model table.

    python scripts/models_table.py TABLE.json

Takes the fields that turnlog uses, mends what the source is known to get wrong, and adds what it does
not say and the providers publish; each with its reason below. Source and date are copied along.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "src/turnlog/models/data/models.json"
UNITS = "limits in tokens; prices in US dollars per million tokens, to be verified; what is missing is unknown"
OWNERS = {"gemini": "google"}
MEDIA = {
    "supports_vision": "image",
    "supports_pdf_input": "document",
    "supports_audio_input": "audio",
    "supports_video_input": "video",
}
PRICES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached",
    "cache_creation_input_token_cost": "cache_write",
}
MILLION = 1_000_000
WINDOWS = (400_000, 1_050_000)

# The shortest prefix that is cached, in tokens, as published: first pattern that fits. Models that came
# later than these pages were read are left open.
MINIMUM = {
    # https://platform.openai.com/docs/guides/prompt-caching: "1024 tokens or more"
    "openai": ((r"", 1024),),
    # https://docs.claude.com/en/docs/build-with-claude/prompt-caching, "Cache limitations"; of the 5.5 models by
    # https://openrouter.ai/docs/cookbook/evaluate-and-optimize/model-migrations/claude-5-5
    "anthropic": (
        (r"claude-(opus-4-[56]|haiku-4-5)\b", 4096),
        (r"claude-(opus-4-7|sonnet-4-6)\b", 2048),
        (r"claude-(opus|sonnet|haiku)-5-5\b|claude-(opus|fable|mythos)-5\b", 512),
        (r"claude-(opus-4-8|sonnet-4-5|sonnet-5)\b", 1024),
    ),
    # https://ai.google.dev/gemini-api/docs/caching, implicit caching
    "google": ((r"gemini-(2\.5|3)-flash(-preview)?$", 1024), (r"gemini-(2\.5|3|3\.1)-pro(-preview)?$", 4096)),
}
# A prompt of more tokens costs so many times as much, all of it, and its answer so many times as much. Lengths from the
# fields `input_cost_per_token_above_*` of litellm's own table (release 1.106.2); of Claude Sonnet 4.5, which it lists
# without, https://docs.claude.com/en/docs/about-claude/pricing, "Long context pricing". Factors from there,
# https://platform.openai.com/docs/pricing and https://ai.google.dev/gemini-api/docs/pricing. A test compares them with
# genai-prices'.
TIERS = {
    "openai": ((r"gpt-5\.[4-9](?!-(mini|nano|codex|cyber))|gpt-6(?!.*cyber)", 272_000, 2, 1.5),),
    "anthropic": ((r"claude-haiku-5-5\b", 100_000, 5, 5), (r"claude-sonnet-4-5\b", 200_000, 2, 1.5)),
    "google": ((r"gemini-(2\.5|3\.1)-pro(-preview(-customtools)?)?$|gemini-pro-latest$", 200_000, 2, 1.5),),
}
# The longest prompt, in tokens, that the prices of other models hold for: a longer one costs more, it is not known how
# much.
UP_TO = {
    "openai": ((r"gpt-5\.[4-9](?!-(mini|nano|codex))|gpt-6|(gpt-)?daybreak", 272_000),),
    "anthropic": (),
    "google": ((r"gemini-.*\bpro\b|gemini-2\.5-computer", 200_000),),
}
LONG_WRITE = 2
"""A write that is kept for an hour costs twice the input with Anthropic (same page, "Pricing")."""


def per_million(price: Any) -> Decimal:
    """The source's floats are per token and one binary digit off: 0.39999999999999997 is 0.4."""
    return Decimal(f"{Decimal(str(price)) * MILLION:.9g}").normalize()


def prices(name: str, facts: dict[str, Any], owner: str) -> dict[str, Any]:
    # The source writes 0 for what is free, what is not sold by the token and what nobody knows.
    found = {short: per_million(facts[key]) for key, short in PRICES.items() if facts.get(key)}
    write = found.get("cache_write")
    if write is not None and write < found["input"] and "cached" not in found:
        found["cached"] = found.pop("cache_write")  # no write costs less than plain input: a slip of columns
    if owner == "anthropic" and "cache_write" in found:
        found["cache_write_1h"] = found["input"] * LONG_WRITE
    made: dict[str, Any] = {kind: plain(price) for kind, price in found.items()}
    tier = next((rest for pattern, *rest in TIERS[owner] if re.match(pattern, name)), None)
    up_to = next((tokens for pattern, tokens in UP_TO[owner] if re.match(pattern, name)), None)
    if tier is not None and "input" in found:
        above, times, times_out = tier
        longer = {kind: price * Decimal(str(times_out if kind == "output" else times)) for kind, price in found.items()}
        made["tiers"] = [{"above": above, **{kind: plain(price) for kind, price in longer.items()}}]
    elif up_to is not None and "input" in found:
        made["up_to"] = up_to
    return made


def plain(price: Decimal) -> int | float:
    return int(price) if price == int(price) else float(price)


def media(name: str, facts: dict[str, Any], owner: str) -> list[str]:
    found = [kind for flag, kind in MEDIA.items() if facts.get(flag)]
    # The source (this release of it) has no flag for video. Gemini models that hear also watch:
    # https://ai.google.dev/gemini-api/docs/video-understanding; recorded with 2.5 and 3 flash.
    if owner == "google" and "audio" in found and "video" not in found:
        found.append("video")
    return found


def cache(name: str, owner: str, found: dict[str, Any]) -> dict[str, Any]:
    """How caching is asked for. A model without a price for cached input is taken to have none."""
    if "cached" not in found:
        return {}
    minimum = next((tokens for pattern, tokens in MINIMUM[owner] if re.match(pattern, name)), None)
    rules: dict[str, Any] = {"mode": "marked" if owner == "anthropic" else "automatic"}
    return rules if minimum is None else {**rules, "minimum": minimum}


def input_limit(facts: dict[str, Any], owner: str) -> int | None:
    # For some of OpenAI's models since gpt-5 the source has the whole window, of which the API takes no
    # more than what the longest answer leaves: 272,000 and 922,000, as it says itself of their siblings.
    limit: int | None = facts.get("max_input_tokens")
    return limit - facts["max_output_tokens"] if owner == "openai" and limit in WINDOWS else limit


def entry(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    owner = OWNERS.get(facts["provider"], facts["provider"])
    found = prices(name, facts, owner)
    made = {
        "provider": owner,
        "input": input_limit(facts, owner),
        "output": facts.get("max_output_tokens"),
        "media": media(name, facts, owner),
        "cache": cache(name, owner, found),
        "prices": found,
    }
    return {key: value for key, value in made.items() if value is not None and (value != {} or key == "prices")}


def main(source: str) -> None:
    table = json.loads(Path(source).read_text("utf-8"))
    read = re.search(r"\d{4}-\d{2}-\d{2}", table["source"])
    if read is None:
        raise SystemExit(f"{source}: its source does not say when it was read (a date like 2026-01-31)")
    # An entry with neither limits nor a price for what it writes is no model (`container`: a sandbox).
    models = {
        name: entry(name, facts)
        for name, facts in sorted(table["models"].items())
        if facts.get("max_input_tokens") or facts.get("output_cost_per_token")
    }
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(made, separators=(',', ':'))}" for name, made in models.items())
    head = {"source": table["source"].partition(";")[0], "date": read[0], "units": UNITS}
    OUT.write_text(json.dumps(head)[:-1] + f',\n"models":{{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
