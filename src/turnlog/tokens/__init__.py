"""Counting tokens: counters by family of models, and what bills teach them."""

from .approximate import FactoredCounter
from .calibration import Calibration, Drift, Prediction, calibrated
from .counted import Counter, Tally
from .counters import count_frame, count_message, count_tools, counter_for
from .openai import OpenAICounter

__all__ = [
    "Calibration",
    "Counter",
    "Drift",
    "FactoredCounter",
    "OpenAICounter",
    "Prediction",
    "Tally",
    "calibrated",
    "count_frame",
    "count_message",
    "count_tools",
    "counter_for",
]
