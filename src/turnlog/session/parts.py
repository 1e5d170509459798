"""The parts of a session, for the modules that work with several of them."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ..log.store import Leased, Store
from ..workspace.watch import FileRecorder, Watches, folder_given
from .configure import Configurer, SessionState
from .events import Events
from .prompt import Prompt
from .reader import Checker, SessionLog
from .recorder import Journal
from .state import Context


class Parts(Struct, frozen=True, eq=False):
    """What opening, recovery and turns need of a session. `Session` passes it to them instead of itself."""

    store: Store
    log: SessionLog
    lease: Leased
    events: Events
    context: Context
    journal: Journal
    configurer: Configurer
    prompt: Prompt
    watches: Watches
    checker: Checker

    @property
    def state(self) -> SessionState:
        """The configuration and the system text now, with secrets replaced as on disk: differences show values cut
        short, perhaps in the middle of a secret."""
        return SessionState(self.events.as_kept(self.context.configuration), self.configurer.system_text)

    def files(self, root: str | Path) -> FileRecorder:
        """The recorder of changes of files under `root`; its watches are those of the session."""
        return FileRecorder(folder_given(root), self.journal.append, self.store.put_blob, self.watches)
