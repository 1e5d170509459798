"""A memory as text for a prompt, within a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .._platform.one_line import clip
from .entities import Entity, Fact

_TITLE = "What this conversation is about; [n] is record n:"
_FILES, _FACTS, _ERRORS = "Files, the last used first:", "What the user requires:", "Errors, not seen to be fixed:"
_FIRST = 8  # files that come before everything else
_LONGEST = 240  # characters of a line, apart from a path


def file_line(file: Entity) -> str:
    """A file with what was last done to it, the lines that were last read, and whether it changed since."""
    said = []
    if file.state == "failed":
        said.append(f"last change failed [{file.at}]")
    if file.changed:
        said.append(f"{file.change} [{file.changed}]" + (f" ({file.changes} changes)" if file.changes > 1 else ""))
    if file.read:
        first, last = file.lines
        lines = f" lines {first}-{last}" if last else ""
        said.append(f"read{lines} [{file.read}]" + (", changed since" if file.stale else ""))
    return f"{file.value}: {', '.join(said) or f'mentioned [{file.last}]'}"


def working_set(files: Iterable[Entity], max_tokens: int, count: Callable[[str], int]) -> tuple[Entity, ...]:
    """As many of `files` as have room with their lines, in order. Each line is counted with its line end."""
    found = []
    for file in files:
        max_tokens -= count(f"{file_line(file)}\n")
        if max_tokens < 0:
            break
        found.append(file)
    return tuple(found)


def block(
    files: Sequence[Entity],
    facts: Sequence[Fact],
    errors: Sequence[Entity],
    max_tokens: int,
    count: Callable[[str], int],
) -> str:
    """The memory as text of at most `max_tokens` tokens: files, what the user requires, open errors. The most recent of
    each stay if not everything has room. "" if there is nothing to say, or no room."""
    lines = {
        _FACTS: [f"[{fact.record}] {clip(fact.text, _LONGEST)}" for fact in reversed(facts)],
        _FILES: [file_line(file) for file in files],
        _ERRORS: [f"[{error.at}] {clip(error.value, _LONGEST)}" for error in errors],
    }
    order = [(_FILES, i) for i in range(_FIRST)]
    longest = max(map(len, lines.values()))
    order += [(name, i if name != _FILES else i + _FIRST) for i in range(longest) for name in lines]
    room = max_tokens - count(f"{_TITLE}\n")
    taken: dict[str, list[int]] = {name: [] for name in lines}
    closed: set[str] = set()
    for name, i in order:
        if i >= len(lines[name]) or name in closed:
            continue
        cost = count(f"{lines[name][i]}\n") + (0 if taken[name] else count(f"{name}\n"))
        if cost > room:
            closed.add(name)
            continue
        room -= cost
        taken[name].append(i)
    text = _text(lines, taken)
    while text and count(text) > max_tokens:  # counted apart, lines may take less than together
        max(taken.values(), key=len).pop()
        text = _text(lines, taken)
    return text


def _text(lines: dict[str, list[str]], taken: dict[str, list[int]]) -> str:
    said = []
    for name, places in taken.items():
        if places:
            shown = reversed(places) if name == _FACTS else places
            said += [name, *(lines[name][i] for i in shown)]
    return "\n".join([_TITLE, *said]) if said else ""
