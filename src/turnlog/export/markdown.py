"""A session as Markdown, for people.

Text from the transcript is in fenced blocks, so it cannot become a heading, a link, an image that a viewer would fetch,
or HTML that a viewer would run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .._platform.lazy import lazy_pattern
from ..log.records import Record
from ..log.store import Problem, Store
from ..redaction.store import as_kept
from ..view.decisions import Rewinds
from .description import ContentBlock, describe
from .escapes import visible

_SPECIAL = lazy_pattern(r"([\\`*_{}\[\]()#+\-.!|<>~&:@$^])")


def as_markdown(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The whole session: messages, notes, settings and decisions in full, other records in one line each.

    Raises SessionNotFound, CorruptRecord. Media are named, not shown. Adds nothing to `problems`.
    """
    store = as_kept(store)
    info = store.info(session_id)
    head = f"# {_inline(info.title or info.id)}\n\nSession {_code(info.id)}, {info.records} records, {info.messages} "
    yield _bytes(f"{head}messages, {info.created} to {info.updated}\n")
    rewinds = Rewinds.of(store.of_kinds(session_id, ("decision",)))
    gone = 0
    for record in store.read(session_id, last=info.records):
        before, gone = gone, rewinds.by(record.n)
        if gone and gone != before:
            yield _bytes(f"\n*From here on taken back by decision {gone}:*\n")
        elif before and not gone:
            yield _bytes("\n*Up to here.*\n")
        yield _bytes(_record(record))


def _record(record: Record) -> str:
    description = describe(record)
    headline = _inline("".join(map(str, description.headline)))
    shown = [block for block in description.blocks if not block.is_detail]
    if description.is_said:
        title = f"{description.kind.title()} ({headline})" if headline else description.kind.title()
    elif not shown:
        return f"\n*{description.n}. {description.kind}: {headline}*\n"
    else:
        title = f"{description.kind.title()}: {headline}"
    return f"\n## {description.n}. {title}\n{''.join(map(_block, shown))}"


def _block(block: ContentBlock) -> str:
    match block.kind:
        case "call":
            return f"\n*calls* {_code(block.name)} *as* {_code(block.id)}\n{_fenced(block.text)}"
        case "result":
            inside = "".join(map(_block, block.blocks))
            return f"\n*result of* {_code(block.name)} {_code(block.id)}*: {block.outcome}*\n{inside}"
        case "media":
            return f"\n*{block.label}* {_code(block.name)} {_code(block.id or block.text)}\n"
    named = " ".join(filter(None, (block.label and f"*{_inline(block.label)}*", _code(block.name))))
    head = f"\n{named}\n" if named else ""
    if block.kind == "data":
        return head + _fenced(json.dumps(block.value, ensure_ascii=False, indent=2), "json")
    return head + _fenced(block.text) + "".join(map(_block, block.blocks))


def _inline(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text, one_line=True))


def _code(text: str) -> str:
    """An inline code span; "" for an empty text."""
    shown = visible(text, one_line=True).strip()
    if not shown:
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fenced(text: str, language: str = "text") -> str:
    if not text:
        return ""
    shown = visible(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"\n{fence}{language}\n{shown}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
