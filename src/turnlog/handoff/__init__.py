"""A session as a prompt for another program: what was asked, required, done and left open, cited by record.

Built on memories, digests and views; `cli` prints such prompts and starts the programs.
"""

from .handoff import MAX_TOKENS, MODELS, Handoff, Program, handoff, session_file

__all__ = ["Handoff", "MAX_TOKENS", "MODELS", "Program", "handoff", "session_file"]
