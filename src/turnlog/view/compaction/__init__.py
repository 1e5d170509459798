"""Keep a view within its budget: decide whether a session is compacted, and what is left out.

`decide` tries the steps of a strategy in order. `session.compactor` records the decisions; nothing here changes a view
itself.
"""
