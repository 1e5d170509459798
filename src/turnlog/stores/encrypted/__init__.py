"""Encryption: a store in front of any other store, and the keys that open it.

Imported by `turnlog.stores`; the SQLite and files stores import `keyholes`, where a store keeps its wrapped key.
"""
