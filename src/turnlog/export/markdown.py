"""A session as Markdown, for people.

Results, arguments and all that is no prose is in fenced blocks, so it cannot become a heading, a link, an image that a
viewer would fetch, or HTML that a viewer would run. What the user and the model wrote is Markdown, and stays so as far
as it cannot leave its place: see `_prose`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .._platform.lazy import lazy_pattern
from .._platform.visible import visible
from ..display import escapes
from ..display.description import ContentBlock, describe
from ..display.talk import Talk, TalkItem
from ..log.records import Record
from ..log.store import Problem, Store
from ..redaction.store import as_kept
from ..view.decisions import Rewinds

_SPECIAL = lazy_pattern(r"([\\`*_{}\[\]()#+\-.!|<>~&:@$^])")


_SUMMARY = 120
"""At most this many characters of a call stand in its line."""

_FACT = lazy_pattern(r"(?!\d+[.)]\s)[A-Za-z0-9>~?$][A-Za-z0-9 .:>$~+()?,-]*")  # means nothing in Markdown
_WORD = lazy_pattern(r"[^\w+#.-]")
_FENCE = lazy_pattern(r"\s*(?:>\s?|[-*+]\s+)*(`{3,}(?=[^`]*$)|~{3,})\s*(\S*)")
_SPAN = lazy_pattern(r"(?<![\\`])(`+)(?!`)([^`\n]|(?!\1(?!`))`)+(?<!`)\1(?!`)")
_UNSAFE = lazy_pattern(
    r"<|!\[|\]:|\]\((?!https?://)|(?:\*\*|__)(?=\s*(?:You|Assistant|Claude|GPT|Gemini)\b)", re.IGNORECASE
)
_HOLDERS = r"((?:[\s>]|[-*+](?=\s)|\d{1,9}[.)](?=\s))*)"  # of quotations and lists
_HEADING = lazy_pattern(_HOLDERS + r"(#{1,6})(?=\s|$)")
_UNDERLINE = lazy_pattern(_HOLDERS + r"(?:=+|-+)\s*$")


def as_markdown(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The talk: what was said, and each call with its outcome; arguments, results and reasoning are folded. What is no
    part of the talk (`Talk`) is left out.

    Raises SessionNotFound, CorruptRecord. Media are named, not shown. Adds nothing to `problems`.
    """
    talk = Talk(as_kept(store), session_id)
    yield _bytes(f"# {_inline(talk.info.title or talk.info.id)}\n\n{' · '.join(map(_fact, talk.facts(files=True)))}\n")
    for number in range(len(talk.turns) + 1):
        if number:
            yield _bytes(f"\n## {talk.heading(number)}\n")
        speaker = ""
        for item in talk.items(number):
            name = {"user": "You", "assistant": talk.speaker}.get(item.kind, speaker)
            yield _bytes((f"\n**{name}**\n" if name != speaker else "") + _item(item))
            speaker = name


def _fact(text: str) -> str:
    return text if _FACT.fullmatch(text) and "www." not in text else _inline(text)


def _item(item: TalkItem) -> str:
    match item.kind:
        case "user":
            return "\n" + "".join(f"> {line}".rstrip() + "\n" for line in _prose(item.text).split("\n"))
        case "assistant":
            return f"\n{_prose(item.text)}\n"
        case "mark":
            return f"\n*{_inline(item.text)}*\n" + (_details("in full", item.folded) if item.folded else "")
        case "call":
            about = " ".join(item.text.split())
            words = f"{item.label} {about.rsplit('/', 1)[-1] if item.is_path else about}"
            files = "".join(f", {file.path.rsplit('/', 1)[-1]} {file.change}" for file in item.files)
            shown = words if len(words) <= _SUMMARY else f"{words[:_SUMMARY]}…"
            given = item.info.call.raw_arguments if item.info else ""
            return _details(f"{shown}{files} - {item.outcome}", given, item.folded)
        case _:
            return _details(item.label or item.kind, item.text)


def _details(summary: str, *texts: str) -> str:
    """Texts that are folded under a line."""
    inside = "".join(map(_fenced, texts))
    return f"\n<details><summary>{escapes.text(summary, one_line=True)}</summary>\n{inside}\n</details>\n"


def _prose(text: str) -> str:
    """Markdown of somebody else that stays in its place.

    Outside of fenced code, which gets fences of ours, no `<` is left, so there is no HTML and nothing closes what we
    opened; no image and no definition of a link; links only to http. Headings get deeper than ours, and nothing names a
    speaker as we do.
    """
    pieces: list[str] = []
    code: list[str] | None = None
    fence = language = ""
    for line in visible(text).strip("\n").split("\n"):
        if code is None and (opened := _FENCE.match(line)):
            fence, language, code = opened[1], opened[2], []
        elif code is None:
            pieces.append(_prose_line(line, pieces[-1] if pieces else ""))
        elif len(end := line.strip().lstrip("> ")) >= len(fence) and not end.strip(fence[0]):
            pieces.append(_fenced("\n".join(code) or " ", _WORD.sub("", language)).strip("\n"))
            code = None
        else:
            code.append(line)
    if code is not None:
        pieces.append(_fenced("\n".join(code) or " ", _WORD.sub("", language)).strip("\n"))
    return "\n".join(pieces)


def _prose_line(line: str, before: str) -> str:
    """A line outside of code."""
    shown, end = "", 0
    for span in _SPAN.finditer(line):
        shown += _UNSAFE.sub(_harmless, line[end : span.start()])
        is_safe = _UNSAFE.search(span[0]) is None
        shown += span[0] if is_safe else f"<code>{_inline(span[0].strip('`')).replace(chr(92) + '<', '&lt;')}</code>"
        end = span.end()
    shown += _UNSAFE.sub(_harmless, line[end:])
    if before.strip() and (line_below := _UNDERLINE.match(shown)):  # would make a heading of the line before
        return f"{line_below[1]}\\{shown[line_below.end(1) :]}"
    return _HEADING.sub(r"\1##\2", shown, count=1) if _HEADING.match(shown) else shown


def _harmless(found: re.Match[str]) -> str:
    if found[0] in ("**", "__"):
        return f"\\{found[0][0]}\\{found[0][1]}"
    return "&lt;" if found[0] == "<" else f"{found[0][0]}\\{found[0][1:]}"


def as_markdown_messages(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """As `as_markdown_records`, only the messages."""
    return _listed(store, session_id, messages=True)


def as_markdown_records(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The whole session: messages, notes, settings and decisions in full, other records in one line each.

    Raises SessionNotFound, CorruptRecord. Media are named, not shown. Adds nothing to `problems`.
    """
    return _listed(store, session_id, messages=False)


def _listed(store: Store, session_id: str, *, messages: bool) -> Iterator[bytes]:
    store = as_kept(store)
    info = store.info(session_id)
    head = f"# {_inline(info.title or info.id)}\n\nSession {_code(info.id)}, {info.records} records, {info.messages} "
    yield _bytes(f"{head}messages, {info.created} to {info.updated}\n")
    rewinds = Rewinds.of(store.of_kinds(session_id, ("decision",)))
    gone = 0
    for record in store.read(session_id, last=info.records):
        if messages and record.message is None:
            continue
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
