"""Files that an agent changes: watch a folder, compare snapshots, fold changes into diffs.

Imported by `session`, the importers, and the command line.
"""
