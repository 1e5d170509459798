"""Judges a curated output: each unit of the original is shown, in order, or is counted exactly by a mark in its place.

A unit is a line, an element of JSON, a row of a table, a hunk of a diff, or a word of a page. Written apart from the
curators: it knows only how they write what they show.
"""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Sequence
from typing import Any

MARK = re.compile(r"\[\.\.\. (.+) left out(?:, kept as record (\d+))? \.\.\.\]")
COUNT = re.compile(
    r"([\d,]+) ([a-z ]*?)(lines?|tests?|rows?|entry|entries|elements?|keys?|characters?|hunks?|files?)\b"
)
ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78MDEHc])")
HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
PRINTED = ("command", "build", "tests")


class Wrong(Exception):
    """A unit that is neither shown nor counted."""


def unshown(kind: str, text: str, shown: str, record: int = 0) -> str:
    """What is wrong with a curated output, "" if nothing is."""
    if shown == text:
        return ""
    if not shown.strip():
        return "empty"
    if record and any(found[2] != str(record) for found in MARK.finditer(shown) if found[0] not in text):
        return "a mark without its record"
    try:
        _judge(kind, text, shown)
    except Wrong as wrong:
        return str(wrong)
    return ""


def _judge(kind: str, text: str, shown: str) -> None:
    inner = _wrapped(text) if kind != "json" else None
    if inner is not None:
        now = json.loads(shown)
        (key,) = [key for key, value in now.items() if value != inner[key]]
        _require([*now] == [*inner], "the object around it changed")
        _judge(kind, inner[key], now[key])
    elif shown == "[no text]":
        _require(not ESCAPES.sub("", text).strip(), "text became [no text]")
    elif kind == "json":
        _json_text(text.strip(), shown.strip())
    elif kind == "page":
        _page(text, shown)
    elif kind in PRINTED and re.search(r"^\[\.\.\. [\d,]+ characters? left out", shown, re.MULTILINE):
        head, tail = re.split(r"\n\[\.\.\. [\d,]+ characters? left out.*\n", shown)
        gone = sum(_counted(found[1])["character"] for found in MARK.finditer(shown))
        _require(text.startswith(head) and text.endswith(tail), "cut wrongly")
        _require(len(text) == len(head) + gone + len(tail), "characters that are not counted")
    elif kind in PRINTED:
        _Lines(_cleaned(text, shown)).take(shown.split("\n"))
    elif kind == "search":
        _search(_cleaned(text, shown), shown.split("\n"))
    elif kind == "listing":
        _listing(_cleaned(text, shown), shown.split("\n"))
    elif kind == "table":
        rows = [line for line in shown.split("\n") if not re.match(r"\[(?:column |and \d)", line)]
        _Lines(text.rstrip("\n").split("\n")).take(rows)
    elif kind == "diff":
        _diff(text.removesuffix("\n").split("\n"), shown.split("\n"))
    else:
        raise Wrong(f"{kind} changed")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


def _wrapped(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    texts = [v for v in value.values() if isinstance(v, str)] if isinstance(value, dict) and len(value) <= 8 else []
    return value if any(len(one) > 0.7 * len(text) for one in texts) else None


def _cleaned(text: str, shown: str) -> list[str]:
    """The lines of a text without escapes; of states that were overwritten those that are shown, if the others differ
    from them only in numbers and bars."""
    text = re.sub(r"[^\n\x08]\x08", "", ESCAPES.sub("", text)).replace("\r\n", "\n")
    lines: list[str] = []
    for line in text.split("\n"):
        states = [state for state in line.split("\r") if state.strip()] if "\r" in line else [line]
        for i, state in enumerate(states):
            rest = states[i + 1 : i + 2]
            if not rest or _alike(rest[0]) != _alike(state) or not _is_progress(state, rest[0]):
                lines.append(state)
        if not states:
            lines.append("")
    return lines


def _alike(text: str) -> str:
    numbers = re.sub(r"\s*\d+(?:[.,:]\d+)*(?:\s?[kKMGT]?i?B(?:/s)?)?", "0", text)
    return re.sub(r"[\s#=.>|/\\-]+", "", numbers)


def _is_progress(state: str, after: str) -> bool:
    return state == after or "%" in state or not re.search(r"\d", state)


def _counted(mark: str) -> dict[str, int]:
    """The units that a mark counts, by noun in the singular."""
    said = mark.partition(" with the keys ")[0]
    found: dict[str, int] = {}
    for count, _, noun in COUNT.findall(said):
        noun = {"entries": "entry"}.get(noun, noun.removesuffix("s"))
        found[noun] = found.get(noun, 0) + int(count.replace(",", ""))
    return found


class _Lines:
    """Lines that are taken one after another."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0

    @property
    def next(self) -> str:
        _require(self.at < len(self.lines), "more is shown than there was")
        return self.lines[self.at]

    def skip(self, count: int) -> None:
        self.at += count
        _require(self.at <= len(self.lines), "a mark counts too much")

    def end(self) -> None:
        _require(self.at == len(self.lines), f"not shown: {self.lines[self.at : self.at + 1]}")

    def take(self, shown: Sequence[str]) -> None:
        """All shown lines of a program or a table."""
        i = 0
        while i < len(shown):
            line, unit = shown[i], self.lines[self.at] if self.at < len(self.lines) else None
            ahead = MARK.fullmatch(shown[i + 1]) if i + 1 < len(shown) else None
            if line == unit:
                self.skip(1)
            elif (mark := MARK.fullmatch(line)) is not None:
                counts = _counted(mark[1])
                self.skip(counts.get("line", 0) + counts.get("test", 0) + counts.get("row", 0))
            elif ahead is not None and "of one line" in ahead[1]:
                gone = _counted(ahead[1])["character"]
                whole = unit is not None and unit.startswith(line) and unit.endswith(shown[i + 2])
                _require(
                    whole and len(unit or "") == len(line) + gone + len(shown[i + 2]), f"cut wrongly: {line!r:.80}"
                )
                self.skip(1)
                i += 2
            else:
                _require(unit is not None and unit.strip()[:1] in ("{", "["), f"{line!r:.80} for {unit!r:.80}")
                _json_text(self.next.strip(), line)
                self.skip(1)
            i += 1
        self.end()


def _search(lines: Sequence[str], shown: Sequence[str]) -> None:
    lines = lines[:-1] if lines[-1:] == [""] else lines
    left, path = _Lines(lines), ""
    for line in shown:
        if not line and left.at == len(lines):
            continue
        mark = MARK.fullmatch(line, max(0, line.rfind("[... ")))
        if mark is not None and line not in lines[left.at : left.at + 1]:
            counts = _counted(mark[1])
            before = line[: mark.start()].strip()
            if "character" in counts:
                whole = line[: mark.start() - 1] + left.next[len(left.next) - counts["character"] :]
                inside = path and line.startswith("  ") and _is_hit(left.next, path, whole[2:])
                _require(inside or left.next == whole, f"cut wrongly: {line!r:.80}")
                path = path if inside else ""
                left.skip(1)
                continue
            if before and left.next.removeprefix("File: ").strip() == before:
                left.skip(1)  # the path stood on a line of its own
            left.skip(counts["line"])
        elif path and line.startswith("  ") and left.at < len(lines) and _is_hit(left.next, path, line[2:]):
            left.skip(1)
        elif left.at < len(lines) and left.next.removeprefix("File: ").strip() == line:
            path = line
            left.skip(1)
        elif left.at < len(lines) and left.next.startswith((f"{line}:", f"{line}-")):
            path = line
        else:
            _require(left.next == line, f"{line!r:.80} for {left.next!r:.80}")
            left.skip(1)
            path = ""
    left.end()


def _is_hit(unit: str, path: str, body: str) -> bool:
    if unit == body or unit == f"{path}:{body}":
        return True
    numbered = re.fullmatch(r"(\d+)([:-]) (.*)", body)
    if numbered is None:
        return False
    n, sign, text = numbered.groups()
    flat = (f"{path}:{n}:{text}", f"{path}-{n}-{text}")
    below = re.fullmatch(rf"\s*(?:L|Line )?{n}[:|→-]", unit[: len(unit) - len(text)])
    return unit == flat[sign == "-"] or (unit.endswith(text) and below is not None)


def _listing(lines: Sequence[str], shown: Sequence[str]) -> None:
    lines = [line for line in lines if line.strip()]
    left, prefix = _Lines(lines), ""
    for line in shown:
        if left.at < len(lines) and line == left.next:
            left.skip(1)
        elif (mark := MARK.search(line)) is not None:
            counts, before = _counted(mark[1]), line[: mark.start()].strip()
            count = counts.get("entry", 0) + counts.get("line", 0)
            gone = lines[left.at : left.at + count]
            _require(all(one.startswith(before) for one in gone) or not before, f"not all below {before}")
            left.skip(count)
        elif (heading := re.fullmatch(r"(.*) \(([\d,]+) entr(?:y|ies)\)", line)) is not None:
            prefix, count = heading[1], int(heading[2].replace(",", ""))
            below = lines[left.at : left.at + count]
            _require(len(below) == count and all(one.startswith(prefix) for one in below), f"not all below {prefix}")
        else:
            _require(left.next == prefix + line[2:], f"{line!r:.80} for {left.next!r:.80}")
            left.skip(1)
    left.end()


def _diff(lines: Sequence[str], shown: Sequence[str]) -> None:
    left = _Lines(lines)
    for line in shown:
        mark = MARK.fullmatch(line)
        if mark is None or (left.at < len(lines) and left.next == line):
            _require(left.next == line, f"{line!r:.80} for {left.next!r:.80}")
            left.skip(1)
            continue
        counts = _counted(mark[1].partition(" (")[0])
        if "file" in counts or "of the diff" in mark[1]:
            hunks = sum(HUNK.match(one) is not None for one in lines[left.at :])
            _require("file" not in counts or hunks == counts.get("hunk", 0), "hunks that are not counted")
            left.at = len(lines)
            continue
        added, removed = (int(n.replace(",", "")) for n in re.findall(r"[+-]([\d,]+)", mark[1]))
        for _ in range(counts["hunk"]):
            found = HUNK.match(left.next)
            _require(found is not None, f"no hunk: {left.next!r:.80}")
            assert found is not None
            old, new = int(found[1] or 1), int(found[2] or 1)
            left.skip(1)
            while left.at < len(lines) and (lines[left.at][:1] == "\\" or old > 0 or new > 0):
                sign = lines[left.at][:1]
                if sign not in ("\\", " ", "+", "-", ""):
                    break
                if sign != "\\":
                    old, new = old - (sign != "+"), new - (sign != "-")
                    added, removed = added - (sign == "+"), removed - (sign == "-")
                left.skip(1)
        _require((added, removed) == (0, 0), "a mark counts other lines than there are")
    left.end()


def _json_text(text: str, shown: str) -> None:
    try:
        _json(_load(text), _load(shown))
        return
    except ValueError:
        pass
    lines = [line for line in text.split("\n") if line.strip()]
    at = 0
    for line in shown.split("\n"):
        mark = MARK.fullmatch(line)
        if mark is not None:
            at += _counted(mark[1])["line"]
            continue
        _require(at < len(lines), "more is shown than there was")
        try:
            _json(_load(lines[at]), _load(line))
        except ValueError:
            raise Wrong(f"not JSON: {line!r:.80}") from None
        at += 1
    _require(at == len(lines), "lines that are not counted")


def _load(text: str) -> Any:
    return json.loads(text, parse_float=lambda spelled: ("number", spelled))


def _json(value: Any, shown: Any) -> None:
    if isinstance(shown, str) and shown != value and isinstance(value, str):
        mark = MARK.fullmatch(shown)
        _require(
            mark is not None and _counted(mark[1]) == {"character": len(value)}, f"{shown!r:.80} for {value!r:.80}"
        )
    elif isinstance(value, dict) and isinstance(shown, dict):
        keys = [*value]
        here = [key for key in shown if key in value]
        _require(here == keys[: len(here)], "keys in another order")
        (more,) = [key for key in shown if key not in value] or [""]
        gone = _counted((MARK.fullmatch(shown[more]) or [""])[1])["key"] if more else 0
        _require(len(here) + gone == len(keys), "keys that are not counted")
        for key in here:
            _json(value[key], shown[key])
    elif isinstance(value, list) and isinstance(shown, list):
        at = 0
        for one in shown:
            mark = MARK.fullmatch(one) if isinstance(one, str) else None
            if mark is not None and "element" in (counts := _counted(mark[1])):
                at += counts["element"]
                continue
            _require(at < len(value), "more elements than there were")
            _json(value[at], one)
            at += 1
        _require(at == len(value), "elements that are not counted")
    else:
        _require(type(value) is type(shown) and value == shown, f"{shown!r:.80} for {value!r:.80}")


class _Words(html.parser.HTMLParser):
    """The text of a page, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside += tag in ("script", "style", "svg", "template", "iframe", "head")

    def handle_endtag(self, tag: str) -> None:
        self.inside = max(0, self.inside - (tag in ("script", "style", "svg", "template", "iframe", "head")))

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.words += data.split()


def _page(text: str, shown: str) -> None:
    _require("markup, scripts and styles of" in shown, "markup that is not counted")
    if re.search(r"[\d,]+ other characters? of the text left out", shown):
        return
    parser = _Words()
    parser.feed(text)
    have = "".join(shown.split())
    missing = [word for word in parser.words if "".join(word.split()) not in have]
    _require(not missing, f"words that are not shown: {missing[:3]}")
