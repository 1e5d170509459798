"""Files that an agent changes: watches a folder, compares snapshots of it, and makes diffs from recorded changes.

Imported by `session`, the importers, and the command line.
"""
