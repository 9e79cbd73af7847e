"""One rollout's reward."""

from schemas.base import Event
from schemas.executions import Context
from schemas.verdicts import VerdictKind


class Reward(Event, frozen=True, kw_only=True, tag="reward"):
    """The reward, or why there is none. Exactly one of `reward` and `unscorable` is set."""

    context: Context
    reward: float | None = None
    components: dict[str, float] = {}
    feedback: str = ""
    verdict: VerdictKind | None = None
    passed: int = 0
    tests: int = 0
    unscorable: str | None = None
