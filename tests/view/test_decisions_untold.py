"""What left without a summary: found by ranges, held against each record by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.records import Decision
from turnlog.view.decisions import Effects, untold

LAST = 34


@st.composite
def decisions(draw: st.DrawFn) -> dict[int, Decision]:
    """Decisions over some thirty records, most of which keep nothing of what they cover."""
    found = {}
    for n in range(100, 100 + draw(st.integers(0, 8))):
        first = draw(st.integers(1, 30))
        last = draw(st.integers(first, 32))
        kept = [[one, one + 1] for one in draw(st.just(set[int]()) | st.sets(st.integers(1, 31), max_size=2))]
        action = draw(st.sampled_from(["slide", "compact", "clear", "rewind", "priority", "mask"]))
        found[n] = Decision(action, first, last, "", {"kept": kept})
    return found


def numbers(ranges: list[tuple[int, int]]) -> set[int]:
    """The numbers in ranges."""
    return {n for first, last in ranges for n in range(first, last + 1)}


@given(made=decisions(), data=st.data())
def test_untold_is_what_left_for_want_of_room_and_no_summary_covers(
    made: dict[int, Decision], data: st.DataObject
) -> None:
    """A record that is missing here is told to no summary; one too many brings back what a user cleared."""
    summaries = [n for n, decision in made.items() if decision.action == "compact"]
    standing = data.draw(st.sets(st.sampled_from(summaries)) if summaries else st.just(set[int]()))
    by_itself = {
        n
        for n in numbers(Effects().shown_ranges(LAST))
        if any(hiding.covers(n) for hiding in Effects.of(made).hidings)
        and not any(
            hiding.covers(n) and (hiding.n in standing or made[hiding.n].action in ("clear", "priority", "rewind"))
            for hiding in Effects.of(made).hidings
        )
    }
    assert numbers(untold(made, standing, LAST)) == by_itself


_ODD = st.recursive(
    st.none() | st.integers() | st.text(max_size=2) | st.booleans(), lambda each: st.lists(each, max_size=4)
)


@given(odd=st.lists(_ODD, max_size=4) | _ODD, name=st.sampled_from(["texts", "cuts", "unsigned"]))
def test_entries_of_another_form_change_nothing(odd: object, name: str) -> None:
    """A log in which a decision names a place in a way that turnlog never writes cannot be opened any more."""
    good = {"texts": [[3, [0], "x"]], "cuts": [], "unsigned": []}
    more = {**good, name: [*good[name], *odd] if isinstance(odd, list) else odd}
    effects = Effects.of({9: Decision("exclude", 3, 3, "", more)})
    assert all(
        isinstance(step, int) and step >= 0 for held in effects.changes.values() for path in held for step in path
    )
    if name != "texts":
        assert effects.changes.get(3) is not None


def test_a_path_that_is_no_list_is_ignored() -> None:
    """One malformed entry takes the others with it."""
    detail = {"texts": [[1, 0, "x"], [1, ["a"], "x"], [1], "x", [2, [0], "y"]], "cuts": 7, "unsigned": [[1, None]]}
    assert [*Effects.of({9: Decision("exclude", 1, 2, "", detail)}).changes] == [2]
