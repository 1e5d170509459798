"""Keep a view within its budget: decide whether to compact a session, and what to leave out.

`decide` tries the steps of a strategy in order. `session.compactor` records the decisions; nothing here changes a view
itself.
"""
