"""stores.encrypted."""
