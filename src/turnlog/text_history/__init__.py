"""A conversation as one prompt of text, for models and programs that take nothing else.

Built on views and summaries; `runners` sends such prompts to programs.
"""

from .layout import Level
from .prompt import MAX_PROMPT_TOKENS, BuiltPrompt, HistoryPrompt

__all__ = ["BuiltPrompt", "HistoryPrompt", "Level", "MAX_PROMPT_TOKENS"]
