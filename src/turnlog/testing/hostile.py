"""Hostile text, and sessions that contain it everywhere: text in transcripts that a terminal or a browser would obey.

Everything is deterministic. A script that runs would set `data-ran` on the root element of its page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from ..log.messages import Form, Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from ..log.prompt import PromptRecord, PromptSection, When
from ..log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    SealedRecord,
    SessionOpened,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
    UsageRecord,
)
from ..log.store import Draft, Store
from ..log.usage import Usage

NEEDLE = "needlework"
"""A plain word in the hostile text, to search for."""

_RUN = "document.documentElement.setAttribute('data-ran','1')"

HOSTILE: tuple[str, ...] = (
    # for browsers
    f"<script>{_RUN}</script>",
    f"</pre></details></article></title></style></textarea></script><script>{_RUN}</script>",
    f'"><img src=x onerror="{_RUN}"><svg/onload={_RUN}>',
    f"' autofocus onfocus='{_RUN}' x='",
    f"[link](javascript:{_RUN}) ![image](http://127.0.0.1:9/x.png) <a href='javascript:{_RUN}'>a</a>",
    "<!-- --> --!> ]]> <![CDATA[ <?php ?> <%= 7*7 %> {{7*7}} ${7*7} {% raw %} #{7*7}",
    "<iframe src='http://127.0.0.1:9/'></iframe><base href='http://127.0.0.1:9/'><meta http-equiv=refresh content=0>",
    "<style>*{display:none}</style><link rel=stylesheet href='http://127.0.0.1:9/x.css'><form action=x><input>",
    "&lt;script&gt; &#60;script&#62; &#x3c; +ADw-script+AD4- &nbsp &",
    "```\n# heading\n~~~\n````html\n<b>bold</b>\n```\n",
    # for terminals: CSI, title, clipboard (OSC 52), a link (OSC 8), DCS, APC, the same in one byte (C1), shift out
    "\x1b[2J\x1b[31m\x1b[?1049h\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://127.0.0.1:9/\x1b\\here\x1b]8;;\x1b\\",
    "\x1bP1;2|x\x1b\\ \x1b_x\x1b\\ \x9b31m \x9d0;title\x9c \x90 \x0e \x0f \x05 \x07 \x08\x08\x08 \x7f \x0b \x0c \x85",
    "progress 10%\rprogress 20%\r\nnext\n\r",
    # for readers: bidirectional controls and isolates, zero width, tags, variation, line separators
    "\u202egnp.exe\u202c \u2066\u2067\u2068\u2069 \u200e\u200f\u061c a\u200bb\ufeff\u2060",
    "\U000e0041\U000e007f \u2028\u2029 \ufff9\ufffb",
    # for decoders
    "\x00 \ud800 \udfff \ud83d \udc00\ud800 \ufffe \U0010ffff \u0300" + "\u0301" * 50,
    f"ordinary words with a {NEEDLE} in them, שלום, مرحبا, 数据, 👩‍👩‍👧",
)
"""One text of each kind."""

_ALL = " ".join(HOSTILE)
_SVG = f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{_RUN}\"><script>{_RUN}</script></svg>".encode()


def hostile_text(size: int, *, one_line: bool = False) -> str:
    """Text of about that many characters, made by repeating all texts."""
    text = "".join(_up_to(size))
    return text.replace("\n", " ").replace("\r", " ") if one_line else text


def _up_to(size: int) -> Iterator[str]:
    for n, piece in enumerate(cycle(HOSTILE)):
        if size <= 0:
            return
        yield f"{piece} {n} "
        size -= len(piece) + 4


def hostile_body(size: int, *, depth: int = 100_000) -> dict[str, Any]:
    """The body of an OpenAI request for session `hostile`, with about that many characters: five sixths on one line,
    partly without spaces, the rest in all other places. Arguments and a result are nested `depth` levels deep."""
    deep = "[" * depth + "]" * depth
    line, rest = hostile_text(size * 2 // 3, one_line=True) + "a" * (size // 6), hostile_text(size // 24)

    def call(call_id: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": _ALL[:200], "arguments": arguments}}

    calls = [call(_ALL, json.dumps({_ALL: rest, "deep": [[_ALL]]})), call("deep", deep), call("broken", rest)]
    body = {
        "model": HOSTILE[10],
        _ALL: _ALL,
        "messages": [
            {"role": "system", "content": _ALL},
            {"role": "user", "content": rest, "name": _ALL},
            {"role": "assistant", "content": _ALL, "tool_calls": calls, "refusal": None},
            {"role": "tool", "tool_call_id": _ALL, "content": line},
            {"role": "tool", "tool_call_id": "deep", "content": deep},
            {"role": "tool", "tool_call_id": "nobody's", "content": _ALL},
            {"role": "assistant", "content": rest},
            {"role": "user", "content": [{"type": _ALL, "text": _ALL}, {"type": "text", "text": _ALL}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"javascript:{_RUN}"}}]},
        ],
    }
    return {"session_id": "hostile", "request": body}


def hostile_session(store: Store, session_id: str, size: int) -> None:
    """A session of about that many characters with every kind of record and part, and hostile text in every field."""
    half = hostile_text(size // 2)
    before = store.put_blob(hostile_text(size // 8).encode("utf-8", "replace"))
    after = store.put_blob((hostile_text(size // 8) + "\n" + _ALL).encode("utf-8", "replace"))
    patch = store.put_blob(
        f"--- {HOSTILE[0]}\n+++ b\n@@ -1 +1 @@\n-{HOSTILE[10]}\n+{HOSTILE[13]}\n".encode("utf-8", "replace")
    )
    picture = Media("image", mime="image/svg+xml", sha256=store.put_blob(_SVG), size=len(_SVG), name=_ALL)
    store.create(session_id, title=_ALL)
    store.append(session_id, [Draft(body) for body in _bodies(half, before, after, patch, picture)])


def _bodies(half: str, before: str, after: str, patch: str, picture: Media) -> Iterator[Body]:
    form = Form("anthropic", shape=_ALL, delta={_ALL: _ALL})
    call = ToolCall(_ALL, _ALL, {_ALL: _ALL, "n": [{"deep": _ALL}]}, form=form)
    custom = ToolCall(_ALL + "2", _ALL, raw=half[: len(half) // 8], kind="custom")
    replacement = [{"role": "user", "parts": [{"type": "text", "text": _ALL}]}]
    stands = {"replacement": replacement, "at": 5, "strategy": _ALL, "before": 9, "after": 2, _ALL: [_ALL]}
    yield Configuration("openai-chat", _ALL, {_ALL: _ALL}, (Tool(name=_ALL, description=_ALL),), why=_ALL)
    yield MessageRecord(Message("system", (Text(_ALL),)))
    yield TurnOpened(_ALL)
    yield MessageRecord(Message("user", (Text(half), picture), name=_ALL), source=_ALL)
    yield UsageRecord(_ALL, _ALL, Usage(input=5, output=1), raw={_ALL: _ALL})
    yield MessageRecord(
        Message("assistant", (Reasoning(_ALL, _ALL, (_ALL,), _ALL), Text(_ALL), call, custom)), model=_ALL
    )
    yield Approval(_ALL, "asked", 6, _ALL, _ALL)
    yield ToolStarted(_ALL, 6, _ALL)
    yield ToolFinished(_ALL, 6, "failed", 1.5, _ALL)
    yield MessageRecord(Message("user", (ToolResult(_ALL, _ALL, (Text(half), picture, Opaque(_ALL, _ALL, _ALL))),)))
    yield FileChange(HOSTILE[2] + HOSTILE[10].replace("\0", ""), "modified", before, after, root="/" + HOSTILE[0])
    yield FileChange("b/" + HOSTILE[13], "created", after=after)
    yield FileChange("c", "modified", patch=patch)
    yield StreamCheckpoint(Message("assistant", (Text(_ALL),)), (ToolCall(_ALL, _ALL, raw=_ALL),), _ALL)
    yield PartialAnswer(Message("assistant", (Text(_ALL),)), _ALL, (ToolCall(_ALL, _ALL, raw=_ALL),), model=_ALL)
    yield SummaryRecord(_ALL, "made", _ALL, _ALL, _ALL)
    yield Decision("compact", 6, 10, _ALL, stands)
    yield Decision(_ALL, why=_ALL, detail={_ALL: _ALL})
    yield Note(_ALL, half[: len(half) // 8], {_ALL: [_ALL]})
    yield PromptRecord((PromptSection(_ALL, _ALL, "late", When(label=_ALL)),), (_ALL,))
    yield MessageRecord(Message("assistant", (Media("image", url=f"javascript:{_RUN}"), Media("file", file_id=_ALL))))
    yield TurnClosed(_ALL, _ALL, _ALL)
    yield TurnResumed(_ALL)
    yield SessionOpened(_ALL, resumed=True, session=_ALL)
    yield SealedRecord(_ALL, _SVG, blobs=(_ALL,))
    yield MessageRecord(Message("user", (Text(_ALL),)))
