"""The SQLite store, turnlog's default: one database file for all sessions.

`store` is the front; the other modules each hold one kind of statement. Only `turnlog.stores` imports this package.
"""
