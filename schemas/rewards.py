"""One rollout's reward."""

import msgspec

from schemas.executions import Context
from schemas.outcomes import MayBeUnscorable, UnscorableReason, tell_both_ways
from schemas.verdicts import VerdictKind


class Reward(MayBeUnscorable, frozen=True, kw_only=True, tag="reward"):
    """The reward, or why there is none. Exactly one of `reward` and `unscorable` is set."""

    context: Context
    reward: float | None = None
    components: dict[str, float] = {}
    feedback: str = ""
    verdict: VerdictKind | None = None
    passed: int = 0
    tests: int = 0
    unscorable_words: str | None = msgspec.field(default=None, name="unscorable")

    def __post_init__(self) -> None:
        tell_both_ways(self, self.unscorable, "unscorable_words", UnscorableReason.OTHER)
