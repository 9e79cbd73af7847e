"""From a RunView to what a person sees: a screen for a terminal, a line for a log. Pure."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from headwater.look.view import AnswerView, LearnerView, RunView, StageView

_BARS = "▁▂▃▄▅▆▇█"
_MAX_ANSWER_LINES = 12


def screen(view: RunView) -> RenderableType:
    """The whole live screen, at most some 40 lines high."""
    columns = Table.grid(expand=True, padding=(0, 2))
    columns.add_column(ratio=3)
    columns.add_column(ratio=2)
    columns.add_row(_stages(view), Group(_learner(view), Text(), _domains(view)))
    parts: list[RenderableType] = [_header(view), columns]
    if view.last_answer is not None:
        parts.append(_answer(view.last_answer))
    said = [*(f"learner: {warning}" for warning in view.learner.warnings), *view.notes[-3:]]
    if view.shortage:
        parts.append(Text(view.shortage, style="red"))
    parts += [Text.from_markup(f"[yellow]{escape(note)}[/]") for note in said]
    return Group(*parts)


def line(view: RunView) -> str:
    """The same in one line of plain text."""
    learner = view.learner
    parts = [f"{clock(view.elapsed_seconds)} {view.phase or 'running'}", f"update {_updates(learner)}"]
    if learner.rewards:
        parts.append(f"reward {learner.rewards[-1]:+.2f}")
    parts += [
        f"{name}: {domain.mean_reward:+.2f}, {domain.pass_share:.0%} pass of {domain.answers}"
        for name, domain in sorted(view.domains.items())
    ]
    if learner.staleness_max is not None:
        parts.append(f"staleness {learner.staleness_max:.0f}")
    if learner.step_seconds is not None:
        parts.append(f"step {learner.step_seconds:.1f} s")
    if learner.outstanding is not None:
        parts.append(f"{learner.outstanding} groups open")
    waiting = [f"{stage.topic} {stage.lag}" for stage in view.stages if stage.lag]
    if waiting:
        parts.append("waiting: " + ", ".join(waiting))
    if left := _left(view):
        parts.append(f"ends in {left}")
    if view.dead_letters:
        parts.append(f"{view.dead_letters} dead letters")
    parts += [f"learner: {warning}" for warning in learner.warnings]
    parts += [view.shortage] if view.shortage else []
    return " · ".join(parts)


def clock(seconds: float) -> str:
    """h:mm:ss, or m:ss below an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def headline(prompt: str, width: int = 110) -> str:
    """The words of a prompt in one line, without code fences."""
    words = " ".join(line.strip() for line in prompt.splitlines() if line.strip() and not line.startswith("```"))
    return words if len(words) <= width else words[: width - 1] + "…"


def age(seconds: float | None) -> str:
    """A duration in its largest fitting unit."""
    if seconds is None:
        return "–"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def sparkline(values: tuple[float, ...], low: float = -1.0, high: float = 1.0, width: int = 40) -> str:
    """The newest `width` values as bars between `low` and `high`."""
    scale = (len(_BARS) - 1) / (high - low)
    return "".join(_BARS[round((min(max(value, low), high) - low) * scale)] for value in values[-width:])


def _header(view: RunView) -> RenderableType:
    text = Text.assemble(("headwater ", "bold cyan"), (view.run, "bold"))
    if view.phase:
        text.append(f"  {view.phase}", "green")
    text.append(f"  {clock(view.elapsed_seconds)}")
    if view.bootstrap:
        text.append(f"  broker {view.bootstrap}", "dim")
    if view.dead_letters:
        text.append(f"  {view.dead_letters} dead letters", "red")
    for role, count in sorted(view.restarts.items()):
        text.append(f"  {role} restarted {count}×", "yellow")
    return text


def _left(view: RunView) -> str:
    """How long the run will take, and where it will end if not with its last update."""
    coming, learner = view.estimate, view.learner
    if coming is None:
        return ""
    early = learner.max_updates is not None and coming.updates < learner.max_updates
    by_time = f" (by time, at update {coming.updates})" if early else ""
    return f"about {age(coming.seconds)}{by_time}"


def _stages(view: RunView) -> RenderableType:
    table = Table(title="the path of a rollout", title_justify="left", title_style="dim", expand=True, box=None)
    table.add_column("topic")
    table.add_column("read by", style="dim")
    names = ["events", "a second", "waiting"]
    if any(stage.oldest_seconds is not None for stage in view.stages):
        names.append("oldest")
    for name in names:
        table.add_column(name, justify="right")
    for stage in view.stages:
        table.add_row(*_stage_cells(stage)[: 2 + len(names)], style="red" if stage.alarm else None)
    return table


def _stage_cells(stage: StageView) -> list[str]:
    lag = "–" if stage.lag is None else str(stage.lag)
    return [stage.topic, stage.reader or "–", str(stage.total), f"{stage.rate:.1f}", lag, age(stage.oldest_seconds)]


def _learner(view: RunView) -> RenderableType:
    learner = view.learner
    table = Table(title="learner", title_justify="left", title_style="dim", box=None, show_header=False)
    table.add_row("policy version", learner.policy_version or "none yet: the learner is starting")
    table.add_row("update", _updates(learner) + (" (closing)" if learner.closing else ""))
    if left := _left(view):
        table.add_row("ends in", left)
    if learner.rewards:
        table.add_row("reward an update", f"{learner.rewards[-1]:+.2f} [cyan]{sparkline(learner.rewards)}[/]")
    if learner.step_seconds is not None:
        waited = "" if learner.wait_seconds is None else f", waited {learner.wait_seconds:.1f} s"
        table.add_row("step", f"{learner.step_seconds:.1f} s{waited}")
    if learner.staleness_max is not None:
        table.add_row("staleness", f"{learner.staleness_max:.0f} updates at most")
    if learner.publish_kl is not None:
        table.add_row("published", f"KL to what was trained {learner.publish_kl:.1e} nats")
    if learner.outstanding is not None:
        table.add_row("groups open", str(learner.outstanding))
    ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(learner.outcomes.items()))
    if ended:
        table.add_row("groups ended", ended)
    return table


def _domains(view: RunView) -> RenderableType:
    table = Table(title="rewards, lately", title_justify="left", title_style="dim", box=None)
    table.add_column("domain")
    for name in ("mean", "pass", "answers"):
        table.add_column(name, justify="right")
    for name, domain in sorted(view.domains.items()):
        missing = f" (+{domain.unscorable} unscorable)" if domain.unscorable else ""
        table.add_row(name, f"{domain.mean_reward:+.2f}", f"{domain.pass_share:.0%}", f"{domain.answers}{missing}")
    return table


def _answer(answer: AnswerView) -> RenderableType:
    lines = answer.text.strip().splitlines()
    shown = "\n".join(lines[:_MAX_ANSWER_LINES]) + ("\n…" if len(lines) > _MAX_ANSWER_LINES else "")
    reward = "unscorable" if answer.reward is None else f"{answer.reward:+.2f}"
    style = "green" if answer.reward == 1.0 else "yellow" if (answer.reward or -1.0) > 0 else "red"
    parts: list[RenderableType] = []
    if answer.prompt:
        parts.append(Text(headline(answer.prompt), style="italic"))
    parts.append(Syntax(shown or "(empty)", "markdown", background_color="default", word_wrap=True))
    if answer.feedback:
        parts.append(Text("\n".join(answer.feedback.strip().splitlines()[:3]), style="dim"))
    title = f"last answer · {escape(answer.domain)} · [{style}]{escape(answer.verdict)} {reward}[/]"
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim")


def _updates(learner: LearnerView) -> str:
    return f"{learner.update}" + (f"/{learner.max_updates}" if learner.max_updates else "")
