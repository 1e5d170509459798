"""Encryption: a store in front of any other store, and the keys that open it.

Imported by `turnlog.stores`. The SQLite and JSONL stores keep the wrapped key (`turnlog.stores.key_slot`).
"""
