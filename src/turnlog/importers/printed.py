"""What an agent program printed of its run, as JSON lines: also in the log of a build, among lines of other programs.

A file may hold several runs. A run that continues a conversation names the same one, and continues its session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..providers.protocol import Provider
from .fields import Fields, kind_of
from .protocol import Imported, Origin, hashed_id, with_own_ids
from .transcript import Transcript
from .writing import Handler, SessionWriter


def read_printed(
    origin: Origin,
    form: str,
    agent: str,
    provider: Provider,
    begins: tuple[str, str],
    handlers: Mapping[str, Handler | None],
    finish: Callable[[SessionWriter], None] = SessionWriter.flush,
    noise: str = "",
    ends: str = "",
) -> list[Imported]:
    """The sessions of a file. `begins` are the kind of the line that begins a run, and its key for the id; with `ends`,
    it begins one only behind a line of that kind. `finish` is called for each session when all lines were read."""
    file = Transcript(origin)
    kind_of_start, key = begins
    lines = file.objects("event", file.lines(among_text=True))
    if not any(line.value.get("type") in handlers for line in lines if isinstance(line.value.get("type"), str)):
        raise file.refused(f"event of {form}", "give the JSON lines that the program printed")
    writers: dict[str, SessionWriter] = {}
    writer: SessionWriter | None = None
    is_over = not ends
    for line in lines:
        entry = Fields(line.value)
        kind = kind_of(entry, "type")
        is_start = is_over and kind == kind_of_start
        if writer is None or is_start:
            session = entry.text(key) if is_start else ""
            if writer is None or ends or session not in ("", writer.id):
                new = SessionWriter(file, form, provider, agent=agent, beside=bool(writers), noise=noise)
                writer = writers.setdefault(session or f"line {line.number}", new)
                writer.id = writer.id or session or hashed_id(form, line.value)
        is_over = not ends or kind == ends or (is_over and not is_start)
        writer.at(entry.get("timestamp"))
        writer.take(entry, line.number, kind, handlers)
    for each in writers.values():
        finish(each)
    return with_own_ids(each.done() for each in writers.values())
