"""Texts that are quoted for what they say, in whole sentences: the agent's own words, which say more for their length
than the outputs that it says them of; what calls that failed said; rules that a tool read; and the notes that an agent
wrote for its successor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..view.program_prefaces import is_handover
from .agent_sentences import is_process
from .identifiers import Vocabulary
from .instructions import gives_orders
from .quotes import Excerpt
from .reading import Quote, Said, Sentence

_LONGEST = 600  # characters of a sentence that are quoted
_LEAST = 8  # characters; a shorter sentence says little
_BREAK = lazy_pattern(r"\n+|(?<=[.!?])[*_`\")]*[ \t]+(?=[\w\"'`*(\[])|(?<=[。！？])")
_CODE = lazy_pattern(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
# Words of findings, reasons, results and what is left: sentences with them are worth more.
_TELLING = lazy_pattern(
    r"\b(?:because|caused?|causes|since|due to|instead|rather than|issue|problem|bug|fix(?:ed|es)?|fail(?:s|ed|ing)?"
    r"|error|wrong|broken|missing|works?|pass(?:es|ed)?|verified|confirmed|found|already|only|not|never|but|however|so"
    r"|need(?:s|ed)? to|must|should|remain(?:s|ing)?|next|todo|pending|done|completed?|added|removed|updated|created"
    r"|changed|renamed|moved|replaced|committed|pushed|decid\w+|chose)\b|n't\b",
    re.IGNORECASE,
)
_MOST_TELLING = 2  # words of them that count
_WORKED = 8  # texts, calls and results of a turn that has something to report
_REPORT = 600  # characters of a text that is a report, wherever it stands

# Worth of a character, in thousandths.
_PLAIN, _REPORTED, _PASSING = 3_000, 10_000, 500
_ANNOUNCED = 1_500  # of a sentence that announces a change
_NEWEST = (30_000, 14_000, 11_000)  # of the newest reports
_NEWEST_SHARE = 0.12  # of the room, for each of them
_TOLD = 25  # percent that each telling word adds
_FAILED, _OPEN_FAILURE = 4_000, 8_000  # of a line of a result that failed, and of one that is not known to be mended
_RULE, _BESIDE_RULES = 12_000, 2_000  # of a rule in a file of rules, and of the other lines there
_HANDED_OVER = 40_000  # of a note for a successor
_HANDED_SHARE = 0.4  # of the room, for such notes
_READS = 4_000  # of a sentence in a short result, or in what another agent reported
_SHORT = 1_500  # characters of a short result
_LEAST_WORDS, _OF_WORDS = 6, 0.6  # words of a sentence, and the share of it that they are
_PLAIN_WORD = lazy_pattern(r"(?<![^\s\"'(])[^\W\d_]+(?:['’]\w+)?(?=[\s,.;:!?)\"']|$)")
_AGENT = lazy_pattern(r"(?:^|[_./-])(?:sub)?(?:task|agent)s?(?:$|[_.-])", re.IGNORECASE)
_OF_FAILURE = 1_200  # characters of a result that failed, half at either end
_OF_RULES = 3_000  # characters of a file of rules
_RULES = lazy_pattern(
    r"(?:^|[/\\\s'\"=])(?:AGENTS|CLAUDE|GEMINI|SKILL|TASK)\.md\b|\.cursorrules\b|copilot-instructions\.md\b"
)


def sentence_quotes(text: str, vocabulary: Vocabulary) -> tuple[Sentence, ...]:
    """The sentences, lines of lists and lines of code in a text of the agent that say something."""
    code = [match.span() for match in _CODE.finditer(text)][::-1] if "```" in text else []
    found: list[Sentence] = []
    start = 0
    for end, after in (*(match.span() for match in _BREAK.finditer(text)), (len(text), len(text))):
        line = text[start:end].strip()
        if len(line) >= _LEAST and any(map(str.isalnum, line)):
            while code and code[-1][1] <= start:
                code.pop()
            passing = bool(code and code[-1][0] <= start) or is_process(line)
            telling = 0 if passing else min(_MOST_TELLING, len({word.lower() for word in _TELLING.findall(line)}))
            line = clip(line, _LONGEST)
            quote = Quote(start, end - start, line, tuple(vocabulary.words(line)))
            found.append(Sentence(quote, passing, telling))
        start = after
    return tuple(found)


def sentences(said: Sequence[Said], staying: Sequence[Said], room: float) -> Iterator[Excerpt]:
    """The sentences of the agent as candidates for a digest of `room` characters. Those of its newest reports are worth
    most."""
    texts = [index for index, entry in enumerate(said) if entry.who == "assistant"]
    ends = [index for index in texts if _ends_work(said, index, staying)]
    long = [index for index in texts if len(said[index].text) >= _REPORT]
    reports = {*ends, *long}
    alone = sum(entry.who == "user" and entry.note.line != "" for entry in said) <= 1
    newest = dict(zip(sorted(reports if alone else ends, reverse=True), _NEWEST, strict=False))
    for index in texts:
        entry = said[index]
        left = room * _NEWEST_SHARE if index in newest else 0
        is_report = index in reports
        changes = index + 1 < len(said) and said[index + 1].note.changes
        for sentence in entry.note.sentences:
            left -= len(sentence.quote.text)
            worth = _REPORTED if is_report else _PLAIN if not sentence.passing else _ANNOUNCED if changes else _PASSING
            worth = newest[index] if left > 0 else worth
            worth = worth * (100 + _TOLD * sentence.telling) // 100
            yield Excerpt(index, index, sentence.quote, len(sentence.quote.text) * worth // 1000)


def results(said: Sequence[Said], vocabulary: Vocabulary) -> Iterator[Excerpt]:
    """The lines of results that failed, and of files of rules, as candidates."""
    worked = {(entry.tool, entry.brief): entry.record for entry in said if entry.who == "result" and not entry.error}
    for index, entry in enumerate(said):
        if entry.who != "result" or entry.call is None:
            continue
        if entry.error:
            is_mended = worked.get((entry.tool, entry.brief), 0) > entry.record
            worth, most = _FAILED if is_mended else _OPEN_FAILURE, _OF_FAILURE // 2
            for line in _lines(entry, most, vocabulary):
                yield Excerpt(index, entry.call, line, len(line.text) * worth // 1000)
        elif _RULES.search(entry.brief):
            for line in _lines(entry, _OF_RULES, vocabulary):
                worth = _RULE if gives_orders(line.text) else _BESIDE_RULES
                yield Excerpt(index, entry.call, line, len(line.text) * worth // 1000)
        elif len(entry.text) <= _SHORT or _AGENT.search(entry.tool):
            for line in _lines(entry, _OF_RULES, vocabulary):
                if _reads(line.text):
                    yield Excerpt(index, entry.call, line, len(line.text) * _READS // 1000)


def _reads(line: str) -> bool:
    """Whether a line is a sentence of a language, not data."""
    words = _PLAIN_WORD.findall(line)
    return len(words) >= _LEAST_WORDS and sum(map(len, words)) + len(words) >= _OF_WORDS * len(line)


def handed_over(said: Sequence[Said], room: float, vocabulary: Vocabulary) -> Iterator[Excerpt]:
    """The lines of notes that an agent wrote for its successor, as candidates for a digest of `room` characters."""
    left = room * _HANDED_SHARE
    for index in range(len(said) - 1, -1, -1):
        entry = said[index]
        if entry.who == "user" and is_handover(entry.text):
            for line in _lines(entry, int(room), vocabulary):
                left -= len(line.text)
                worth = _HANDED_OVER if left > 0 else _REPORTED
                yield Excerpt(index, index, line, len(line.text) * worth // 1000)


def _lines(entry: Said, most: int, vocabulary: Vocabulary) -> Iterator[Quote]:
    """The lines of a text, whole if they are not very long; of a long text, `most` characters at either end."""
    text = entry.text
    start = 0
    for line in text.split("\n"):
        at, start = start, start + len(line) + 1
        plain = line.strip()
        if (at < most or len(text) - at < most) and len(plain) >= _LEAST and any(map(str.isalnum, plain)):
            plain = clip(plain, _LONGEST)
            yield Quote(at, len(line), plain, tuple(vocabulary.words(plain)))


def _ends_work(said: Sequence[Said], index: int, staying: Sequence[Said]) -> bool:
    """Whether a text ends a turn in which calls were made."""
    following = said[index + 1] if index + 1 < len(said) else next(iter(staying), None)
    before = said[max(0, index - _WORKED) : index]
    worked = len(before) == _WORKED and all(entry.who != "user" for entry in before)
    return worked and following is not None and following.who == "user"
