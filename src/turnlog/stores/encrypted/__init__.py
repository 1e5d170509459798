"""Encryption: a store in front of any other store, and the keys that open it.

Imported by `turnlog.stores`. The stores keep the wrapped key (their `key_slot`).
"""
