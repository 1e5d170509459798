"""Run benches: `python bench/run.py list`, `python bench/run.py NAME... [--quick] [--json] [options of the bench]`,
`python bench/run.py quick` for all that take seconds. `NAME --help` tells the options."""

from __future__ import annotations

import sys

from harness import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
