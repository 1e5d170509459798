"""A session as a prompt for another program: what was asked, required, done and left open, cited by record.

Built on memories, digests and views; `cli` prints such prompts and starts the programs.
"""

from .handoff import Handoff, handoff, session_file

__all__ = ["Handoff", "handoff", "session_file"]
