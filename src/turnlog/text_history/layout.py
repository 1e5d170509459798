"""Chooses which parts of a conversation a prompt shows, and splits its token budget between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from .._platform.units import counted
from ..summarize.transcript import TranscriptEntry, entries_of, excerpt, fitted
from ..view.types import Shown, starts_turn
from .frame import Frame, PromptTexts, is_gap, joined, quoted
from .sizes import TextSizes

Level = Literal["verbatim", "moderate", "strong"]

_VERBATIM, _MODERATE = 5_000, 15_000
"""Tokens of a history below which it is shown whole, and up to which its two ends are."""

_EXCHANGES = (5, 4, 3)
"""How many of the last exchanges are shown beside a summary: as many as have room."""

_RECENT_SHARE = 0.75
"""The share of the room that messages may take which are shown whole, if others are shortened or summarised."""

_WHOLE_SHARE = 0.95
"""The share if nothing is shortened."""

_TITLE = 4
"""Tokens of an entry besides its title and its text."""

_SPARE = 0.02
"""The share of a prompt that may stay unused although texts were cut: to find the last tokens takes time."""

_TRIES = 8

Summary = Callable[[Sequence[Shown]], tuple[str, int]]
"""A summary of the oldest of some messages, and how many of them it covers."""


class Laid(Struct, frozen=True):
    """A prompt and how it was made: `changes` says what is not shown whole, and the first `cuts` of them that not even
    what is said now, or the system text, has room. `older` are the messages that a summary may stand for, `size` is
    that of the whole history."""

    prompt: str
    tokens: int
    level: Level
    size: int = 0
    changes: tuple[str, ...] = ()
    cuts: int = 0
    older: tuple[Shown, ...] = ()


class _Choice(Struct, frozen=True):
    """One way to show a history: `recent` whole, or cut if nothing else `fits`; `older`, which begins with `first`, in
    few words."""

    level: Level
    older: Sequence[Shown]
    recent: Sequence[Shown]
    first: Sequence[Shown] = ()
    cut: bool = False


class Layout:
    """Lays conversations out in prompts of at most `limit` tokens."""

    def __init__(self, sizes: TextSizes, frame: Frame, limit: int, newest: int) -> None:
        self._sizes = sizes
        self._frame = frame
        self._limit = limit
        self._newest = newest
        self.frame = sizes.whole(frame.filled(PromptTexts("-", "-", "-", "-")))
        """The tokens of a prompt without its texts."""
        self.summary_tokens = max(100, min(2_000, limit // 8))
        """The most tokens of a summary."""

    def size(self, messages: Sequence[Shown]) -> int:
        """The tokens of messages as they stand in a prompt. Long texts are estimated."""
        return sum(self._sizes.entry(entry) + _TITLE for entry in entries_of(messages))

    def laid_out(self, history: Sequence[Shown], current: Sequence[Shown], summary: Summary, *, compress: bool) -> Laid:
        """The prompt of a history and of the messages after it."""
        system = list(takewhile(lambda shown: shown.message.role == "system", history))
        conversation = history[len(system) :]
        current_entries = entries_of(current)
        if not entries_of(history) and all(entry.voice == "user" for entry in current_entries):
            return self._alone([entry.text for entry in current_entries])
        changes: list[str] = []
        room = self._limit - self.frame
        asked = self._shortened(current_entries, room, "the current message", changes)
        room -= self._sizes.text(asked)
        told = self._shortened(entries_of(system), room // 2, "the system text", changes)
        room -= self._sizes.text(told)
        size = self.size(conversation)
        around = PromptTexts(instructions=told, current=asked)
        for choice in self._choices(conversation, size, room, compress=compress):
            laid = self._fit(choice, around, room, summary)
            if laid is not None:
                return replace(laid, size=size, changes=(*changes, *laid.changes), cuts=len(changes))
        return replace(self._bare(conversation, current_entries), size=size)

    # -- inside ----------------------------------------------------------------------------------

    def _choices(self, conversation: Sequence[Shown], size: int, room: float, *, compress: bool) -> Iterator[_Choice]:
        """The ways to show a history of this size, the best first."""
        if not compress:
            yield _Choice("verbatim", (), conversation)
            room, older_count = room * _WHOLE_SHARE, len(conversation)
            while older_count and (room := room - self.size(conversation[older_count - 1 : older_count])) > 0:
                older_count -= 1
            yield _Choice("verbatim", conversation[:older_count], conversation[older_count:])
            return
        if size < _VERBATIM:
            yield _Choice("verbatim", (), conversation)
        older, newest = conversation[: -self._newest], conversation[-self._newest :]
        if size <= _MODERATE:
            yield _Choice("moderate", older, newest, first=older[:1])
        turns = [index for index, shown in enumerate(conversation) if starts_turn(shown)]
        for exchanges in _EXCHANGES:
            since = turns[-exchanges] if len(turns) >= exchanges else 0
            yield _Choice("strong", conversation[:since], conversation[since:])
        yield _Choice("strong", older, newest)
        yield _Choice("strong", older, newest, cut=True)

    def _fit(self, choice: _Choice, around: PromptTexts, room: int, summary: Summary) -> Laid | None:
        """The prompt made in one way; None if it has no room. As the sizes of texts are estimates and cuts are coarse,
        it is made again with more or less room, until it has nearly as many tokens as it may have."""
        best: Laid | None = None
        fits, over = 0, 0
        for _ in range(_TRIES):
            filled = self._filled(choice, around, room, summary)
            if filled is None:
                break
            prompt, changes, cut = filled
            tokens = self._sizes.whole(prompt)
            spare = self._limit - tokens
            if spare >= 0:
                if best is None or tokens > best.tokens:
                    best = Laid(prompt, tokens, choice.level, changes=changes, older=tuple(choice.older))
                if not cut or spare <= self._limit * _SPARE:
                    break
                fits, room = room, room + spare
            else:
                over, room = room, room + spare - _TITLE
            if over and not fits < room < over:
                room = (fits + over) // 2
                if room == fits:
                    break
        return best

    def _filled(
        self, choice: _Choice, around: PromptTexts, room: int, summary: Summary
    ) -> tuple[str, tuple[str, ...], bool] | None:
        """A prompt made in one way in about so many tokens, what is not shown whole, and whether more room would show
        more."""
        if choice.level == "verbatim":
            return self._whole(choice, around, room)
        changes: list[str] = []
        first, recent = entries_of(choice.first), entries_of(choice.recent)
        older = entries_of(choice.older[len(choice.first) :])
        taken = self._taken(recent) + self._taken(first)
        share = int(room * _RECENT_SHARE) if choice.older else room
        if taken > share:
            if not choice.cut:
                return None
            recent = self._cut(recent, max(share, room - self._taken(older)), changes)
            taken = self._taken(recent)
        text, covered = summary(choice.older) if choice.older else ("", 0)
        parts = [joined(first)] if first else []
        if text:
            numbers = [n for shown in choice.older[:covered] for n in shown.records]
            parts.append(f"Summary of #{min(numbers)} to #{max(numbers)}:\n{quoted(text)}")
            taken += self._sizes.text(parts[-1])
            older = entries_of(choice.older[max(covered, len(choice.first)) :])
        shown = self._cut(older, room - taken, changes) if self._taken(older) > room - taken else older
        cut = bool(changes)
        changes[:0] = [f"a summary stands for {counted(covered, 'message')}"] if text else []
        if not changes:  # nothing is shortened: the messages stand together
            return self._frame.filled(replace(around, recent=joined([*first, *older, *recent]))), (), False
        parts += [joined(shown)] if shown else []
        sections = replace(around, summary="\n\n".join(parts), recent=joined(recent))
        return self._frame.filled(sections), tuple(changes), cut

    def _whole(self, choice: _Choice, around: PromptTexts, room: int) -> tuple[str, tuple[str, ...], bool] | None:
        """A prompt of whole messages, and a line for those that are left out."""
        recent, older = entries_of(choice.recent), entries_of(choice.older)
        if self._taken(recent) > room:
            return None
        left = (f"{counted(len(choice.older), 'message')} left out",) if older else ()
        sections = replace(around, summary=joined([_gap(older)]) if older else "", recent=joined(recent))
        return self._frame.filled(sections), left, False

    def _cut(self, entries: Sequence[TranscriptEntry], tokens: int, changes: list[str]) -> list[TranscriptEntry]:
        """Entries shortened to about so many tokens, the oldest most; what was done is added to `changes`."""
        if not entries:
            return []
        shortened_entries = fitted(entries, tokens, self._sizes.quoted, _TITLE) if tokens > 0 else []
        shortened_entries = shortened_entries or [_gap(entries)]
        left = len(entries) - sum(not is_gap(entry) for entry in shortened_entries)
        originals = {(entry.title, entry.text) for entry in entries}
        shortened = sum(not is_gap(entry) and (entry.title, entry.text) not in originals for entry in shortened_entries)
        numbers = f"{entries[0].title.split()[0]} to {entries[-1].title.split()[0]}"
        if left or shortened:
            changes.append(f"of {numbers}: {counted(left, 'text')} left out, {counted(shortened, 'text')} shortened")
        return shortened_entries

    def _shortened(self, entries: Sequence[TranscriptEntry], tokens: int, name: str, changes: list[str]) -> str:
        """Entries that stand in a section of their own, cut if they take more than so many tokens."""
        if not entries:
            return ""
        if {entry.voice for entry in entries} <= {"user", "system"}:
            text = "\n\n".join(entry.text for entry in entries)
            cut = excerpt(text, max(0, tokens), self._sizes.quoted)
            changes += [f"{name} was cut: it has {len(text):,} characters"] if cut != text else []
            return quoted(cut)
        if self._taken(entries) <= tokens:
            return joined(entries)
        return joined(self._cut(entries, tokens, changes))

    def _alone(self, texts: Sequence[str]) -> Laid:
        """A prompt that consists of what is said now."""
        text = "\n\n".join(texts)
        room = self._limit
        while True:
            prompt = excerpt(text, max(0, room), self._sizes.text)
            tokens = self._sizes.whole(prompt)
            if tokens <= self._limit or room <= 0:
                break
            room -= max(tokens - self._limit, room // 50 + 1)
        changes = (f"the current message was cut: it has {len(text):,} characters",) if prompt != text else ()
        return Laid(prompt, tokens, "verbatim", changes=changes, cuts=len(changes))

    def _bare(self, conversation: Sequence[Shown], current_entries: Sequence[TranscriptEntry]) -> Laid:
        """The prompt if there is no room for any of the history."""
        changes = [f"{counted(len(conversation), 'message')} and the system text left out"]
        recent = joined([_gap(entries_of(conversation))]) if entries_of(conversation) else ""
        room = self._limit
        while True:
            asked = self._shortened(current_entries, room, "the current message", changes := changes[:1])
            prompt = self._frame.filled(PromptTexts(recent=recent, current=asked))
            tokens = self._sizes.whole(prompt)
            if tokens <= self._limit or room <= 0:
                return Laid(prompt, tokens, "strong", changes=tuple(changes), cuts=len(changes))
            room -= max(tokens - self._limit, room // 50 + 1)

    def _taken(self, entries: Sequence[TranscriptEntry]) -> int:
        return sum(self._sizes.entry(entry) + _TITLE for entry in entries)


def _gap(entries: Sequence[TranscriptEntry]) -> TranscriptEntry:
    """An entry that says that all of these are left out."""
    first, last = (entry.title.split()[0] for entry in (entries[0], entries[-1]))
    return TranscriptEntry("left out", f"[... {len(entries)} entries left out, {first} to {last} ...]", "system")
