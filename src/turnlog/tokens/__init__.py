"""Counting tokens."""

from .estimate import COUNTER, count_message, count_tools

__all__ = ["COUNTER", "count_message", "count_tools"]
