"""stores.jsonl."""
