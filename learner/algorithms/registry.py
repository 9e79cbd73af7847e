"""Algorithms by name, as `[training] algorithm` has them: the entry that a new one adds. Loads none of them."""

ALGORITHMS = {"grpo": "learner.algorithms.grpo:Grpo"}
"""Name → module:class, an `Algorithm`."""
