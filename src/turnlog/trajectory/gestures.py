"""What an action does with a mouse and a keyboard, and where: read from the spellings that agents use.

- The computer tools of Anthropic (`{"action": "left_click", "coordinate": [x, y]}`) and OpenAI
  (`{"type": "click", "x": x, "y": y}`), in pixels of the screenshot.
- UI-TARS (github.com/bytedance/UI-TARS, action parser): `click(point='<point>x y</point>')` and
  `click(start_box='(x,y)')`, in thousandths of the screenshot's width and height.
- WebVoyager (github.com/MinorJerry/WebVoyager, prompts.py): `Click [4]`, `Type [4]; text`, where 4 is the number that
  is drawn on an element. Its place is only in the picture; its name is in the text beside the picture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .._platform.lazy import lazy_pattern

_KINDS: dict[str, str] = {
    **dict.fromkeys(("click", "left_click", "tap", "left_single"), "click"),
    **dict.fromkeys(("double_click", "left_double", "triple_click"), "double click"),
    **dict.fromkeys(("right_click", "right_single"), "right click"),
    **dict.fromkeys(("middle_click",), "middle click"),
    **dict.fromkeys(("drag", "left_click_drag", "select"), "drag"),
    **dict.fromkeys(("scroll", "swipe"), "scroll"),
    **dict.fromkeys(("type", "input", "input_text"), "type"),
    **dict.fromkeys(("key", "keypress", "hotkey", "press", "hold_key"), "key"),
    **dict.fromkeys(("move", "mouse_move", "hover", "cursor_position"), "move"),
    **dict.fromkeys(("wait", "sleep"), "wait"),
    **dict.fromkeys(("goback", "back", "navigate_back"), "go back"),
    **dict.fromkeys(("google", "goto", "navigate", "open_url"), "open page"),
}
_CALL = lazy_pattern(r"\A\s*(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)
_NAMED = lazy_pattern(r"(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_NUMBER = lazy_pattern(r"-?\d+(?:\.\d+)?")
_LABELLED = lazy_pattern(
    r"\A\s*(Click|Type|Scroll|Wait|GoBack|Google)\b\s*(?:\[?(\w+)\]?)?\s*(?:;\s*\[?(.*?)\]?)?\s*\Z", re.I | re.S
)
_LABELS = lazy_pattern(r"\[(\d+)\]: (?:<(\w+)>\s*)?\"([^\"]*)\"")
_PLACES = (
    "coordinate",
    "start_coordinate",
    "end_coordinate",
    "point",
    "start_point",
    "end_point",
    "start_box",
    "end_box",
)


class Gesture(Struct, frozen=True, repr_omit_defaults=True):
    """One action with a mouse or a keyboard.

    `kind` is `click`, `double click`, `right click`, `middle click`, `drag`, `scroll`, `type`, `key`, `move`, `wait`,
    `go back` or `open page`. `points` are the places that it goes to, in order, in pixels of the screenshot that the
    model saw or, with `thousandths`, in thousandths of its width and height. `text` is what is typed, the keys, or the
    direction; `target` the element that the action names.
    """

    kind: str
    points: tuple[tuple[float, float], ...] = ()
    thousandths: bool = False
    text: str = ""
    target: str = ""

    def places(self, width: float, height: float) -> tuple[tuple[float, float], ...]:
        """The points in pixels of a screenshot of this size; points outside of it are moved to its edge."""
        scale = (width / 1000, height / 1000) if self.thousandths else (1.0, 1.0)
        return tuple(
            (min(max(x * scale[0], 0.0), float(width)), min(max(y * scale[1], 0.0), float(height)))
            for x, y in self.points
        )

    def __str__(self) -> str:
        beside = [self.target, f'"{self.text}"' if self.text else ""]
        return " ".join([self.kind, *filter(None, beside)])


def gestures_of(action: Any, heard: str = "") -> tuple[Gesture, ...]:
    """The gestures in an action: a text, a tool call as `{"name": ..., "arguments": ...}`, its arguments, or a list of
    these. `heard` is the text beside the screenshot, in which WebVoyager names its elements. () for other actions."""
    return tuple(_found(action, heard, 0))


def _found(action: Any, heard: str, depth: int) -> Iterator[Gesture]:
    if depth > 4:
        return
    if isinstance(action, list):
        for item in action:
            yield from _found(item, heard, depth + 1)
    elif isinstance(action, str):
        yield from _written(action, heard)
    elif isinstance(action, Mapping):
        kind = next((_KINDS[word] for key in ("action", "type") if (word := _word(action, key)) in _KINDS), None)
        if kind is not None:
            yield _called(kind, action)
        else:
            for key in ("arguments", "action", "actions"):
                yield from _found(action.get(key), heard, depth + 1)


def _word(action: Mapping[str, Any], key: str) -> str:
    value = action.get(key)
    return value.lower() if isinstance(value, str) else ""


def _called(kind: str, given: Mapping[str, Any], *, thousandths: bool = False) -> Gesture:
    """The gesture that the arguments of a call describe."""
    points = [point for key in _PLACES if (point := _point(given.get(key))) is not None]
    if "start_coordinate" in given and len(points) > 1:  # Anthropic: from `start_coordinate` to `coordinate`
        points = [points[1], points[0], *points[2:]]
    if not points and (point := _point([given.get("x"), given.get("y")])) is not None:
        points = [point]
    path = given.get("path")
    if isinstance(path, list):
        points += [point for place in path[:100] if (point := _point(place)) is not None]
    if thousandths and any(max(point) > 1000 for point in points):
        thousandths = False
    elif thousandths and points and all(max(point) <= 1 for point in points):  # shares
        points = [(x * 1000, y * 1000) for x, y in points]
    return Gesture(kind, tuple(points), thousandths, _typed(given), str(given.get("element") or "")[:200])


def _typed(given: Mapping[str, Any]) -> str:
    for key in ("text", "content", "keys", "key", "direction", "scroll_direction", "url"):
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return "+".join(value)
    turned = given.get("scroll_y", given.get("scrollY"))
    if isinstance(turned, (int, float)) and turned:
        return "down" if turned > 0 else "up"
    return ""


def _point(value: Any) -> tuple[float, float] | None:
    """A place: two numbers (or four: the middle of a box), as a list, an object, or in a text."""
    if isinstance(value, Mapping):
        value = [value.get("x"), value.get("y")]
    if isinstance(value, str):
        value = [float(number) for number in _NUMBER.findall(value[:200])]
    if not isinstance(value, (list, tuple)):
        return None
    numbers = [float(item) for item in value if isinstance(item, (int, float)) and not isinstance(item, bool)]
    if len(numbers) != len(value) or any(abs(item) > 1e6 or item != item for item in numbers):
        return None
    if len(numbers) == 4:
        return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _written(text: str, heard: str) -> Iterator[Gesture]:
    """The gesture that a text describes: JSON, a call of UI-TARS's, or a line of WebVoyager's."""
    if text[:1] in "{[" and text:
        try:
            yield from _found(json.loads(text), heard, 1)
        except (ValueError, RecursionError):
            pass
        return
    called = _CALL.match(text[:10_000])
    if called is not None and (kind := _KINDS.get(called[1].lower())) is not None:
        given = {name: _unescaped(single or double) for name, single, double in _NAMED.findall(called[2])}
        yield _called(kind, given, thousandths=True)
        return
    labelled = _LABELLED.match(text[:10_000])
    if labelled is not None:
        label, typed = labelled[2] or "", labelled[3] or ""
        names = {number: f"[{number}] {words or tag}" for number, tag, words in _LABELS.findall(heard)}
        target = names.get(label, f"[{label}]" if label.isdigit() else label.lower())
        yield Gesture(_KINDS[labelled[1].lower()], text=typed.strip(), target=target.strip())


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)
