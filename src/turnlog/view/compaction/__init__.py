"""Keep a view within its budget: decide what gives way.

`ladder` asks the steps of a strategy in order. A decision becomes a record; nothing here changes a view itself.
"""
