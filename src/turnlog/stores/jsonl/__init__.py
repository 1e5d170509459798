"""The JSONL store: a folder with one JSON Lines log for each session.

`store` contains the store itself; the other modules read, append, rewrite and verify files. Only `turnlog.stores`
imports this package.
"""
