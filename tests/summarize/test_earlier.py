"""What an earlier digest quoted competes with what is new: neither pushes the other out by its place alone."""

from __future__ import annotations

from test_digest import assistant, call, digest, result, user
from test_digest_truth import section

from turnlog.log.messages import Message
from turnlog.summarize.quotes import ChosenQuotes, Excerpt, Heading
from turnlog.summarize.reading import Quote


def looks(begin: int, end: int) -> list[Message]:
    """Calls of a kind: each shows a name of its own, and a number."""
    messages: list[Message] = []
    for nth in range(begin, end):
        messages += [call("x", "look_up", item=f"item-{nth}"), result("x", f"shelf S-{nth}, serial AB{nth:04}C")]
    return messages


def length(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def test_what_is_new_has_room_beside_all_that_was_told() -> None:
    """An earlier digest that filled its own room left none for what came since: an agent knew its first day by heart
    and nothing of the last hour."""
    messages, text = [user("Take stock.")], ""
    for begin in range(0, 600, 20):
        messages += looks(begin, begin + 20)
        first = max(1, len(messages) - 59)
        text = digest(messages[first - 1 :], 600, first=first, previous=text)
    new, earlier = section(text, "Done and found"), section(text, "From an earlier summary")
    assert length(new) >= 0.25 * length(new + earlier)
    assert length(earlier) >= 0.25 * length(new + earlier)
    assert int(earlier[0].partition("item-")[2]) > 300  # of what is worth the same, the newer


def test_what_was_told_stays_beside_small_talk() -> None:
    """However much was told of what is needed, it had two fifths of the room, and a third of it went for talk that
    names nothing but what it shows once."""
    messages = [user("Take stock."), *looks(0, 30)]
    told = digest(messages, 700)
    talk = [call("y", "list_dir", path="."), result("y", "\n".join(f"file_{n}.tmp is {n} bytes" for n in range(100)))]
    text = digest(talk, 700, first=len(messages) + 1, previous=told)
    kept = [line for line in section(told, "Done and found") if "serial" in line]
    assert len(kept) == 30
    assert len([line for line in section(text, "From an earlier summary") if line in kept]) > 15


def test_a_call_that_failed_is_told_as_failed_from_digest_to_digest() -> None:
    """A call of whose result nothing was quoted lost the mark that it failed at the next compaction: an agent took for
    done what was refused."""
    said = "\n".join(["One port for all.", "Staging runs on port 8431 of staging-eu-2.", "Ask ops-4711 first."])
    messages = [user("Note how we ship."), call("a", "Edit", file_path="CLAUDE.md", new_string=said)]
    text = digest([*messages, result("a", "Error: file was modified since", outcome="failed")], 300)
    for nth in range(3):
        text = digest(looks(nth, nth + 1), 300, first=4 + 2 * nth, previous=text)
        told = section(text, "From an earlier summary")
        at = next(at for at, line in enumerate(told) if "staging-eu-2" in line)
        assert "→ [3] failed" in told[at : at + 3]


def test_what_someone_else_wrote_outlives_the_second_digest() -> None:
    """Sentences of a model's summary, which name nothing, had no worth beside quotes: the second digest after it forgot
    what was paid for."""
    prose = "The customer is angry since nobody called back, and wants the money rather than another lamp."
    text = digest(looks(0, 20), 400, first=10, previous=prose)
    assert prose in section(text, "From an earlier summary")
    text = digest([*looks(20, 60), assistant("More to come.")], 400, first=50, previous=text)
    assert prose in section(text, "From an earlier summary")


def test_of_equals_that_were_told_the_newest_stay() -> None:
    """The first things that were said filled the digest for good, and the last ones left it first."""
    lines = [f"[{n}] assistant:\nplain words {chr(87 + n) * 4}" for n in range(10, 36)]
    previous = "\n".join(["Digest of records 1 to 40; [n] is record n", "## Done and found", *lines])
    told = digest([user("Go on.")], target=120, first=41, previous=previous)
    kept = [line for line in lines if line in told]
    assert 3 < len(kept) < 20 and kept == lines[-len(kept) :]


def test_what_does_not_fit_at_first_is_chosen_where_there_is_more_room() -> None:
    """The quote of most worth was gone for good where it was too long for the share of what is new."""
    quote = Quote(0, 60, "id_77 " + "and more of it " * 4, ("id_77",))
    choice = ChosenQuotes([Excerpt(0, 0, quote)], {0: Heading("[1] user:", ())}, {"id_77": 0}, {"id_77": 900}, ())
    assert choice.take(20, fill=False) == 0 and choice.chosen == []
    assert choice.take(200) > len(quote.text) and [one.quote for one in choice.chosen] == [quote]
