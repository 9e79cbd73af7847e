"""Algorithms by name, as `[training] algorithm` has them: the entry that a new one adds. Loads none of them."""

ALGORITHMS = {"grpo": "learner.algorithms.grpo:Grpo"}
"""Name → module:class, an `Algorithm`."""
GROUP_BASELINE = frozenset({"grpo"})
"""Those that measure an answer against the others of its group: of a group of one nothing can be learnt."""
