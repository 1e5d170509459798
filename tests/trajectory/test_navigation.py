"""Steps recorded by `Navigation`, and the messages that it makes of them."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import examples
from judging import TARGETS, errors_of
from navigating import CROP, THUMBNAIL, navigation, png, session_of, texts_of
from turnlog.errors import FormatError, InputError
from turnlog.log.budget import Strategy
from turnlog.log.messages import ToolResult, media_parts, sha256_hex
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import open_store
from turnlog.tokens.dimensions import dimensions
from turnlog.trajectory import Navigation, Region, walk

CHAT = target("openai-chat", "gpt-4o")
REMOVED = "[Image from Step {} removed to save context]"


def images_in(value: Any) -> int:
    """The images in a body, of whatever API."""
    keys = ("image_url", "source", "inlineData", "input_image")
    if isinstance(value, dict):
        if value.get("type") == "image" and "data" in value:  # Interactions
            return 1
        own = any(key in value for key in keys)
        return 1 if own else sum(map(images_in, value.values()))
    return sum(map(images_in, value)) if isinstance(value, list) else 0


def test_messages_of_three_steps() -> None:
    """The order that navigating agents are written for: system, question, then answer and crop in turn; another order
    would show a model a crop before it asked for it."""
    made = navigation(3).get_messages(CHAT)
    assert [message["role"] for message in made] == ["system", *["user", "assistant"] * 3, "user"]
    assert made[0]["content"] == "You read slides."
    assert made[1]["content"][0]["text"] == "Where is the tumor?" and images_in(made[1]) == 1
    for step in (1, 2, 3):
        said, shown = made[2 * step], made[2 * step + 1]
        assert said["content"][0]["text"] == f"I zoom in, {step}."
        assert f'"x":{step}' in said["content"][1]["text"]
        assert shown["content"][0]["text"] == f"Here is the crop of step {step} ({step}, 2, 30, 40):"
        assert images_in(shown) == 1


def test_only_the_newest_image_stays() -> None:
    """With one image of history, the thumbnail and the newest crop stay, and each other crop is named by its step."""
    made = navigation(3).get_messages(CHAT, max_history_images=1)
    assert [images_in(message) for message in made] == [0, 1, 0, 0, 0, 0, 0, 1]
    assert [part["text"] for part in made[3]["content"]][1:] == [REMOVED.format(1)]
    assert [part["text"] for part in made[5]["content"]][1:] == [REMOVED.format(2)]
    assert "I zoom in, 1." in str(made) and "I zoom in, 2." in str(made)


@pytest.mark.slow
@settings(max_examples=examples(25, 1_000))
@given(steps=st.integers(0, 12), most=st.none() | st.integers(0, 14), aim=st.sampled_from(TARGETS))
def test_any_number_of_steps(oracle: ModuleType, steps: int, most: int | None, aim: Target) -> None:
    """Whatever the steps, the limit and the API: the request is valid, roles alternate, the thumbnail and exactly the
    newest images stay, each other one is named, what was said stays, and nothing is put on record."""
    made = navigation(steps)
    before = len(made.session.history())
    request = made.request(aim, most)
    assert errors_of(oracle, aim, request.body) == []
    assert len(made.session.history()) == before
    messages = made.get_messages(aim, most)
    roles = [message.get("role") or message.get("type") for message in messages]
    roles = [role for role in roles if role not in ("system", "developer")]
    assert roles[:1] in (["user"], ["user_input"]) and all(a != b for a, b in pairwise(roles))
    gone = list(range(1, steps + 1))[: max(0, steps - (steps if most is None else most))]
    texts = texts_of(request.body)
    assert [text for text in texts if "removed to save context" in text] == [REMOVED.format(step) for step in gone]
    if "image" in aim.input_media:
        assert images_in(messages) == 1 + steps - len(gone)
    for step in range(1, steps + 1):
        assert f"I zoom in, {step}." in texts and f"Here is the crop of step {step} ({step}, 2, 30, 40):" in texts


def test_a_limit_is_no_decision() -> None:
    """A limit of one request must not bind the next: the images come back, and the session's own requests have them."""
    made = navigation(4, CHAT)
    assert images_in(made.get_messages(max_history_images=0)) == 1
    assert images_in(made.get_messages()) == 5
    assert images_in(made.session.request().body) == 5


def test_a_session_numbers_images_by_steps() -> None:
    """A session's own limit on images is a decision; its placeholders must name the steps that the texts name."""
    made = navigation(4, CHAT)
    made.session.configure(strategy=Strategy("images", ("images",), max_history_images=2))
    texts = texts_of(made.session.request().body)
    assert [text for text in texts if "removed to save" in text] == [REMOVED.format(1), REMOVED.format(2)]
    assert "Here is the crop of step 1 (1, 2, 30, 40):" in texts


def test_a_navigation_goes_on_in_another_process(tmp_path: Any) -> None:
    """A program that is killed and started again continues after its last step, and makes the same request."""
    path = str(tmp_path / "s.db")
    store = open_store(path)
    store.create("s")
    first = Navigation(Session(store, store.info("s")), "Where?", THUMBNAIL, slide_width=100, slide_height=100)
    assert first.add_turn(png(1), "a", CROP, Region(0, 0, 5, 5)) == 1
    sent = first.request(CHAT, 1).json()
    store.close()
    store = open_store(path)
    again = Navigation(Session(store, store.info("s")))
    assert again.steps == 1 and again.request(CHAT, 1).json() == sent
    assert again.add_turn(png(2), "b") == 2
    with pytest.raises(InputError, match="not inside the slide of 100 x 100"):
        again.add_turn(png(3), "c", region=(90, 90, 20, 20))
    with pytest.raises(InputError, match="another question, 'Where\\?'"):
        Navigation(again.session, "Who?")
    assert Navigation(again.session, "Where?").steps == 2
    store.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image": b"", "reasoning": "a"}, "step 1: image: the image is empty"),
        ({"image": b"GIF?", "reasoning": "a"}, "step 1: image: not an image"),
        ({"image": "no base64!", "reasoning": "a"}, "step 1: image: not base64"),
        ({"image": 7, "reasoning": "a"}, "step 1: image must be bytes, base64 or a pathlib.Path, not int"),
        ({"image": THUMBNAIL}, "step 1 says nothing"),
        ({"image": THUMBNAIL, "reasoning": 5}, "reasoning must be a string"),
        ({"image": THUMBNAIL, "reasoning": "a", "region": (0, 0, 0, 5)}, "width and height must be at least 1"),
        ({"image": THUMBNAIL, "reasoning": "a", "region": (-1, 0, 5, 5)}, "is not inside the slide"),
        ({"image": THUMBNAIL, "reasoning": "a", "region": (990, 0, 11, 5)}, "is not inside the slide"),
        ({"image": THUMBNAIL, "reasoning": "a", "region": (0.5, 0, 1, 1)}, "whole numbers of pixels"),
        ({"image": THUMBNAIL, "reasoning": "a", "region": "all"}, "region must be a Region"),
        ({"image": THUMBNAIL[:20] + b"\xff\xff\xff\xff" + THUMBNAIL[24:], "reasoning": "a"}, "pixels; crop it"),
    ],
)
def test_a_wrong_step_is_refused_whole(arguments: dict[str, Any], message: str) -> None:
    """What is no image, too large or outside of the slide is named, and half a step is never recorded."""
    made = navigation(0)
    before = made.session.history()
    with pytest.raises(InputError, match=message.replace("?", "\\?")):
        made.add_turn(**arguments)
    assert made.session.history() == before and made.steps == 0


@pytest.mark.parametrize("most", [-1, True, 1.0, "2"])
def test_a_wrong_limit_is_refused(most: Any) -> None:
    """A limit that is no number of images would remove the wrong images."""
    with pytest.raises(InputError, match="max_history_images must be a whole number"):
        navigation(1).get_messages(CHAT, most)


def test_a_navigation_needs_a_question() -> None:
    """Without a question, the first message would be empty."""
    with pytest.raises(InputError, match="question must not be empty"):
        Navigation(session_of())
    with pytest.raises(InputError, match="slide_width must be a whole number"):
        Navigation(session_of(), "Where?", slide_width=0)


def _answer(**message: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    said = {"role": "assistant", "content": None, **message}
    return {"model": "gpt-4o", "choices": [{"message": said, "finish_reason": "stop"}], "usage": usage}


def test_a_response_is_recorded_with_its_bill() -> None:
    """The model's own response keeps its usage, and its text is taken apart into reasoning and action."""
    made = navigation(0, CHAT)
    response = _answer(content="Thought: the nuclei are large.\n\nAction: crop(1, 2, 3, 4)")
    assert made.add_turn(png(1), region=(1, 2, 3, 4), response=response) == 1
    made.add_turn(png(2), "mine", "wait", response=_answer(content="as it was"))
    made.answer(response=_answer(content="It is at the left."))
    found = walk(made.session.log.records())
    assert [step.response.reasoning for step in found.steps] == ["the nuclei are large.", "mine"]
    assert [step.response.action for step in found.steps] == ["crop(1, 2, 3, 4)", "wait"]
    assert [usage.input for step in found.steps for _, usage in step.bills] == [100, 100]
    assert found.final_answer == "It is at the left." and [usage.output for _, usage in found.bills] == [10]
    assert made.session.usage.input == 300 and made.trajectory.final_answer == "It is at the left."


def test_an_image_answers_the_call_that_asked_for_it(oracle: ModuleType) -> None:
    """An agent with a crop tool gets the image as the tool's result; a second call in the same answer is not left
    open."""
    made = navigation(0, CHAT)
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "crop", "arguments": '{"x": 1}'}} for n in (1, 2)]
    made.add_turn(png(1), response=_answer(tool_calls=calls))
    results = made.session.history()[-1].message
    assert results is not None and all(isinstance(part, ToolResult) for part in results.parts)
    assert [part.outcome for part in results.parts if isinstance(part, ToolResult)] == ["ok", "canceled"]
    assert made.session.log.unfinished() == []
    for aim in TARGETS:
        assert errors_of(oracle, aim, made.request(aim).body) == []
    assert made.trajectory.turns[0].image == png(1)


def test_an_error_body_is_no_step() -> None:
    """A response that is an error must leave no half step."""
    made = navigation(0, CHAT)
    before = made.session.history()
    with pytest.raises(FormatError):
        made.add_turn(png(1), response={"error": {"message": "overloaded"}})
    assert made.session.history() == before and made.steps == 0


def test_the_limit_of_a_request_is_kept_with_the_step() -> None:
    """What the model saw is not to be guessed: the step says how many images its request had."""
    made = navigation(3, CHAT)
    made.get_messages(CHAT, 1)
    made.add_turn(png(9), "so")
    found = walk(made.session.log.records())
    assert [step.saw for step in found.steps] == [(0,), (0, 1), (0, 1, 2), (0, 3)]


def test_images_are_scaled_down_only_when_asked() -> None:
    """Bytes stay as they were given; with `max_side` they are smaller, and the note says from which size."""
    pytest.importorskip("PIL")
    plain = navigation(0)
    plain.add_turn(png(1, 64), "a")
    assert plain.trajectory.turns[0].image == png(1, 64)
    small = navigation(0, max_side=16)
    small.add_turn(png(1, 64), "a")
    small.add_turn(png(2, 8), "b")
    assert [dimensions(turn.image or b"") for turn in small.trajectory.turns] == [(16, 16), (8, 8)]
    notes = [record.body.data for record in small.session.log.of_kinds("note")]
    assert [note.get("scaled_from") for note in notes] == [None, [64, 64], None]


@pytest.mark.slow
def test_limits_of_providers_hold(oracle: ModuleType) -> None:
    """More images than a provider takes, many with a long side, one that is too long: the request is valid, the
    thumbnail and the newest image stay, and what is not sent is named."""
    made = navigation(0)
    for step in range(1, 105):
        made.add_turn(png(step, 2_100, 2), f"I look, {step}.")
    for aim in TARGETS:
        request = made.request(aim)
        assert errors_of(oracle, aim, request.body) == []
        if aim.provider == "anthropic":
            shown = [media.sha256 for one in request.view for media in media_parts(one.message)]
            assert len(shown) <= 20 and sha256_hex(THUMBNAIL) in shown and sha256_hex(png(104, 2_100, 2)) in shown
            assert any("images" in edit.kind for edit in request.edits)
    made.add_turn(png(200, 8_100, 2), "Too long.")
    request = made.request(target("anthropic", "claude-sonnet-4-5"), 1)
    assert errors_of(oracle, request.target, request.body) == [] and request.losses
