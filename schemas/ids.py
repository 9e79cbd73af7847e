"""Ids as pure functions: an event handled twice gives the same ids both times (invariant 2)."""

import hashlib

from schemas.rollouts import TokenSpan


def _hash(*parts: str | int) -> str:
    joined = "\x1f".join(str(part) for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:32]


def prompt_id(log_id: str, topic: str, partition: int, offset: int) -> str:
    """The id of a prompt that came without one."""
    return _hash("prompt", log_id, topic, partition, offset)


def group_id(run_id: str, domain: str, prompt_id: str, epoch: int) -> str:
    """One group a (run, domain, prompt, epoch)."""
    return _hash("group", run_id, domain, prompt_id, epoch)


def rollout_id(group_id: str, sample_index: int) -> str:
    """The same for every attempt at this sample."""
    return f"{group_id}-{sample_index}"


def execution_id(rollout_id: str, digest: str) -> str:
    """Other tokens are another execution."""
    return _hash("execution", rollout_id, digest)


def rollout_digest(spans: tuple[TokenSpan, ...], text: str) -> str:
    """Digest of what was sampled: token ids, log-probs, versions and text."""
    content = hashlib.sha256()
    for span in spans:
        content.update(f"{span.trainable} {span.policy_version} {len(span.token_ids)} {len(span.logprobs)}\n".encode())
        content.update(span.token_ids)
        content.update(span.logprobs)
    content.update(text.encode("utf-8", "surrogatepass"))
    return content.hexdigest()[:32]
