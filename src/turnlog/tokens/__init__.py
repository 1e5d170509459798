"""Count tokens: counters by model family, and corrections learned from bills.

Counts the messages and tools of the log. Imported by `view` and above; imports only `log` and what is below it.
"""

from .approximate import FactoredCounter
from .calibration import Calibration, Drift, calibrated
from .counters import counter_for
from .openai import OpenAICounter
from .protocol import Counter, Tally

__all__ = ["Calibration", "Counter", "Drift", "FactoredCounter", "OpenAICounter", "Tally", "calibrated", "counter_for"]
