"""A session's talk on the terminal: turn by turn, with Markdown laid out where rich is installed."""

from __future__ import annotations

import posixpath
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby

from .._platform.units import counted
from .._platform.visible import visible
from ..display.talk import Talk, TalkItem
from ..errors import InputError
from ..log.store import Store
from ..stores.ids import short_ids
from ..view.file_edits import without_folder
from .drawing import clipped, colours, room, wrapped
from .terminal import Piece, is_terminal, out, out_pieces, out_rendered, paged, say

_DIM, _BOLD, _RED, _CYAN, _YELLOW = "2", "1", "31", "36", "33"
_PASTED = 40
"""At a terminal, the user's words are folded to this many lines."""


def show_talk(store: Store, arguments: Namespace) -> None:
    """Print the talk, or the turns of it that were asked for."""
    talk = Talk(store, arguments.id)
    shown = _chosen(talk, arguments)
    with paged():
        page = _Page(full=arguments.full, at=arguments.at or 0)
        short = short_ids([talk.info.id], store.sessions())[talk.info.id] if page.width else talk.info.id
        page.head(talk, short)
        for number in shown:
            page.turn(talk, number)
        if page.at and not page.met:
            say(f"record {page.at} is not part of the talk; `turnlog show {short} --records` shows it")
        if page.width:
            many, all_of_it = len(talk.turns), len(shown) > len(talk.turns)
            last = (
                f"show {short} --turn {many} · " if many > 1 and all_of_it else "" if all_of_it else f"show {short} · "
            )
            say(f"{last}diff {short} · handoff {short} --to codex")


def _chosen(talk: Talk, arguments: Namespace) -> Sequence[int]:
    """The numbers of the turns to show. Raises InputError if the session has not got the one that was asked for."""
    many = len(talk.turns)
    if (turn := arguments.turn) is not None:
        if abs(turn) > many:
            had = counted(many, "turn")
            raise InputError(f"--turn: session {talk.info.id!r} has {had}, none with number {turn}")
        return [turn if turn > 0 else many + 1 + turn]
    if arguments.at is not None:
        return [talk.turn_at(arguments.at)]
    return range(0 if arguments.last is None else max(1, many + 1 - arguments.last), many + 1)


def _plain(text: str) -> str:
    return visible(text) + "\n"


class _Page:
    """Prints a talk. `width` is 0 in a pipe, where nothing is cut or wrapped. With `full`, nothing is folded. `at` is a
    record that is marked and not folded, and `met` says whether it was there."""

    def __init__(self, *, full: bool, at: int) -> None:
        self.width = room() if is_terminal(sys.stdout) else 0
        self.full = full
        self.at = at
        self.met = False
        self._name = ""
        self._coloured = colours()
        self._laid_out: Callable[[str], str] = _plain
        if self.width:
            rich = find_spec("rich") is not None and find_spec("markdown_it") is not None
            self._laid_out = import_module("turnlog.chat.markup").markdown if rich else self._wrapped

    def head(self, talk: Talk, name: str) -> None:
        """Print the id, the title and the facts."""
        self._name = name
        self._block([f"{name}  {visible(talk.info.title, one_line=True)}".rstrip()], "", _BOLD)
        self._block([" · ".join(visible(fact, one_line=True) for fact in talk.facts())], "", _DIM)
        if talk.info.parent:
            up_to = f" up to record {talk.info.parent_records}" if talk.info.parent_records else ""
            self._line((f"{'from' if up_to else 'belongs to'} {talk.info.parent}{up_to}", _DIM))

    def turn(self, talk: Talk, number: int) -> None:
        """Print one turn."""
        items = list(talk.items(number))
        marked = next((i for i, item in enumerate(items) if self._is_at(item)), 0) if self.width else 0
        if marked > 2:  # who looks for a record sees it, not a turn of many pages
            command = f"turnlog show {self._name} --turn {number}"
            mark = TalkItem("mark", 0, f"{counted(marked - 2, 'part')} of the turn before this: {command}")
            items[1 : marked - 1] = [mark]
        if number:
            words = f"── {talk.heading(number)} "
            self._line((f"{words}{'─' * max(2, (self.width or 80) - 1 - len(words))}", _DIM), before=True)
        for (kind, _), group in groupby(items, lambda item: (item.kind, self._alone(item))):
            run = list(group)
            if kind == "call" and not self._alone(run[0]):
                for _, same in groupby(run, lambda item: item.label):
                    self._calls(list(same))
            else:
                for item in run:
                    self._item(item)

    def _alone(self, item: TalkItem) -> int:
        """A number that only items have that may stand on one line together."""
        is_short = item.kind == "call" and (item.is_path or not item.text)
        return 0 if is_short and item.outcome == "ok" and not self._is_open(item) else id(item)

    def _is_open(self, item: TalkItem) -> bool:
        return self.full or self._is_at(item)

    def _is_at(self, item: TalkItem) -> bool:
        return self.at > 0 and self.at in (item.n, item.info.result if item.info else 0)

    def _item(self, item: TalkItem) -> None:
        if not self.met and self._is_at(item):
            self.met = True
            self._line((f"▶ record {self.at}", f"{_BOLD};{_YELLOW}"))
        match item.kind:
            case "user":
                lines = item.text.splitlines() or [""]
                if self.width and not self._is_open(item) and len(lines) > _PASTED:
                    lines = [*lines[: _PASTED - 2], f"… {len(lines) - _PASTED + 1:,} more lines (--full) …", lines[-1]]
                self._block(lines, "> ", _BOLD)
            case "assistant":
                out_rendered(self._laid_out(item.text.strip("\n")))
            case "reasoning":
                self._folded(item, "  ~ ", item.text)
            case "program":
                size = f"  ({counted(len(item.text), 'character')})"
                self._folded(item, f"  [{item.label}] ", item.text, size)
            case "call":
                self._calls([item])
            case "mark":
                self._block([item.text], "  -- ", _YELLOW)
                if item.folded and self._is_open(item):
                    self._block(item.folded.splitlines(), "     ", _DIM)

    def _folded(self, item: TalkItem, sign: str, text: str, size: str = "") -> None:
        """Print a text dimmed: its beginning or, if it is open, all of it."""
        if self._is_open(item):
            self._block(text.splitlines(), sign, _DIM)
            return
        width = self.width - 1 - len(sign) - len(size) if self.width else 200
        words = " ".join(text[: 9 * width].split()) + ("…" if len(text) > 9 * width else "")
        self._line((f"{sign}{clipped(words, width).rstrip()}{size}", _DIM))

    def _calls(self, run: Sequence[TalkItem]) -> None:
        """Print calls of one tool on one line and, of one that failed, what it said first; open ones in full."""
        first = run[0]
        about = ", ".join(filter(None, map(self._about, run)))
        times, outcome = (f" x{len(run)}", "all ok") if len(run) > 1 else ("", first.outcome)
        own = posixpath.basename(first.text) if len(run) == 1 else ""  # is named already
        names = [(posixpath.basename(file.path), file.change) for item in run for file in item.files]
        changed = "".join(f" {change}" if name in own else f" {name} {change}" for name, change in names)
        text = visible(f"{first.label}{times} {about}".rstrip(), one_line=True)
        style = "" if first.outcome == "ok" else _RED if first.info and first.info.result else _YELLOW
        if self.width:
            space = self.width - 7 - len(outcome)
            text = clipped(clipped(text, max(20, space - len(changed))).rstrip() + changed, space)
        else:
            text += changed
        self._line(("  • ", _CYAN), (text, ""), (f"  {outcome}", style or _DIM))
        if self._is_open(first):
            call = first.info.call if first.info else None
            self._block((call.raw_arguments if call else "").splitlines(), "    ", _DIM)
            self._block(first.folded.splitlines(), "    | ", "")
        elif style and first.folded.strip():
            line = ": ".join([line.strip() for line in first.folded.splitlines() if line.strip()][:2])
            self._line((f"      {clipped(line, self.width - 8 if self.width else 200).rstrip()}", style))

    def _about(self, item: TalkItem) -> str:
        text = " ".join(item.text.split())
        if self.width and not item.is_path:
            return without_folder(text)
        return posixpath.basename(text.rstrip("/")) or text if item.is_path and self.width else text

    def _block(self, lines: Iterable[str], sign: str, style: str) -> None:
        """Print lines after a sign; wrapped at a terminal."""
        for line in lines:
            if not self.width:
                out(f"{sign}{line}".rstrip())
                continue
            for piece in wrapped(visible(line).expandtabs(4), self.width - len(sign) - 1):
                self._line((f"{sign}{piece}".rstrip(), style))

    def _wrapped(self, text: str) -> str:
        lines = visible(text).expandtabs(4).split("\n")
        return "".join(f"{piece}\n" for line in lines for piece in wrapped(line, self.width - 1))

    def _line(self, *pieces: Piece, before: bool = False) -> None:
        if before:
            out()
        out_pieces([(text, style if self._coloured else "") for text, style in pieces])
