"""Encryption: a store in front of any other store, and the keys that open it.

Imported by `turnlog.stores`. The inner store keeps the wrapped key (`KeySlot` in `turnlog.stores.base`).
"""
