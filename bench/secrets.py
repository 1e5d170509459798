"""Plant secrets of many kinds in sessions, and look where they are: on disk, in requests, after reopening.

    python bench/secrets.py --kinds 25
    python bench/secrets.py --settings

Each session has one secret in a user's message, a call, a result, a note, a title and a text file, lives through a
stream with checkpoints, a compaction and a summary that a model wrote of them, is exported, forked and opened again.
Bars: 0 secrets in any file, all in the requests of the living session, and marks with edits after reopening.

With `--settings`: all kinds of `tests/redaction/kinds.py`, each in six settings (prose, environment, JSON,
configuration, command, log), looked for by the redactor alone. Bar: at least 200 kinds are found in every setting.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import turnlog
from turnlog import Message, ToolCall
from turnlog.export import FORMATS, save
from turnlog.summarize import Material

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "redaction"))
CHAT = turnlog.target("openai-chat", "gpt-4o")


class Quoting:
    """A summarizer that quotes whatever it is given."""

    id = "quoting/1"

    def summarize(self, material: Material, /) -> str:
        """The beginning of every message."""
        said = "\n".join(str(one.message.parts)[:300] for one in material.messages)
        return f"The user works on a login.\n{said}"[:4_000]


def live(place: str, text: str, secret: str, seen: Counter[str], folder: Path) -> None:
    """One session with a secret."""
    settings = turnlog.Settings(title=f"about {text}"[:300], checkpoint=0.0, summarizer=Quoting())
    with turnlog.open("s", store=place, target=CHAT, settings=settings) as session:
        events: list[Any] = []
        session.on_event(events.append)
        session.user(f"Log in with {text}\nplease.")
        call = ToolCall("c", "login", {"text": text})
        session.add(Message("assistant", (call,)))
        session.tool_result(call, f"sent: {text}")
        session.note("login", text)
        session.add(Message("user", (session.media(f"file: {text}\n".encode(), "text/plain"),)))
        session.receive(stream(text), CHAT)
        words = json_free(session.request().body)
        seen["requests with the secret"] += words.count(whole(secret)) >= 4
        seen["requests"] += 1
        for n in range(6):
            session.user(f"Word {n}. " + "And so on. " * 40)
            session.assistant("Yes.")
        session.compact(keep=2)
        session._store.fork("s", "fork")
        for form in FORMATS:
            save(session._store, "s", form, folder / f"s.{form}")
        seen["events"] += sum(event.kind == "redacted" for event in events)
        seen["secrets in events"] += sum(whole(secret) in f"{event.text} {event.record}" for event in events)


def stream(text: str) -> Iterator[dict[str, Any]]:
    """An answer that quotes the secret, in small pieces."""
    for at in range(0, len(text), 7):
        yield {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": text[at : at + 7]}}]}
    yield {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def json_free(value: Any) -> str:
    """Every text in a body, arguments as the model wrote them."""
    if isinstance(value, dict):
        return "\n".join(map(json_free, value.values()))
    if isinstance(value, (list, tuple)):
        return "\n".join(map(json_free, value))
    return str(value)


def whole(secret: str) -> str:
    """The longest line of a secret."""
    return max(secret.split("\n"), key=len)


def in_settings() -> int:
    """How many kinds are found in which settings."""
    from kinds import KINDS, planted  # beside the tests

    redactor, missed, settings = turnlog.Redactor(), dict[str, list[str]](), Counter[str]()
    for one in planted():
        if one.secret in redactor.text(one.text)[0]:
            missed.setdefault(one.kind, []).append(one.setting)
        else:
            settings[one.setting] += 1
    found = len(KINDS) - len(missed)
    print(f"{len(KINDS)} kinds, found in every setting: {found}")
    print("  ".join(f"{setting}: {n}" for setting, n in settings.items()))
    for kind, places in missed.items():
        print(f"  missed: {kind} ({', '.join(places)})")
    print("bar:", "met" if found >= 200 else "MISSED")
    return 0 if found >= 200 else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kinds", type=int, default=25)
    parser.add_argument("--settings", action="store_true", help="all kinds in six settings")
    given = parser.parse_args()
    if given.settings:
        return in_settings()
    from planted import SECRETS  # beside the tests

    seen: Counter[str] = Counter()
    leaks: list[str] = []
    kinds = [*SECRETS.items()][: given.kinds]
    for name, (text, secret) in kinds:
        for store in ("s.db", "files:s"):
            with tempfile.TemporaryDirectory() as path:
                folder = Path(path)
                place = f"files:{folder / 's'}" if store.startswith("files:") else str(folder / store)
                live(place, text, secret, seen, folder)
                held = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
                leaks += (f"{name}: {file.name}" for file, data in held.items() if whole(secret).encode() in data)
                with turnlog.open("s", store=place, target=CHAT, settings=turnlog.Settings()) as session:
                    session.undo("compaction")
                    request = session.request()
                    edits = {edit.records for edit in request.edits if edit.kind == "redacted"}
                    seen["reopened with the secret"] += whole(secret) in json_free(request.body)
                    seen["reopened with marks and edits"] += "[redacted:" in str(request.body) and len(edits) >= 4
                    made = [r for r in session.history() if getattr(r.body, "action", "") == "redact"]
                    seen["decisions"] += len(made)
    sessions = 2 * len(kinds)
    print(f"{len(kinds)} kinds, {sessions} sessions; secrets in files: {len(leaks)}")
    print("  ".join(f"{what}: {n}" for what, n in sorted(seen.items())))
    print(*leaks, sep="\n", end="\n" if leaks else "")
    met = not leaks and not seen["reopened with the secret"] and not seen["secrets in events"]
    met = met and seen["requests with the secret"] == seen["reopened with marks and edits"] == sessions
    met = met and seen["decisions"] == sessions
    print("bar:", "met" if met else "MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
