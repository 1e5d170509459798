"""The shipped suite for providers, on our own."""

from __future__ import annotations

import pytest

from judging import TARGETS
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.testing.providers import PROVIDER_CHECKS


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__.strip("_"))
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_every_provider_keeps_its_promises(aim: Target, check) -> None:  # type: ignore[no-untyped-def]
    """Whoever writes a provider is held to this suite; ours must pass it first."""
    check(provider(aim.provider), aim, 40)
