"""From a view to a request: translate settings, repair, render, size, cache marks.

`build` makes whole requests, `incremental` keeps what was made before. `standalone`, `count` and `fit` do the same for
plain request bodies, without a session. Imported by `session`, `cli` and the importers.
"""
