"""`check` beside an independent judge: it tells of what is refused, and of nothing that repair leaves alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from mutants import attempted, mutant

import turnlog
from draws import draws
from judging import TARGETS, errors_of, shown
from turnlog.errors import FormatError
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing import damaged_history

BODIES = draws(60, 1_000)


def damaged_bodies(aim: Target) -> Iterator[dict[str, Any]]:
    """Histories that were damaged, as nobody mended them; and requests that were sound, changed here and there."""
    speaker = provider(aim.provider)
    configuration = Configuration(provider=aim.provider, settings=speaker.required_settings(aim))
    for seed in range(BODIES):
        history = damaged_history(random.Random(seed))
        blob = history.blobs.__getitem__
        yield speaker.render(shown(history), configuration, aim, blob).body
        yield mutant(build(plan(Configuration(), aim), shown(history), blob).body, random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_check_tells_of_what_is_refused_and_of_nothing_that_is_left_alone(aim: Target, oracle: ModuleType) -> None:
    """Silence about a body that the API refuses lets it be sent; a violation in one that repair would not change
    cannot be mended by anything."""
    refused = kept = 0
    silent, groundless, untold = [], [], []
    for body in damaged_bodies(aim):
        errors = errors_of(oracle, aim, body)
        found = turnlog.check(body, aim.provider, model=aim.model)
        repaired = attempted(lambda body=body: turnlog.repair(body, aim.provider, model=aim.model))  # type: ignore[misc]
        if errors and not found:
            silent.append(errors[0])
        if not isinstance(repaired, FormatError):
            same = json.dumps(repaired.body, sort_keys=True) == json.dumps(body, sort_keys=True)
            asked = {**body, "model": aim.model} if "model" in body else body  # as the call says
            if same and found:
                groundless.append(found[0])
            if not same and repaired.body != asked and not repaired.edits and not repaired.losses:
                untold.append(body)
            kept += same
        refused += bool(errors)
    assert (silent, groundless, untold) == ([], [], [])
    assert refused > BODIES and kept > BODIES / 10
