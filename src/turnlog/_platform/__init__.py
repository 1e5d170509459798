"""_platform."""
