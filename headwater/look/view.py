"""What is to be seen of a run at one moment: plain values, for the live screen, plain lines and `status --json`."""

from dataclasses import dataclass, field

from headwater.look.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """One topic and who reads it."""

    topic: str
    reader: str
    """The role whose consumer group reads it; empty where nobody commits."""
    total: int = 0
    """Events ever written to it in this log."""
    rate: float = 0.0
    """Events a second, lately."""
    lag: int | None = None
    """Events written and not yet committed by the reader; None: unknown."""
    oldest_seconds: float | None = None
    """Age of the oldest of those."""
    retention_seconds: int | None = None

    @property
    def alarm(self) -> bool:
        """The oldest unread event is older than half of what the topic keeps."""
        return (
            self.retention_seconds is not None
            and self.oldest_seconds is not None
            and self.oldest_seconds > self.retention_seconds / 2
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainView:
    """Rewards of one domain, of the most recent answers."""

    mean_reward: float
    pass_share: float
    """Answers with every test passed."""
    answers: int
    """Scorable answers ever."""
    unscorable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """One sampled answer and what was found."""

    domain: str
    prompt: str
    text: str
    verdict: str
    reward: float | None
    feedback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerView:
    """The newest update."""

    policy_version: str = ""
    """Empty until the learner has published its first."""
    update: int = 0
    max_updates: int | None = None
    staleness_max: float | None = None
    """Updates, of the newest batch."""
    step_seconds: float | None = None
    wait_seconds: float | None = None
    loss: float | None = None
    rewards: tuple[float, ...] = ()
    """Mean reward of each update so far."""
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    outstanding: int | None = None
    """Admitted train groups that have not ended."""
    closing: bool = False
    publish_kl: float | None = None
    """KL(published ‖ trained policy), nats, of the newest snapshot that was measured."""
    warnings: tuple[str, ...] = ()
    """What the learner said of its newest update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Everything on the screen."""

    run: str
    phase: str = ""
    elapsed_seconds: float = 0.0
    bootstrap: str = ""
    stages: tuple[StageView, ...] = ()
    domains: dict[str, DomainView] = field(default_factory=dict[str, DomainView])
    learner: LearnerView = LearnerView()
    estimate: Estimate | None = None
    """While the run trains."""
    last_answer: AnswerView | None = None
    dead_letters: int = 0
    restarts: dict[str, int] = field(default_factory=dict[str, int])
    shortage: str = ""
    """Why nothing is admitted, where the broker's disk is too full; empty: there is room."""
    notes: tuple[str, ...] = ()
    """The newest of what a person should know."""
