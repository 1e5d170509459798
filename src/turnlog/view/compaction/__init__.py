"""Keep a view within its budget: decide whether a session is compacted, and what is left out.

`decide` asks the steps of a strategy in order. `session.compactor` puts the decisions on record; nothing here changes
a view itself.
"""
