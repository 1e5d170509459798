"""How many tokens texts take in a prompt, counted in little time."""

from __future__ import annotations

from ..log.messages import Message, Text
from ..summarize.transcript import TranscriptEntry
from ..tokens.protocol import Counter
from .frame import quoted

_LONG, _SAMPLE = 1_000, 100
"""Characters of a text that is not counted whole, and of each of the three samples that are counted of it."""

_SHORT = 40
"""Characters of a text whose tokens are guessed."""

_KEPT = 4_096
"""Sizes that are remembered."""


class TextSizes:
    """Counts for one counter. `whole` is exact; other counts of long texts are estimates, as whole prompts are counted
    at last."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}
        self._frame = counter.frame(system=False, tools=False).tokens

    def whole(self, prompt: str) -> int:
        """A request of this one prompt, as `turnlog.count` counts it."""
        return self._counter.messages((Message("user", (Text(prompt),)),)).tokens + self._frame

    def text(self, text: str) -> int:
        """A text by itself."""
        if len(text) < _SHORT:
            return len(text) // 3 + 1
        size = self._known.get(text)
        if size is None:
            size = self._counter.text(text) if len(text) <= _LONG else self._estimated(text)
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[text] = size
        return size

    def quoted(self, text: str) -> int:
        """A text with the marks of a quotation."""
        return self.text(quoted(text))

    def entry(self, entry: TranscriptEntry) -> int:
        """An entry as it stands in a prompt."""
        return self.text(entry.title) + self.quoted(entry.text)

    def _estimated(self, text: str) -> int:
        middle = len(text) // 2
        samples = (text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:])
        return sum(map(self._counter.text, samples)) * len(text) // (3 * _SAMPLE)
