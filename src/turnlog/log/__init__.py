"""What a log is: messages, records, their bytes, the budget they carry, and the store protocol.

Values without behaviour of their own. Imported from everywhere; imports `_platform` and `errors` only.
"""
