"""Values that stand near words and patterns of the user's own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import InputError
from turnlog.redaction import Redactor

NAMES = ("badge", "case number", "ward")
VALUES = st.from_regex(r"[A-Z0-9][A-Za-z0-9/_-]{2,12}[0-9]", fullmatch=True)
SIGNS = (": ", "=", " = ", ":", " := ", " => ", " ", " is ", " number ", " #")
FRAMES = ("{}", "The {}.", "({})", "a\n{}\nb", "--{} -v", "x_{}")
SPELLINGS = (str, str.upper, str.title, lambda name: name.replace(" ", "_"), lambda name: name.replace(" ", "-"))
REDACTOR = Redactor(sensitive=NAMES)


@given(st.sampled_from(NAMES), st.sampled_from(SPELLINGS), st.sampled_from(SIGNS), VALUES, st.sampled_from(FRAMES))
def test_a_value_behind_a_word_is_marked(name: str, spelled: object, sign: str, value: str, frame: str) -> None:
    """A value that is kept because of the sign before it, the spelling of its name, or what stands around it."""
    assert callable(spelled)
    text = frame.format(f"{spelled(name)}{sign}{value}")
    clean, counts = REDACTOR.text(text)
    assert clean == frame.format(f"{spelled(name)}{sign}[redacted:sensitive]")
    assert counts == {"sensitive": 1}
    assert REDACTOR.text(clean)[0] == clean


@given(st.sampled_from(("badge", "case_number", "Case-Number")), VALUES | st.integers(10, 10**9))
def test_a_value_in_json_is_marked_by_its_key(key: str, value: str | int) -> None:
    """The arguments of a call keep what the same words lose in a text."""
    counts: dict[str, int] = {}
    clean = REDACTOR.value({"a": {key: value}, "b": "badge"}, counts)
    assert clean == {"a": {key: "[redacted:sensitive]"}, "b": "badge"}
    assert counts == {"sensitive": 1}
    assert json.loads(REDACTOR.spelled(json.dumps({key: value}), {})) == {key: "[redacted:sensitive]"}


@pytest.mark.parametrize(
    "text",
    [
        "The badge was lost, the badges of 12 wards too.",
        "badger: 47111",
        "inward 4711",
        "badge: null, badge = <your badge>",
        '{"badge": {"a": 1}, "kind": "badge", "n": 12345}',
        "badge\n\n4711",
    ],
)
def test_what_is_no_value_of_the_word_stays(text: str) -> None:
    """Ordinary words and values of other names become marks."""
    assert REDACTOR.text(text) == (text, {})


@pytest.mark.parametrize(
    ("pattern", "text", "clean"),
    [
        ("EMP-[0-9]{6}", "I am EMP-004711.", "I am [redacted:sensitive]."),
        ("EMP-[0-9]{6}", "EMP-004711: away", "[redacted:sensitive]: [redacted:sensitive]"),
        ("api[_-]?ref", "api_ref = zzz", "api_ref = [redacted:sensitive]"),
        ("Project (?:Falcon|Owl)", "Project Owl meets", "[redacted:sensitive] meets"),
        ("(?i)ward", "WARD: north", "WARD: [redacted:sensitive]"),
    ],
)
def test_what_a_pattern_matches_is_a_name_or_a_secret(pattern: str, text: str, clean: str) -> None:
    """A pattern that finds the secret itself, or the name of one, and only the other is looked for."""
    redactor = Redactor(sensitive=[pattern])
    assert redactor.text(text)[0] == clean
    assert redactor.text(clean)[0] == clean


@given(
    st.lists(st.sampled_from((*NAMES, "EMP-[0-9]+", "ab?c")), max_size=3),
    st.text("badge cEMP-019=:\"'[]\n", max_size=40),
)
def test_marking_twice_changes_nothing_more(patterns: list[str], text: str) -> None:
    """An import that is done again gives another session."""
    redactor = Redactor(sensitive=patterns)
    clean = redactor.text(text)[0]
    assert redactor.text(clean)[0] == clean


@pytest.mark.parametrize("wrong", ["badge", 5, None, [5], ["("], [""], ["x*"]])
def test_what_is_no_list_of_patterns_is_refused(wrong: object) -> None:
    """A text that is taken for a list of letters, or a pattern that marks everything."""
    with pytest.raises(InputError, match="sensitive"):
        Redactor(sensitive=wrong)  # type: ignore[arg-type]
