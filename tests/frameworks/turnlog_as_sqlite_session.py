"""A pytest plugin for openai-agents' own tests: their `SQLiteSession` is the session of the documentation's program.

`pytest -p turnlog_as_sqlite_session` in the folder of openai-agents' source package, with this folder and
`examples/frameworks` on PYTHONPATH.
"""

import agents
import agents.memory
import agents.memory.sqlite_session as original
from openai_agents_session import TurnlogSession


class SQLiteSession(TurnlogSession):
    """The program's session with the arguments of openai-agents' own."""

    def __init__(self, session_id, db_path=":memory:", session_settings=None):
        super().__init__(session_id, str(db_path), session_settings)


agents.SQLiteSession = agents.memory.SQLiteSession = original.SQLiteSession = SQLiteSession
