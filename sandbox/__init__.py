"""Runs untrusted programs in nsjail and judges them. Knows nothing of Kafka or torch; imports `schemas`.

Importing this package is cheap and needs no nsjail: `score` and `extract_program` are pure, and the
judging parts load when they are first used.
"""

from typing import TYPE_CHECKING, Any

from sandbox.errors import GraderFault, SandboxError, SandboxUnavailable
from sandbox.extraction.extract import extract_program
from sandbox.reward_rule import score

if TYPE_CHECKING:
    from sandbox.evaluate import execute_and_evaluate
    from sandbox.jail.host import HostReport, probe
    from sandbox.judge import Judge
    from sandbox.judgement import Judgement

_LATER = {
    "HostReport": "sandbox.jail.host",
    "Judge": "sandbox.judge",
    "Judgement": "sandbox.judgement",
    "execute_and_evaluate": "sandbox.evaluate",
    "probe": "sandbox.jail.host",
}

__all__ = [
    "GraderFault",
    "HostReport",
    "Judge",
    "Judgement",
    "SandboxError",
    "SandboxUnavailable",
    "execute_and_evaluate",
    "extract_program",
    "probe",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
