"""The report's pictures: one file, one row a question."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

LEARNER_STAGES = ("wait", "step", "publish", "checkpoint")
_COLOURS = {"wait": "#c9c9c9", "step": "#2a6f97", "publish": "#e09f3e", "checkpoint": "#9e2a2b"}


def plot_run(updates: Sequence[dict[str, Any]], before_and_after: dict[str, tuple[float, float]], path: Path) -> None:
    """Reward, pass rate, length, KL, staleness and stage times over updates, as PNG.

    `before_and_after`: held-out figures by name, drawn beside the curves.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    versions = [update["version"] for update in updates]
    figure, axes = pyplot.subplots(2, 3, figsize=(15, 8), layout="constrained")
    reward, length, kl, staleness, stages, held_out = axes.flat
    _curve(reward, versions, [u["reward_mean"] for u in updates], "mean reward of the batch", low=-1.05, high=1.05)
    for name in sorted({domain for u in updates for domain in u["reward_mean_by_domain"]}):
        of_domain = [u["reward_mean_by_domain"].get(name) for u in updates]
        reward.plot(versions, of_domain, linewidth=1, alpha=0.6, label=name)
    reward.legend(loc="lower right", fontsize=8)
    _curve(length, versions, [u["completion_tokens_mean"] for u in updates], "completion tokens, mean", low=0)
    _curve(kl, versions, [u["kl"] for u in updates], "KL of sampler and trainer (k3), nats a token")
    _curve(staleness, versions, [u["staleness_max"] for u in updates], "staleness, updates (oldest, mean)", low=-0.1)
    staleness.plot(versions, [u["staleness_mean"] for u in updates], linestyle="--", color="#555555")
    bottom = [0.0] * len(updates)
    for stage in LEARNER_STAGES:
        seconds = [u["seconds"].get(stage, 0.0) for u in updates]
        stages.bar(versions, seconds, bottom=bottom, label=stage, color=_COLOURS[stage])
        bottom = [low + high for low, high in zip(bottom, seconds, strict=True)]
    stages.set_title("where the learner's time went, seconds", fontsize=10)
    stages.legend(fontsize=8)
    for place, (first, last) in enumerate(before_and_after.values()):
        held_out.bar([place - 0.2, place + 0.2], [first, last], width=0.38, color=["#b8b8b8", "#2a9d8f"])
        for x, value in ((place - 0.2, first), (place + 0.2, last)):
            held_out.annotate(f"{value:.2f}", (x, value), ha="center", va="bottom" if value >= 0 else "top", fontsize=8)
    held_out.set_xticks(
        range(len(before_and_after)), [name.replace(" ", "\n") for name in before_and_after], fontsize=8
    )
    held_out.axhline(0, color="black", linewidth=0.6)
    values = [value for pair in before_and_after.values() for value in pair]
    held_out.set_ylim(min([-0.1, *values]) - 0.12, max([1.0, *values]) + 0.12)
    held_out.set_title("held out, before (grey) and after (green)", fontsize=10)
    for axis in (reward, length, kl, staleness, stages):
        axis.set_xlabel("update", fontsize=9)
        axis.grid(alpha=0.25)
        axis.ticklabel_format(axis="y", useOffset=False)
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _curve(
    axis: Any,
    versions: list[int],
    values: list[float | None],
    title: str,
    low: float | None = None,
    high: float | None = None,
) -> None:
    axis.plot(versions, values, color="#2a6f97", linewidth=2, marker="o", markersize=3)
    axis.set_title(title, fontsize=10)
    if low is not None:
        top = high if high is not None else max([value for value in values if value is not None], default=1.0) * 1.15
        axis.set_ylim(low, max(top, low + 0.2))
