"""What is read of actions: the gestures of the agents that turnlog imports, and nothing of any other text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.trajectory import Gesture, gestures_of

_SEEN = '[5]: <input> "Search";\t[8]: "Docs";'


@pytest.mark.parametrize(
    ("action", "gesture"),
    [
        ({"action": "left_click", "coordinate": [10, 20]}, Gesture("click", ((10, 20),))),
        (
            {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]},
            Gesture("drag", ((1, 2), (3, 4))),
        ),
        (
            {"action": "scroll", "coordinate": [5, 6], "scroll_direction": "down", "scroll_amount": 3},
            Gesture("scroll", ((5, 6),), text="down"),
        ),
        ({"action": "type", "text": "hello"}, Gesture("type", text="hello")),
        ({"action": "key", "text": "ctrl+c"}, Gesture("key", text="ctrl+c")),
        ({"type": "click", "x": 7, "y": 8, "button": "left"}, Gesture("click", ((7, 8),))),
        ({"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}, Gesture("drag", ((1, 2), (3, 4)))),
        ({"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -50}, Gesture("scroll", ((1, 2),), text="up")),
        ({"type": "keypress", "keys": ["CTRL", "L"]}, Gesture("key", text="CTRL+L")),
        ("click(point='<point>400 435</point>')", Gesture("click", ((400, 435),), True)),
        ("click(start_box='(10,20)')", Gesture("click", ((10, 20),), True)),
        ("click(start_box='[0.25, 0.25, 0.5, 0.75]')", Gesture("click", ((375, 500),), True)),
        (
            "drag(start_point='<point>1 2</point>', end_point='<point>3 4</point>')",
            Gesture("drag", ((1, 2), (3, 4)), True),
        ),
        ("click(point='<point>1400 435</point>')", Gesture("click", ((1400, 435),))),
        (r"type(content='it\'s here\n')", Gesture("type", thousandths=True, text="it's here\n")),
        ("scroll(point='<point>5 6</point>', direction='down')", Gesture("scroll", ((5, 6),), True, text="down")),
        ("Click [5]", Gesture("click", target="[5] Search")),
        ("Type [5]; two words", Gesture("type", text="two words", target="[5] Search")),
        ("Type [9]; x", Gesture("type", text="x", target="[9]")),
        ("Scroll [WINDOW]; [down]", Gesture("scroll", text="down", target="window")),
        ("GoBack", Gesture("go back")),
    ],
)
def test_how_agents_spell_gestures(action: Any, gesture: Gesture) -> None:
    """Each spelling of the agents that there are importers for; one that is not read has no place on the page."""
    found = gestures_of(action, _SEEN)
    assert len(found) == 1
    one = found[0]
    assert (one.kind, one.points, one.text, one.target) == (gesture.kind, gesture.points, gesture.text, gesture.target)
    assert one.thousandths == gesture.thousandths or not gesture.points
    assert gestures_of({"name": "computer", "arguments": action}, _SEEN) == found
    assert gestures_of([action, {"name": "other", "arguments": {}}], _SEEN) == found


@pytest.mark.parametrize(
    "action", [None, "I look around.", "ANSWER; 5", {"action_type": "crop", "x": 1, "y": 2}, 5, []]
)
def test_other_actions_are_no_gestures(action: Any) -> None:
    """A text that only begins like a gesture would put a mark where nobody clicked."""
    assert gestures_of(action) == ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["action", "type", "coordinate", "x", "y", "path", "text", "keys", "arguments", "point"]),
            inner,
        )
    ),
    max_leaves=12,
)
_WORDS = st.sampled_from(["click", "drag", "scroll", "type", "key"])


@given(_JSON, _WORDS, st.text(max_size=20))
def test_any_action_can_be_read(value: Any, word: str, text: str) -> None:
    """Actions are foreign: whatever they hold gives gestures with places inside of the screenshot, and never an
    error."""
    for action in (
        value,
        {"action": word, "coordinate": value, "text": value},
        f"{word}({text})",
        f"{word}(point='{text}')",
    ):
        for gesture in gestures_of(action, text):
            assert all(0 <= x <= 640 and 0 <= y <= 480 for x, y in gesture.places(640, 480))
            assert str(gesture)
