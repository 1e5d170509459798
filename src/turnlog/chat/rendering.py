"""Notes, calls and boxes as lines for a terminal.

An answer is rendered block by block: a block is complete at a blank line outside of code, or where code ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from .._platform.lazy import lazy_pattern
from .._platform.units import counted
from .._platform.visible import exposed, visible
from ..agent import AgentEvent
from ..log.messages import ToolCall, compact_json
from ..session import Session
from ..workspace.diff import NetChange
from ..workspace.diff.folding import differences
from .markup import lines_of
from .plain import GIST, folded, gist

_FENCES = ("```", "~~~")
_BLANKS = lazy_pattern(r"[ \t\n]{6,}")
_GAPS = {" ": ("space", 100), "\t": ("tab", 20), "\n": ("line end", 6)}
"""The blanks, and how many of them in one run are counted instead of shown."""


class Blocks:
    """Cuts a text that comes in pieces into blocks of Markdown."""

    def __init__(self) -> None:
        self.rest = ""
        """The beginning of the block that is not complete."""
        self._line = ""
        self._fence = ""

    def feed(self, piece: str) -> list[str]:
        """Add the next piece; returns the blocks that it completes."""
        blocks = []
        for line in piece.splitlines(keepends=True):
            self.rest += line
            self._line += line
            if line.endswith("\n"):
                whole, self._line = self._line.strip(), ""
                if self._ends(whole):
                    blocks.append(self.rest)
                    self.rest = ""
        return [block for block in blocks if block.strip()]

    def end(self) -> list[str]:
        """The last block, if there is one."""
        rest, self.rest, self._line, self._fence = self.rest, "", "", ""
        return [rest] if rest.strip() else []

    def _ends(self, line: str) -> bool:
        """Whether a line ends a block."""
        if self._fence:
            if line.startswith(self._fence) and not line.strip(self._fence[0]):
                self._fence = ""
                return True
            return False
        if line.startswith(_FENCES):
            self._fence = line[: len(line) - len(line.lstrip(line[0]))]
            return False
        return not line


def note(text: str, style: str = "dim") -> str:
    """A remark of the program as lines."""
    return lines_of(Text(visible(text), style=style))


def said(text: str, most: int = 12) -> str:
    """The user's text as lines; a long text is shortened."""
    lines = folded(visible(text), most).splitlines() or [""]
    return lines_of(Text("\n".join(f"> {line}" for line in lines), style="bold"))


def tool_line(event: AgentEvent) -> str:
    """A line for a tool that begins or has ended; "" for other events."""
    if event.call is None:
        return ""
    if event.kind in ("tool_started", "ran_tool"):
        return note(f"• {gist(event.call)}", "cyan")
    if event.kind == "tool_result":
        lines = event.text.strip().splitlines()
        remainder = f" (and {len(lines) - 1:,} more lines)" if len(lines) > 1 else ""
        first = " ".join(lines[0].split())[:GIST] if lines else "nothing"
        return note(f"  {event.outcome or 'ok'}: {first}{remainder}", "dim" if event.outcome == "ok" else "red")
    return ""


def call_in_full(call: ToolCall) -> str:
    """A call with all its arguments, for the user who is asked to approve it. Nothing is cut. Invisible characters are
    escaped, and blanks that would push the rest off the screen are counted."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.raw_arguments}
    shown: list[RenderableType] = [Text(_on_line(f"? {call.name}"), style="bold yellow")]
    signs = {"old": ("- ", "red"), "new": ("+ ", "green")} if call.name == "edit_file" else {}
    for key, value in arguments.items():
        text = value if isinstance(value, str) else compact_json(value)
        if signs and key not in signs:  # one line: a second one could look like one that is replaced
            shown.append(Text(f"  {_on_line(key)}: {_BLANKS.sub(_counted_gap, _on_line(text))}"))
            continue
        lines = _BLANKS.sub(_counted_gap, exposed(text)).splitlines() or [""]
        if key in signs:
            sign, style = signs[key]
            shown += [Text(f"  {sign}{line}", style=style) for line in lines]
        else:  # further lines stand deeper, so that none looks like another argument
            shown += [Text(f"  {_on_line(key)}: {lines[0]}"), *(Text(f"    {line}") for line in lines[1:])]
    return lines_of(*shown)


def _on_line(text: str) -> str:
    return visible(exposed(text), one_line=True)


def _counted_gap(gap: re.Match[str]) -> str:
    """A run of blanks, counted if it has many of one kind."""
    counts = [(gap[0].count(blank), noun, most) for blank, (noun, most) in _GAPS.items()]
    if all(number < most for number, _, most in counts):
        return gap[0]
    told = f"[{', '.join(counted(number, noun) for number, noun, _ in counts if number)}]"
    return f"\n{told}\n" if "\n" in gap[0] else told


def changed_files(session: Session, changes: Sequence[NetChange]) -> str:
    """A box of the files that changed; "" if none did."""
    rows = _counted(session, changes)
    return lines_of(Panel(Text("\n".join(rows)), title="files changed", expand=False)) if rows else ""


def _counted(session: Session, changes: Iterable[NetChange]) -> list[str]:
    rows = []
    for change, diff in differences(changes, session.log.blob):
        lines = "" if isinstance(diff, str) or diff.is_binary else f" +{diff.additions} -{diff.deletions}"
        rows.append(visible(f"{change.action} {change.path}{lines}", one_line=True))
    return rows
