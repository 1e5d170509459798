"""Import a transcript into a store again and again: what is new continues the session, nothing is overwritten.

`session` does it, `growth` tells whether the transcript only grew, `own_records` keeps what turnlog recorded in
between. Imported by `cli`.
"""

from __future__ import annotations

from .session import Synced, sync_session, without_secrets

__all__ = ["Synced", "sync_session", "without_secrets"]
