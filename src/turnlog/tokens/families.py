"""Facts for counting, by family of models.

Vocabularies and framing of OpenAI's models were confirmed by billed requests; factors and constants of the others were
fitted to bills. docs/counting.md names these bills, and says how reliable the numbers are. If you change a number here,
or what is counted and how, raise VERSION: it is part of the id of every counter, and recorded counts with another id
are not used.
"""

from __future__ import annotations

import re
import string
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern

VERSION = "5"

_LOWER = string.ascii_lowercase.encode()
_UPPER = string.ascii_uppercase.encode()
_DIGITS = string.digits.encode()
_MARKS = string.punctuation.encode()
_BEYOND = bytes(range(128, 256))

_LEAST, _MOST = 0.85, 2.6
"""Bounds of the tokens for each token of o200k, for texts that are unlike all that the weights were fitted to."""


class TextWeights(Struct, frozen=True, kw_only=True):
    """The tokens of a text are these weights times what it has of each.

    `base` is the weight of o200k's tokens; `lower`, `upper`, `digit`, `mark`, `space`, `line` and `tab` are those of
    each such ASCII character (`mark` is punctuation), `underscore`, `quote`, `backslash` and `slash` come on top of
    `mark`. `byte` is for each byte of other characters, `wide` for each of these characters, `word` for each run
    without white space.
    """

    base: float
    lower: float = 0.0
    upper: float = 0.0
    digit: float = 0.0
    mark: float = 0.0
    space: float = 0.0
    line: float = 0.0
    tab: float = 0.0
    byte: float = 0.0
    wide: float = 0.0
    word: float = 0.0
    underscore: float = 0.0
    quote: float = 0.0
    backslash: float = 0.0
    slash: float = 0.0

    def tokens(self, text: str, counted: int) -> float:
        """The tokens of a text of which o200k counts so many."""
        plain = text.encode("utf-8", "replace")
        rest = plain.translate(None, _LOWER)  # most of a text: what follows reads only what is left
        dense = rest.translate(None, b" ")
        ascii_only = dense if text.isascii() else dense.translate(None, _BEYOND)
        beyond = len(dense) - len(ascii_only)
        found = (
            self.base * counted
            + self.lower * (len(plain) - len(rest))
            + self.upper * _held(ascii_only, _UPPER)
            + self.digit * _held(ascii_only, _DIGITS)
            + self.mark * _held(ascii_only, _MARKS)
            + self.space * (len(rest) - len(dense))
            + self.line * ascii_only.count(b"\n")
            + self.tab * ascii_only.count(b"\t")
            + self.byte * beyond
            + self.wide * (len(text) - (len(plain) - beyond))
            + self.word * len(text.split())
            + self.underscore * ascii_only.count(b"_")
            + self.quote * ascii_only.count(b'"')
            + self.backslash * ascii_only.count(b"\\")
            + self.slash * ascii_only.count(b"/")
        )
        return min(_MOST * counted, max(_LEAST * counted, found))


def _held(text: bytes, characters: bytes) -> int:
    """How many of these characters a text has."""
    return len(text) - len(text.translate(None, characters))


class Images(Struct, frozen=True, kw_only=True):
    """How an image is billed: `start` tokens, plus `each` tokens for every piece.

    `method` says what the pieces are: none (`flat`), tiles by OpenAI's rules (`tiles`) or by Google's (`crops`), or at
    most `most` squares of `side` pixels (`patches`). With a `side`, `tiles` are squares of that size."""

    method: Literal["flat", "tiles", "crops", "patches"]
    start: int = 0
    each: float = 0.0
    side: int = 0
    most: int = 0


class OpenAIFamily(Struct, frozen=True, kw_only=True):
    """Framing of a generation of OpenAI's models, in tokens. `chat` and `responses` are the two APIs.

    `reply` is added once, for the answer to come; `message` for each message, and `assistant` more for an assistant's.
    `call` is added for a single call and the name in its result, `parallel` for parallel calls together, `result` for
    each result of a single call. `tools_chat` and `tools_responses` are added for all declarations together, `alone`
    more if no system text comes before them, `named` more if a tool is forced by name. `schema_chat` and
    `schema_responses` are the tokens of a schema that the answer must match, per token of its compact JSON. `page` is
    the tokens of a page of a PDF. `sure` are the APIs for which all recorded bills of texts equal the count.
    """

    name: str
    vocabulary: str = "o200k_base"
    reply: int = 3
    message: int = 4
    assistant: int = 0
    call: int = 4
    parallel: int = 16
    result: int = 4
    tools_chat: int = 5
    tools_responses: int = 3
    alone: int = 4
    named: int = 9
    schema_chat: float = 0.97
    schema_responses: float = 0.92
    images: Images
    page: int = 220
    sure: tuple[Literal["chat", "responses"], ...] = ("chat", "responses")


class FactoredFamily(Struct, frozen=True, kw_only=True):
    """Models whose vocabulary is not public: o200k's count of a text, corrected by what the text is made of.

    `weights` say how, `base64` is the factor for runs of base64 anywhere, `kept` one more for a schema that the answer
    must match, as indented JSON. The other numbers are tokens. `request`, `message`, `system`, `call`, `argument`,
    `result` and `tool` are added for each request, message, system text, call, argument of a call, result and
    declaration, `parallel` for parallel calls together, and `each_parallel` for each of them. `hidden` is the prompt
    that the provider adds to requests with tools, by tool choice; `named` is added to it with the name of a tool that
    is forced by name.

    `spelling` is how tools, calls and results are shown to the model: as text between tags, with declarations as JSON
    with spaces (`blocks`); as names, descriptions and values only (`leaves`); as JSON (`json`); or with special tokens
    as quotation marks (`marked`). `defined` are the declarations of tools that the provider defines, by the beginning
    of their type; the first that fits counts. `signature` is added for each character of a call's signature beyond
    `envelope` until the turn ends, `earlier` for those of earlier turns, `streamed` says that only signatures of
    streamed answers count. `page` is for a page of a PDF, `second` for a second of audio, `keeping` for each schema
    that the answer must match, `thinking` for thinking, by its type.
    """

    name: str
    weights: TextWeights
    base64: float
    request: int = 0
    message: int = 0
    system: int = 0
    call: int = 0
    argument: int = 0
    result: int = 0
    tool: int = 0
    parallel: int = 0
    each_parallel: int = 0
    hidden: dict[str, int] = {}
    named: int = 0
    spelling: Literal["blocks", "leaves", "json", "marked"] = "blocks"
    defined: dict[str, int] = {}
    signature: float = 0.0
    earlier: float = 0.0
    envelope: int = 0
    streamed: bool = False
    images: Images
    page: int
    second: int = 32
    kept: float = 1.0
    keeping: int = 0
    thinking: dict[str, int] = {}


_TILES_4O = Images(method="tiles", start=85, each=170)
_TILES_4O_MINI = Images(method="tiles", start=2833, each=5667)
_TILES_5 = Images(method="tiles", start=70, each=140)


def _patches(each: float) -> Images:
    return Images(method="patches", each=each, side=32, most=1536)


_FIRST = OpenAIFamily(name="gpt-4", vocabulary="cl100k_base", images=_TILES_4O)
_OMNI = OpenAIFamily(name="gpt-4o", images=_TILES_4O)
_O = OpenAIFamily(
    name="o3", reply=2, assistant=2, call=8, parallel=20, tools_chat=6, tools_responses=5, named=0, images=_TILES_5
)
_FIVE = replace(_O, name="gpt-5", tools_chat=90, tools_responses=9, alone=0)

# The first pattern that matches the beginning of a model's name decides. Only gpt-3.5 and the first gpt-4 use cl100k.
_OPENAI: tuple[tuple[str, OpenAIFamily], ...] = (
    (r"gpt-3\.?5-turbo-(?!0301)\d", _FIRST),
    (r"gpt-3\.?5", replace(_FIRST, name="gpt-3.5", sure=())),  # a name of several models; one bills 5 a message
    (r"gpt-4$|gpt-4-", _FIRST),
    (r"gpt-4o-mini", replace(_OMNI, name="gpt-4o-mini", images=_TILES_4O_MINI)),
    (r"gpt-4\.1-mini", replace(_OMNI, name="gpt-4.1-mini", images=_patches(1.62), sure=("chat",))),
    (r"gpt-4\.1-nano", replace(_OMNI, name="gpt-4.1-nano", images=_patches(2.46))),
    (r"gpt-4|chatgpt-4|computer-use", _OMNI),
    (r"o4-mini", replace(_O, name="o4-mini", images=_patches(1.72))),
    (r"o1-(mini|preview)", replace(_O, name="o1-mini", message=8, sure=())),  # one bill
    (r"o3-mini", replace(_O, name="o3-mini", assistant=0)),
    (r"o\d", _O),
    (r"gpt-5(\.\d+)?-nano", replace(_FIVE, name="gpt-5-nano", images=_patches(1.5))),
    (r"gpt-5(-mini|\.[4-9])|gpt-5\.\d+-mini", replace(_FIVE, name="gpt-5-mini", images=_patches(1.2))),
    (r"gpt-[56]|codex", _FIVE),
    (r"gpt|chatgpt", replace(_FIVE, name="gpt-new", sure=())),
)


def openai_family(model: str) -> OpenAIFamily | None:
    """The family of an OpenAI model, by its name; None if the name is not one of OpenAI's.

    A model that is newer than this table counts as one of the newest generation in it.
    """
    name = model.removeprefix("ft:")
    return next((family for pattern, family in _OPENAI if re.match(pattern, name)), None)


# How o200k's count becomes that of each vocabulary: least squares over the counts of 5,117 texts of up to 3,000
# characters (2.1 MB of code, diffs, listings, JSON and prose, of 18 sources of recorded sessions) and 800 pieces of
# vim's messages in 16 other languages, at half the weight for Claude 4.7. The counts are those of `ctok` 1.3.0 (MIT)
# for Claude, by its vocabulary up to 4.6 and by the one from 4.7 on, and those of Gemma 3's public vocabulary for
# Gemini. docs/counting.md says how these agree with bills, and how far the weights are off.
_CLAUDE_TEXT = TextWeights(
    base=1.062,
    lower=0.045,
    upper=0.168,
    digit=0.018,
    mark=0.106,
    space=0.044,
    line=0.414,
    tab=0.1,
    byte=0.255,
    wide=-0.392,
    word=-0.267,
    underscore=-0.018,
    quote=-0.187,
    backslash=0.164,
    slash=0.005,
)
_CLAUDE_47_TEXT = TextWeights(
    base=0.906,
    lower=0.2,
    upper=0.705,
    digit=0.122,
    mark=0.302,
    space=0.044,
    line=0.391,
    tab=0.195,
    byte=0.262,
    wide=-0.319,
    word=-0.379,
    underscore=-0.036,
    quote=-0.096,
    backslash=0.445,
    slash=0.213,
)
_GEMINI_TEXT = TextWeights(
    base=0.821,
    lower=0.057,
    upper=0.046,
    digit=0.631,
    mark=0.189,
    space=0.029,
    line=0.494,
    tab=0.06,
    byte=-0.067,
    wide=0.188,
    word=-0.083,
    underscore=0.312,
    quote=-0.185,
    backslash=0.083,
    slash=0.281,
)


def _hidden(auto: int, forced: int) -> dict[str, int]:
    """Claude's hidden prompt by tool choice; for `none` it is that of `auto`, as the table of prices says
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview)."""
    return {"auto": auto, "none": auto, "required": forced, "named": forced}


# Recorded bills of requests with one such tool (first pass of a stream), less the hidden prompt and the messages; the
# computer tool as documented (https://platform.claude.com/docs/en/agents-and-tools/tool-use/computer-use-tool).
_DEFINED = {
    "bash_": 244,
    "code_execution_20250": 450,
    "code_execution_": 1741,
    "computer_": 735,
    "memory_": 1069,
    "text_editor_": 747,
    "web_fetch_": 1196,
    "web_search_": 1711,
}

# Calls and results: what is billed for them beside their texts, by the growth from one recorded request to the next. Up
# to 4.6: 35 pairs of requests (token_truth) and 340 steps of a session of Sonnet 4.5 (pi), most of them within two
# tokens; Opus 4.7: 60 steps of sessions (claude-code-log), exact where no path in them was shortened; from 4.8 on: 8
# pairs of Opus 4.8, Opus 5, Fable 5 and Sonnet 5, none of them with parallel calls.
_CLAUDE_3 = FactoredFamily(
    name="claude-3",
    weights=_CLAUDE_TEXT,
    base64=1.27,
    request=4,
    message=3,
    call=25,
    argument=14,
    result=15,
    tool=7,
    parallel=25,
    each_parallel=-3,
    hidden=_hidden(496, 588),
    named=2,
    defined=_DEFINED,
    keeping=81,  # 19 bills with a schema, most of them to the token
    thinking={"enabled": 29, "adaptive": 17},
    images=Images(method="patches", start=3, each=1.0, side=28, most=1568),
    page=1560,
)
_CLAUDE_47 = replace(
    _CLAUDE_3,
    name="claude-4.7",
    weights=_CLAUDE_47_TEXT,
    base64=1.39,
    request=8,
    call=25,
    argument=19,
    result=19,
    parallel=0,
    each_parallel=0,
    hidden=_hidden(675, 804),
    defined={kind: round(tokens * 1.47 / 1.2) for kind, tokens in _DEFINED.items()},
)
_CLAUDE_48 = replace(_CLAUDE_47, name="claude-4.8", request=4, message=2, call=14, result=10, hidden=_hidden(290, 410))

# Hidden prompts that differ from those of the family, by pattern of the model's name: as the table of prices says
# (above, as of 2026-07-13 and, for Opus 5, later), and the bills of 58 requests where they say otherwise: Sonnet 4 (312
# in place of 313), Sonnet 5 (355 in place of 354). Fable 5 is billed 4 more than Opus 5 for the same requests.
_HIDDEN: tuple[tuple[str, dict[str, int]], ...] = (
    (r"claude-3-opus", _hidden(530, 281)),
    (r"claude-3-sonnet", _hidden(159, 235)),
    (r"claude-3-haiku", _hidden(264, 340)),
    (r"claude-3-5-haiku", _hidden(264, 355)),
    (r"claude-3-5-sonnet-20240620", _hidden(292, 261)),
    (r"claude-(opus-|sonnet-)?(3|4-[01](?!\d)|4-20|4@|4$)", _hidden(312, 315)),
    (r"claude-(opus|sonnet)-4[-.]6", _hidden(497, 589)),
    (r"claude-sonnet-5", _hidden(355, 474)),
    (r"claude-opus-5", _hidden(286, 406)),
)
_VERSION = lazy_pattern(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")


def claude_family(model: str) -> FactoredFamily:
    """The family of a Claude model: the vocabulary changed with 4.7, the frame with 4.8."""
    match = _VERSION.search(model)
    version = (int(match[1]), int(match[2] or 0)) if match else (9, 0)
    family = _CLAUDE_48 if version >= (4, 8) else _CLAUDE_47 if version == (4, 7) else _CLAUDE_3
    hidden = next((prompt for pattern, prompt in _HIDDEN if re.search(pattern, model)), None)
    return family if hidden is None else replace(family, name=f"{family.name}-{hidden['auto']}", hidden=hidden)


# 61 pairs of recorded requests that differ by a call and its result are billed for their names, keys and values, and
# nothing else, by Gemini 2 and Vertex AI (19 of 22 to the token); for their JSON and 13 more by Gemini 2.5; for what
# `marked` writes by Gemini 3 (declarations too: 9 of 10 to the token).
_GEMINI_2 = FactoredFamily(
    name="gemini-2",
    weights=_GEMINI_TEXT,
    base64=1.03,
    tool=-1,
    spelling="leaves",
    images=Images(method="crops", each=258),
    page=258,
    kept=0.0,  # a schema for the answer is not billed, as recorded bills show
)
_GEMINI_25 = replace(
    _GEMINI_2,
    name="gemini-2.5",
    message=1,
    system=1,
    call=7,
    result=6,
    tool=-3,
    spelling="json",
    signature=0.125,
    streamed=True,
    images=Images(method="tiles", each=258, side=768),
)
_GEMINI_3 = replace(
    _GEMINI_25,
    name="gemini-3",
    call=0,
    result=0,
    tool=0,
    spelling="marked",
    signature=0.2175,
    envelope=100,
    streamed=False,
    images=Images(method="flat", start=1120),
    page=525,
)
_GEMINI_3_PRO = replace(_GEMINI_3, name="gemini-3-pro", signature=0.15, envelope=0)
_GEMINI_35 = replace(_GEMINI_3, name="gemini-3.5", signature=0.185, earlier=0.185)
_VERTEX = replace(_GEMINI_2, name="gemini-vertex", tool=0, images=Images(method="flat", start=1120), page=525)
_VERTEX_25 = replace(_VERTEX, name="gemini-2.5-vertex", signature=0.125)


def gemini_family(model: str, *, vertex: bool = False) -> FactoredFamily:
    """The family of a Gemini model; with `vertex`, as billed by Vertex AI, which adds less framing."""
    if re.search(r"gemini-(1|2\.0)", model):
        return _GEMINI_2
    if re.search(r"gemini-2\.5", model):
        return _VERTEX_25 if vertex else _GEMINI_25
    if vertex:
        return _VERTEX
    if re.search(r"gemini-3(\.\d)?-pro", model):
        return _GEMINI_3_PRO
    return _GEMINI_35 if re.search(r"gemini-(3\.[5-9]|[4-9])", model) else _GEMINI_3


_UNKNOWN = FactoredFamily(
    name="unknown",
    weights=TextWeights(base=1.25),
    base64=1.25,
    request=3,
    message=4,
    call=8,
    result=4,
    tool=8,
    images=Images(method="flat", start=1100),
    page=1500,
)


def unknown_family(model: str = "") -> FactoredFamily:
    """The family for a model with an unknown vocabulary: counts are more likely too high than too low.

    The family's name contains the model, so that the model's bills do not calibrate other models.
    """
    return replace(_UNKNOWN, name=f"unknown-{model}" if model else "unknown")
