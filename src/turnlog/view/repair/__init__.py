"""Make any view valid under a provider's rules: clean messages, pair calls and results, arrange them, fix the ends.

`repair` runs the steps in order; each is a function from view to view and independent of the others.
"""
