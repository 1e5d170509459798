"""Changes of files in figures: how many lines came and went in which files, and the box that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ..._platform.texts import clip
from ..._platform.units import counted
from ..._platform.visible import columns_of, visible
from .folding import NetChange
from .patch import FileDiff

_Row = tuple[str, str, str]

_LEAST = 12
"""Columns that a name in the box has at least."""


class DiffStat(Struct, frozen=True, repr_omit_defaults=True):
    """What changed in files: the lines that were added and deleted, and the paths of the files by what became of them.

    `unknown` says, by path, why the lines of a file are not known; the figures are without these. `box` shows all of it
    for people; empty if nothing changed.
    """

    additions: int = 0
    deletions: int = 0
    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    unknown: dict[str, str] = {}
    box: str = ""

    def __str__(self) -> str:
        files = len(self.created) + len(self.modified) + len(self.deleted) + len(self.renamed)
        return f"{counted(files, 'file')} changed, +{self.additions:,} -{self.deletions:,}"


def diff_stat(
    changes: Iterable[tuple[NetChange, FileDiff | str]], *, width: int = 0, shortened: Callable[[str, int], str] = clip
) -> DiffStat:
    """The figures of these changes, each with its difference or the reason why there is none. The box has at most
    `width` columns (0: any number), for which `shortened` makes names shorter."""
    rows: list[_Row] = []
    paths: dict[str, list[str]] = {}
    unknown: dict[str, str] = {}
    additions = deletions = 0
    for change, diff in changes:
        name = f"{change.old_path} → {change.path}" if change.old_path else change.path
        if isinstance(diff, str):
            unknown[change.path] = diff
            figures = "(?)"
        else:
            additions, deletions = additions + diff.additions, deletions + diff.deletions
            figures = _binary(diff) if diff.is_binary else f"(+{diff.additions:,}, -{diff.deletions:,})"
        paths.setdefault(change.action, []).append(change.path)
        rows.append((change.action.capitalize(), visible(name, one_line=True), figures))
    total = f"{counted(len(rows), 'file')} (+{additions:,}, -{deletions:,})"
    if width and rows:
        others = max(columns_of(figures) for *_, figures in rows) + len("│ Modified" + "  " + "  " + " │")
        rows = [(what, shortened(name, max(width - others, _LEAST)), figures) for what, name, figures in rows]
    box = "\n".join(_box(rows, total)) if rows else ""
    by_action = {action: tuple(of_it) for action, of_it in paths.items()}
    return DiffStat(additions, deletions, unknown=unknown, box=box, **by_action)


def _binary(diff: FileDiff) -> str:
    before, after = diff.contents or (b"", b"")
    return f"(binary, {len(before):,} → {len(after):,} bytes)"


def _box(rows: list[_Row], total: str) -> Iterator[str]:
    wide = max(columns_of(name) for _, name, _ in rows)
    lines = [f"{action:<8}  {name}{' ' * (wide - columns_of(name))}  {figures}" for action, name, figures in rows]
    inner = max(map(columns_of, [*lines, total]))
    yield f"┌{'─' * (inner + 2)}┐"
    for line in lines:
        yield f"│ {line}{' ' * (inner - columns_of(line))} │"
    yield f"├{'─' * (inner + 2)}┤"
    yield f"│ {total}{' ' * (inner - columns_of(total))} │"
    yield f"└{'─' * (inner + 2)}┘"
