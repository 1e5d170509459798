"""Make a transcript fit: cut long texts to head and tail, those of tools more than the user's; then leave out the
oldest entries.

Every cut is marked at its place, with its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .transcript import TranscriptEntry, Voice

_SHARE: dict[Voice, int] = {"tool": 1, "assistant": 3, "system": 6, "user": 12, "notes": 12}
"""How many times longer than a tool's text a text may be before it is cut. The numbers are a judgement: tools write
most and matter least, the user's texts are the task, and notes are short already."""

_GAPS = 3
"""The places where entries may be left out: before the task, after it, at the end."""

_LEAST = 24
"""Tokens. A shorter text of a tool says nothing: leave out the oldest entries instead."""


def excerpt(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """`text`, or as much of its head and tail as fits into `tokens`, with a marker between them.

    Empty if not even the marker fits.
    """
    size = count(text)
    if size <= tokens:
        return text
    keep = len(text) * tokens // size
    while keep:
        head = (keep + 1) // 2
        tail = keep - head
        cut = f"{text[:head]} [... {len(text) - keep:,} characters left out ...] {text[len(text) - tail :]}"
        if count(cut) <= tokens:
            return cut
        keep = keep * 3 // 4
    cut = f"[... {len(text):,} characters left out ...]"
    return cut if count(cut) <= tokens else ""


def fitted(
    entries: Sequence[TranscriptEntry], tokens: int, count: Callable[[str], int], title: int
) -> list[TranscriptEntry]:
    """The entries, cut so that texts and titles take at most `tokens`. Each title takes `title` tokens besides its own.

    Empty if there is room for earlier notes only.
    """
    sizes = [count(entry.text) for entry in entries]
    heads = [count(entry.title) + title for entry in entries]
    reserve = _GAPS * (title + _LEAST)
    kept_indices = _kept(entries, sizes, heads, tokens - reserve)
    whole = len(kept_indices) == len(entries)
    if not whole and all(entries[i].voice == "notes" for i in kept_indices):
        return []
    room = tokens - sum(heads[i] for i in kept_indices) - (0 if whole else reserve)
    level = _level([(sizes[i], _SHARE[entries[i].voice]) for i in kept_indices], room)
    fitted_entries: list[TranscriptEntry] = []
    following = 0
    for i in kept_indices:
        fitted_entries += _gap(entries[following:i])
        entry, allowed = entries[i], level * _SHARE[entries[i].voice]
        text = entry.text if sizes[i] <= allowed else excerpt(entry.text, allowed, count)
        fitted_entries.append(TranscriptEntry(entry.title, text, entry.voice))
        following = i + 1
    return fitted_entries + _gap(entries[following:])


def _gap(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """An entry that says that `entries` are left out; [] if there are none."""
    if not entries:
        return []
    first, last = (entry.title.split()[0] for entry in (entries[0], entries[-1]))
    return [TranscriptEntry("left out", f"[... {len(entries)} entries left out, {first} to {last} ...]", "system")]


def _kept(entries: Sequence[TranscriptEntry], sizes: list[int], heads: list[int], tokens: int) -> list[int]:
    """The indices of the entries that stay: all; or the notes, the user's first entry, and as many of the newest as fit
    if they are cut."""
    least = [
        min(size, _LEAST * _SHARE[entry.voice]) + head for entry, size, head in zip(entries, sizes, heads, strict=True)
    ]
    if sum(least) <= tokens:
        return list(range(len(entries)))
    task = next((i for i, entry in enumerate(entries) if entry.voice == "user"), None)
    first = [i for i, entry in enumerate(entries) if i == task or entry.voice == "notes"]
    newest = [i for i in range(len(entries) - 1, -1, -1) if i not in first]
    indices: list[int] = []
    for i in (*first, *newest):
        if least[i] <= tokens:
            indices.append(i)
            tokens -= least[i]
        elif i not in first:
            break
    return sorted(indices)


def _level(sizes: list[tuple[int, int]], room: int) -> int:
    """The most tokens per share with which everything fits into `room`."""
    low, high = 0, max((size for size, _ in sizes), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle * share) for size, share in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
