"""What is known about models: windows, prices, cache rules, and the target that requests are made for.

`data/models.json` is the shipped table. Imported by `providers` and above, and by stores for usage.
"""
