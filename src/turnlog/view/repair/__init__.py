"""view.repair."""
