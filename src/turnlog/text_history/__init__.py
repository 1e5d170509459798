"""A conversation as one prompt of text, for models and programs that take nothing else.

Built on views and summaries; `runners` sends such prompts to programs.
"""

from .prompt import BuiltPrompt, HistoryPrompt

__all__ = ["BuiltPrompt", "HistoryPrompt"]
