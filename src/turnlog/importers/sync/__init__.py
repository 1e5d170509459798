"""importers.sync."""
