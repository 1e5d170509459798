"""The system prompt in sections: order, conditions, caps and priorities. `Session.prompt` keeps them on record."""

from ..log.prompt import When
from .sections import Section

__all__ = ["Section", "When"]
