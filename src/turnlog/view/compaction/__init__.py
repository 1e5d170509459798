"""view.compaction."""
