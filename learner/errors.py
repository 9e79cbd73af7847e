"""What stops the learner. Each message says what to do.

LearnerError
├── Superseded           a learner of a higher incarnation has started: this one must stop
├── NonFiniteWeights     a step left NaN or Inf in the weights; nothing of it was kept or published
├── TooManySkippedSteps  one non-finite step after another: training cannot go on by itself
├── CheckpointError      a checkpoint that cannot be used with this run
├── CompilerMissing      DeepSpeed builds a small operator at its first start and cannot
├── UnsupportedModel     no model to train: weights are missing, or its logits are made in an unknown form
└── LedgerDamaged        ledger.jsonl has fewer lines than the checkpoint says, or a line that is no line
"""

from typing import ClassVar


class LearnerError(Exception):
    """The learner cannot go on."""

    restart_helps: ClassVar[bool] = True
    """False: the same would happen again, so that a supervisor starts the role no more."""


class Superseded(LearnerError):
    """A higher incarnation exists (invariant 5)."""

    restart_helps = False


class NonFiniteWeights(LearnerError):
    """Invariant 13: never checkpointed, never published."""


class TooManySkippedSteps(LearnerError):
    """Every one of the last updates was skipped as non-finite."""

    restart_helps = False


class CheckpointError(LearnerError):
    """The checkpoint is of another run, or of another shape."""

    restart_helps = False


class CompilerMissing(LearnerError):
    """No C++ compiler or no ninja."""

    restart_helps = False


class UnsupportedModel(LearnerError):
    """No causal model, not all of it, or one whose log-probs are not what its hidden states give."""

    restart_helps = False


class LedgerDamaged(LearnerError):
    """The ledger and the checkpoint contradict each other."""

    restart_helps = False
