"""What a model is shown: pure functions from records to messages.

No clock, no disk, no provider's name: rules come in as data (`rules`). Imported by `providers` and above.
"""
