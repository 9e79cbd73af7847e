"""What stops the learner. Each message says what to do.

LearnerError
├── Superseded           a learner of a higher incarnation has started: this one must stop
├── NonFiniteWeights     a step left NaN or Inf in the weights; nothing of it was kept or published
├── TooManySkippedSteps  one non-finite step after another: training cannot go on by itself
├── CheckpointError      a checkpoint that cannot be used with this run
├── CompilerMissing      DeepSpeed builds a small operator at its first start and cannot
├── UnsupportedModel     the model's logits are not what hidden states times the output embedding give
└── LedgerDamaged        ledger.jsonl has fewer lines than the checkpoint says, or a line that is no line
"""


class LearnerError(Exception):
    """The learner cannot go on."""


class Superseded(LearnerError):
    """A higher incarnation exists (invariant 5)."""


class NonFiniteWeights(LearnerError):
    """Invariant 13: never checkpointed, never published."""


class TooManySkippedSteps(LearnerError):
    """Every one of the last updates was skipped as non-finite."""


class CheckpointError(LearnerError):
    """The checkpoint is of another run, or of another shape."""


class CompilerMissing(LearnerError):
    """No C++ compiler or no ninja."""


class UnsupportedModel(LearnerError):
    """The chunked log-probs differ from the model's own."""


class LedgerDamaged(LearnerError):
    """The ledger and the checkpoint contradict each other."""
