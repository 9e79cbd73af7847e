"""Whether sampler, snapshots and learner compute with the same numbers: asked before anything starts."""

from learner.config import DtypeChoice, Training


def check_dtypes(training: Training, sampler: DtypeChoice) -> list[str]:
    """Sentences on what a run with these types must expect; none where all three are the same.

    Raises ValueError where the sampler would round what was trained, without anybody having asked for it.
    """
    trained, published = training.dtype, training.snapshot_dtype
    if "auto" in (trained, sampler):
        return []  # one type is chosen for both
    if (published, sampler) == ("float32", "bfloat16"):
        raise ValueError(
            "engine.dtype is bfloat16, but snapshots are float32: the sampler would round small steps away, and stay "
            "at the base model. Set engine.dtype to float32, or have the learner round with care: "
            'training.publish_dtype = "bfloat16"'
        )
    warnings: list[str] = []
    if (trained, published) == ("float32", "bfloat16"):
        warnings.append(
            "training.publish_dtype rounds what is trained in float32: the sampler sees a small step in a few per cent "
            "of the weights' entries; metrics.jsonl says in how many (published_changed) and how far that is from what "
            "was trained (publish_kl)"
        )
    if (trained, published) == ("bfloat16", "float32"):
        warnings.append("training.publish_dtype doubles the bytes of bfloat16 weights and adds nothing to them")
    if sampler != trained:
        warnings.append(
            f"the sampler computes in {sampler} what the learner computes in {trained}: their log-probs differ by some "
            "hundredths of a nat"
        )
    return warnings
