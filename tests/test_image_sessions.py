"""Real sessions with images under `max_history_images`: `bench/images.py` replays all there are."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from image_sessions import CAPS, JUDGED, judge_images
from turnlog.importers import read_file
from turnlog.models import Target

FILES = (
    "webvoyager/taskGitHub--0/interact_messages.json",
    "ui-tars/event-stream-with-many-images.json",
    "cua/puppet.jsonl",
)


@pytest.mark.parametrize("aim", JUDGED, ids=lambda aim: aim.provider)
@pytest.mark.parametrize("most", CAPS)
def test_images_of_real_sessions(shared: Path, oracle: ModuleType, aim: Target, most: int | None) -> None:
    """Screens pile up in such sessions; a wrong number or a lost thumbnail sends the model to the wrong screen."""
    for name in FILES:
        for session in read_file(shared / "data" / name):
            asked, wrong = judge_images(session, aim, most, oracle, every=3)
            assert wrong == []
            assert asked > 3
