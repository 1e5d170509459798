"""The files store: one folder, one JSON Lines log for each session.

`store` is the front; the other modules read, append, rewrite and verify files. Only `turnlog.stores` imports this
package.
"""
