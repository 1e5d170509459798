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
