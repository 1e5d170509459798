"""Counts of recorded requests against what providers billed for them.

Reads token_truth/requests.jsonl: the population that docs/counting.md describes, by the rows' own `split`
(factors were chosen looking at `dev` alone), then everything outside it.
"""

from __future__ import annotations

import base64
import json
import random
import re
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import turnlog
from harness import Report, bench, quantile, seconds, shared
from quality.chains import recorded, steps
from turnlog.errors import TurnlogError
from turnlog.log.messages import ToolCall, ToolResult
from turnlog.providers import PROVIDERS
from turnlog.tokens import counter_for
from turnlog.tokens.counters import count_message

APIS = {
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
    "anthropic.messages": "anthropic",
    "google.generateContent": "google",
}
# Rows whose usage does not fit their body, as whoever recorded them notes
ODD = frozenset(
    "81ba8ffdec26bf63 f40b82c092e781d5 e49546d8e3c98b8d f686cd1035f92994 94698c2031a299db 304649e712e84858".split()
)
MODELS = re.compile(r"gpt-|o\d|claude-(?!1|2|instant)|gemini-")
OTHER_MODELS = re.compile(r"search|audio|image|realtime|tts|embedding")
LEFT_OUT = ("thinking", "previous_response_id", "functions", "output_config", "output_format", "response_format")


class Row(NamedTuple):
    """A recorded request, what was billed for it, and what we count."""

    group: str
    split: str
    billed: int
    counted: int
    certainty: str
    id: str
    model: str

    @property
    def off(self) -> float:
        return abs(self.counted - self.billed) / self.billed


def api_of(row: dict[str, Any]) -> str:
    return APIS.get(row["api"], "")


def model_of(row: dict[str, Any]) -> str:
    return str(row.get("model") or row.get("model_reported") or "")


def _structured(body: dict[str, Any]) -> bool:
    text = (body.get("text") or {}).get("format") or {}
    config = body.get("generationConfig") or {}
    schemas = ("responseSchema", "responseJsonSchema", "response_schema", "thinkingConfig")
    return text.get("type", "text") != "text" or any(config.get(key) for key in schemas)


def _functions_only(row: dict[str, Any]) -> bool:
    for tool in row["request"].get("tools") or []:
        kind = tool.get("type")
        if api_of(row) == "google":
            if set(tool) - {"functionDeclarations", "function_declarations"}:
                return False
        elif kind not in ((None, "custom") if api_of(row) == "anthropic" else (None, "function")):
            return False
    return True


def in_population(row: dict[str, Any]) -> bool:
    body, model = row["request"], model_of(row)
    return (
        row["tier"].startswith("A")
        and bool(api_of(row))
        and row["id"] not in ODD
        and (row["input_tokens"] or 0) >= 5
        and bool(MODELS.match(model))
        and not OTHER_MODELS.search(model)
        and not any(body.get(key) for key in LEFT_OUT)
        and not _structured(body)
        and "defer_loading" not in json.dumps(body)
        and _functions_only(row)
    )


def with_blobs(value: Any, folder: Path) -> Any:
    """`value` with `@blob:NAME` replaced by that file in base64."""
    if isinstance(value, dict):
        return {key: with_blobs(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [with_blobs(item, folder) for item in value]
    if isinstance(value, str) and "@blob:" in value:
        return re.sub(r"@blob:([\w.]+)", lambda name: base64.b64encode((folder / name[1]).read_bytes()).decode(), value)
    return value


def group_of(row: dict[str, Any]) -> str:
    provider = api_of(row).split("-")[0]
    if provider != "openai":
        return provider
    parsed = PROVIDERS[api_of(row)].parse(row["request"])
    parts = [part for message in parsed.messages for part in message.parts]
    tools = parsed.configuration.tools or any(isinstance(part, (ToolCall, ToolResult)) for part in parts)
    return "openai, tools" if tools else "openai, plain"


def counted(row: dict[str, Any], folder: Path, group: str, *, vertex: bool) -> Row | None:
    body = with_blobs(row["request"], folder)
    provider = "google-vertex" if vertex and row["provider"] == "google-vertex" else api_of(row)
    try:
        found = turnlog.count(body, model=model_of(row), provider=provider)
    except TurnlogError:
        return None
    return Row(group, row["split"], row["input_tokens"], found.tokens, found.certainty, row["id"], model_of(row))


def within(tokens: int, share: float) -> Callable[[Row], bool]:
    return lambda row: abs(row.counted - row.billed) <= max(tokens, share * row.billed)


TESTS: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "openai, plain": ("exact", lambda row: row.counted == row.billed),
    "openai, tools": ("exact", lambda row: row.counted == row.billed),
    "anthropic": ("within 3 tokens or 10 %", within(3, 0.1)),
    "google": ("within 3 tokens or 15 %", within(3, 0.15)),
}


def table(report: Report, rows: list[Row | None], title: str, misses: int) -> None:
    """Report the errors of each group and split."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in filter(None, rows):
        groups[row.group].append(row)
    for name, members in sorted(groups.items()):
        for split in sorted({row.split for row in members}):
            some = [row for row in members if row.split == split]
            figures: dict[str, float] = {"requests": len(some)}
            if name in TESTS:
                said, test = TESTS[name]
                figures[f"% {said}"] = 100 * sum(map(test, some)) / len(some)
            figures |= {f"% error, p{at}": 100 * quantile((row.off for row in some), at / 100) for at in (50, 90, 99)}
            figures["% median bias"] = 100 * statistics.median((row.counted - row.billed) / row.billed for row in some)
            report.row(f"{title}{name}, {split}", figures)
        for row in sorted(members, key=lambda row: -row.off)[:misses]:
            report.say(f"    {row.id} {row.model}: billed {row.billed}, counted {row.counted}")
    report.row(f"{title}cannot be read", {"requests": rows.count(None)})


# Rows that the table by model leaves out, by the reason
_OTHERWISE_BILLED = {
    "answered by a newer model: Gemini 2.0 does not think": (
        "d27dc06939fcd201",
        "026e6e3b8838107e",
        "138ac737a42a84d3",
    ),
    "billed with an earlier hidden prompt of Sonnet 4.5, 308 tokens": (
        "265daf17bb1cdc6e",
        "5bf4be83b087d3da",
        "f16e5aad189a8f23",
        "b2a30abbe6d3d50d",
        "cf624828c623f568",
        "3cc885bfb9537d85",
    ),
}
_OF_ROW = {name: reason for reason, names in _OTHERWISE_BILLED.items() for name in names}
_IN_BODY = (
    (r'"defer_loading": ?true', "tools that the provider keeps back: it adds what the request does not say"),
    (r'"type": ?"search_result"', "search results: citations add a prompt"),
    (r'"type": ?"(redacted_)?thinking", ?"(thinking|data|signature)"', "earlier thinking, of which a part is dropped"),
    (r'"(inlineData|inline_data|fileData|file_data)"|"type": ?"(image|document|file|input_image|image_url)"', "media"),
)


def judges(row: dict[str, Any]) -> bool:
    """Whether the table by model is about the model of a row."""
    model = model_of(row)
    known = bool(MODELS.match(model)) and not OTHER_MODELS.search(model)
    return known and api_of(row) in ("anthropic", "google") and bool(row["input_tokens"])


def left_out(row: dict[str, Any]) -> str:
    """Why the table by model cannot judge a row; empty if it can."""
    body, told = row["request"], (row["usage"] or {}).get("promptTokensDetails") or []
    if row["id"] in ODD:
        return "a body that does not fit its usage, as the recording notes"
    if row["id"] in _OF_ROW:
        return _OF_ROW[row["id"]]
    if row["tier"].startswith("B") or any(each.get("modality", "TEXT") != "TEXT" for each in told):
        return "media"
    if not _functions_only(row):
        return "tools of the provider's own"
    if body.get("previous_response_id") or body.get("conversation"):
        return "a conversation that the provider keeps"
    text = json.dumps(body)
    return next((reason for pattern, reason in _IN_BODY if re.search(pattern, text)), "")


def undated(model: str) -> str:
    """A model's name without its date, region, vendor and edition."""
    name = re.sub(r"^.*(?=claude-|gemini-)", "", model)
    return re.sub(r"(-latest|-\d{8}|-\d{3}|-0)$", "", re.sub(r"-v\d+(:\d+)?$", "", name))


def sessions() -> list[Row]:
    """The requests of sessions whose transcripts have all of the input: system text and messages, without tools."""
    found: list[Row] = []
    for chain, session in recorded(quick=True):
        if chain["format"] != "mini-swe-traj":
            continue
        total = 0
        for new, answer, bill in steps(session):
            counter = counter_for("openai-chat", bill.model)
            total += sum(count_message(spoken.message, counter).tokens for spoken in new)
            if bill.usage.input and "gemini" in bill.model:
                name = f"{chain['file']}, {bill.usage.input} tokens"
                model = bill.model.rsplit("/", 1)[-1]
                found.append(Row("sessions", chain["file"], bill.usage.input, total, "estimated", name, model))
            total += sum(count_message(spoken.message, counter).tokens for spoken in answer)
    return found


def by_model(report: Report, rows: list[dict[str, Any]], folder: Path, misses: int) -> None:
    """Whole requests to Claude and Gemini without any bill before: the error by model, and what is left out, why.

    Of each model: the median of the error, its size at p95, and how much too low it is at p95; then its size at p95
    for requests of 200 tokens or more, in which a token or two makes no difference."""
    reasons: dict[str, int] = defaultdict(int)
    models: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not judges(row):
            continue
        if reason := left_out(row):
            reasons[reason] += 1
        elif judged := counted(row, folder / "blobs", "", vertex=True):
            models[undated(judged.model)].append(judged)
    for judged in sessions():
        models[judged.model].append(judged)
        models[f"{judged.model}, of these in sessions"].append(judged)
    report.say("whole requests, without bills before:")
    for name, members in sorted(models.items()):
        report.row(f"  {name}", _errors(members))
        for judged in sorted(members, key=lambda judged: -judged.off)[:misses]:
            report.say(f"    {judged.id} {judged.model}: billed {judged.billed}, counted {judged.counted}")
    for reason, times in sorted(reasons.items()):
        report.row(f"  left out: {reason}", {"requests": times})


def claims(report: Report, judged: list[Row | None]) -> None:
    """How many counts are called exact, and how many of these are not what was billed."""
    exact = [row for row in judged if row is not None and row.certainty == "exact"]
    wrong = [row for row in exact if row.counted != row.billed]
    report.row("called exact", {"requests": len(exact), "wrong": len(wrong)})
    for row in wrong:
        report.say(f"    {row.id} {row.model}: billed {row.billed}, counted {row.counted}")


def _errors(members: list[Row]) -> dict[str, float]:
    errors = [100 * (row.counted - row.billed) / row.billed for row in members]
    figures: dict[str, float] = {"requests": len(errors), "% median": statistics.median(errors)}
    figures["% error, p95"] = quantile((abs(error) for error in errors), 0.95)
    figures["% under, p95"] = max(0.0, -quantile(errors, 0.05))
    large = [abs(error) for error, row in zip(errors, members, strict=True) if row.billed >= 200]
    if large:
        figures |= {"of 200 tokens or more": len(large), "% error there, p95": quantile(large, 0.95)}
    return figures


def hard(report: Report) -> None:
    """A megabyte of texts that tokenizers are known to choke on, against counts of 100,000 characters each."""
    noise = random.Random(7).randbytes(750_000)
    texts = {
        "spaces": " " * 1_000_000,
        "one letter": "a" * 1_000_000,
        "base64": base64.b64encode(noise).decode(),
        "emoji": "\U0001f600" * 250_000,
        "lone surrogates": "\ud83d" * 1_000_000,
        "<|endoftext|>": "<|endoftext|>" * 77_000,
    }
    counter = counter_for("openai-chat", "gpt-4o")
    counter.text("load")
    for name, text in texts.items():
        took = seconds(lambda text=text: counter.text(text))  # type: ignore[misc]
        counted, truth = (
            counter.text(text),
            sum(counter.text(text[i : i + 100_000]) for i in range(0, len(text), 100_000)),
        )
        figures = {"tokens": counted, "s of CPU": took, "% off its pieces' sum": 100 * (counted / truth - 1)}
        report.row(f"a megabyte of {name}", figures)


@bench(quick={"most": 300})
def counts(report: Report, *, most: int = 1_000_000, misses: int = 0) -> None:
    """Counts of recorded requests against what providers billed for them."""
    folder = shared("data", "token_truth")
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text("utf-8").splitlines()][:most]
    inside = [row for row in rows if in_population(row)]
    judged = [counted(row, folder / "blobs", group_of(row), vertex=False) for row in inside]
    table(report, judged, "", misses)
    claims(report, judged)
    aware = [counted(row, folder / "blobs", "google", vertex=True) for row in inside if api_of(row) == "google"]
    table(report, aware, "where Vertex AI is named as the provider: ", 0)
    seen = {row["id"] for row in inside}
    outside = [row for row in rows if row["id"] not in seen and api_of(row) and row["input_tokens"]]
    others = [counted(row, folder / "blobs", f"{row['api']}, tier {row['tier'][0]}", vertex=False) for row in outside]
    table(report, others, "outside the population: ", misses)
    by_model(report, rows, folder, misses)
    hard(report)
