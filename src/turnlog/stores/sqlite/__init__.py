"""The SQLite store, turnlog's default: one database file for all sessions.

`store` contains the store itself; each other module has the statements for one purpose. Only `turnlog.stores` imports
this package.
"""
