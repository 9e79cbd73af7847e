"""What a stranger sees: everything of the view stands on the screen and nothing breaks it."""

from dataclasses import replace

from rich.console import Console

from headwater.look.estimate import Estimate
from headwater.look.live import age, clock, line, screen, sparkline
from headwater.look.view import AnswerView, DomainView, LearnerView, RunView, StageView

VIEW = RunView(
    run="demo",
    phase="training",
    elapsed_seconds=252,
    bootstrap="127.0.0.1:9092",
    stages=(
        StageView(topic="prompts.functions", reader="scheduler", total=512, rate=0, lag=408, oldest_seconds=251),
        StageView(topic="generations", reader="rollout", total=104, rate=0.4, lag=2, oldest_seconds=3),
        StageView(topic="rollouts", reader="dispatch", total=820, rate=3.2, lag=0),
    ),
    domains={"functions": DomainView(mean_reward=0.21, pass_share=0.44, answers=812, unscorable=1)},
    learner=LearnerView(
        policy_version="1.9",
        update=9,
        max_updates=20,
        staleness_max=1,
        step_seconds=21.4,
        wait_seconds=2.0,
        loss=0.01,
        rewards=(-0.5, -0.4, -0.1, 0.1, 0.2),
        outcomes={"trained": 72, "zero_spread": 9},
        outstanding=23,
        publish_kl=3.2e-3,
        warnings=("what is sampled with is not what was trained",),
    ),
    last_answer=AnswerView(
        domain="functions",
        prompt="Write a Python function `f(x)` that returns x plus 3.",
        text="```python\ndef f(x):\n    return x + [3]\n```",
        verdict="runtime_error",
        reward=0.0,
        feedback="Passed 0/8 tests.",
    ),
    estimate=Estimate(seconds=340.0, updates=13),
    dead_letters=2,
    restarts={"sandbox": 1},
    notes=("sandbox ended (killed by SIGKILL) and was started again",),
)


def shown(view: RunView, width: int = 120) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115, PTH123
    with console.file:
        console.print(screen(view))
        return console.export_text()


def test_everything_is_on_the_screen() -> None:
    text = shown(VIEW)
    for words in (
        "demo", "training", "4:12", "prompts.functions", "scheduler", "408", "3.2", "1.9", "9/20", "21.4 s", "+0.21",
        "44%", "x + [3]", "runtime_error", "Passed 0/8 tests.", "2 dead letters", "sandbox restarted 1×", "72 trained",
        "3.2e-03 nats", "learner: what is sampled with is not", "ends in", "about 6 min (by time",
    ):  # fmt: skip
        assert words in text, words
    assert len(text.splitlines()) < 40


def test_the_screen_of_a_run_that_has_just_begun() -> None:
    assert "begun" in shown(RunView(run="begun"))


def test_markup_in_an_answer_is_text() -> None:
    assert VIEW.last_answer is not None
    text = shown(
        replace(VIEW, last_answer=replace(VIEW.last_answer, text="[/red] [bold]x", verdict="[x]", prompt="[/]"))
    )
    assert "[/red] [bold]x" in text


def test_a_narrow_terminal() -> None:
    assert "demo" in shown(VIEW, width=60)


def test_the_line_of_a_log() -> None:
    assert line(VIEW) == (
        "4:12 training · update 9/20 · reward +0.20 · functions: +0.21, 44% pass of 812 · staleness 1 · step 21.4 s · "
        "23 groups open · waiting: prompts.functions 408, generations 2 · ends in about 6 min (by time, at "
        "update 13) · 2 dead letters · learner: what is sampled with is not what was trained"
    )


def test_alarm_at_half_the_retention() -> None:
    assert StageView(topic="rollouts", reader="dispatch", oldest_seconds=51, retention_seconds=100).alarm
    assert not StageView(topic="rollouts", reader="dispatch", oldest_seconds=49, retention_seconds=100).alarm
    assert not StageView(topic="prompts.x", reader="scheduler", oldest_seconds=1e9).alarm


def test_small_words() -> None:
    assert (clock(59), clock(3700)) == ("0:59", "1:01:40")
    assert (age(None), age(5), age(300), age(8000)) == ("–", "5 s", "5 min", "2 h")
    assert sparkline((-1, 0, 1, 5)) == "▁▅██"


def test_a_full_disk_of_the_broker_is_why_nothing_goes_on() -> None:
    why = "the broker's disk has 0.32 GiB left"
    full = replace(VIEW, shortage=why)
    assert why in shown(full)
    assert why in line(full)
    assert why not in shown(VIEW) + line(VIEW)
