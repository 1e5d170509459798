"""A session: one log, opened for work.

`open` makes one. The other modules each hold one job of it: turns, recording, requests, compaction, recovery. Front
doors (`cli`, exporters, importers, telemetry) import it; nothing below does.
"""
