"""Algorithms by name, as `[training] algorithm` has them: the entry that a new one adds. Loads none of them."""

from typing import NamedTuple


class Entry(NamedTuple):
    """Where an algorithm is, and what must be known of it before it is loaded."""

    path: str
    """module:class, an `Algorithm`."""
    compares_group: bool
    """It measures an answer against the others of its group: of a group of one nothing can be learnt."""


ALGORITHMS = {"grpo": Entry("learner.algorithms.grpo:Grpo", compares_group=True)}
