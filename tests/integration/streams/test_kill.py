"""The whole path, prompts to trajectories, while every role is killed with -9 (invariants 1-3)."""

import asyncio
from contextlib import suppress
from pathlib import Path

from sandbox.jail.host import probe
from schemas import FunctionGrader, FunctionTest, Generation, Message, Prompt, Purpose, Reward, Trajectory
from tests.integration.streams.events import Window, eventually, prompt, window, writer
from tests.integration.streams.processes import Learner, roles
from tests.integration.streams.role import BATCH_GROUPS, ROLES
from wire.kafka.committed_offsets import CommittedOffsets
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import declare_domain

PROMPTS, CODE_PROMPTS, EVALUATIONS = 60, 12, 6
END_SECONDS = 120.0
GROUPED = {
    "rollout": ("generations",),
    "dispatch": ("rollouts",),
    "sandbox": ("executions",),
    "reward": ("verdicts",),
    "collect": ("generations", "rollouts", "rewards"),
}


async def test_every_group_ends_once_whoever_is_killed(kafka: KafkaSettings, tmp_path: Path) -> None:
    judged = probe().problem is None
    names = [name for name in ROLES if judged or name != "sandbox"]
    await declare_domain(kafka, "code")
    async with (
        window(kafka, "trajectories") as trajectories,
        window(kafka, "generations", "rewards", "evaluations", "dead-letters") as log,
        writer(kafka) as user,
        roles(kafka, tmp_path, names) as running,
    ):
        learner = Learner(kafka, tmp_path, trajectories)
        learning = asyncio.create_task(learner.run())
        await user.send_all([prompt(f"p{i}") for i in range(PROMPTS)])
        await user.send_all([code(i) for i in range(CODE_PROMPTS if judged else 0)])
        await user.send_all([prompt(f"e{i}", purpose=Purpose.EVALUATE) for i in range(EVALUATIONS)])
        await eventually(lambda: has(len(learner.ends) >= BATCH_GROUPS), END_SECONDS)
        for name in names:
            await running.kill(name)
            await running.start(name)
            await asyncio.sleep(0.5)  # so that each is killed while the one before comes back
        total = PROMPTS + (CODE_PROMPTS if judged else 0)
        await eventually(lambda: has(len(learner.ends) >= total or learning.done()), END_SECONDS)
        await log.until(lambda log: len(evaluated(log)) == EVALUATIONS)
        await user.send_all([prompt("p0"), prompt("last")])  # one seen before
        await eventually(lambda: has(len(learner.ends) > total or learning.done()), END_SECONDS)
        await log.quiet(1)
        for name in names:
            if name in GROUPED:
                await eventually(lambda name=name: nothing_left(kafka, name), END_SECONDS)
        learning.cancel()
        with suppress(asyncio.CancelledError):
            await learning

    generations = log.of(Generation)
    train = [event for event in generations if event.purpose == Purpose.TRAIN]
    assert len({event.group_id for event in generations}) == len(generations)
    assert sorted(event.admission_number for event in train) == list(range(total + 1))
    assert learner.ends.keys() == set(range(total + 1))
    for ends in learner.ends.values():
        # nothing was lost on the way, and a second end is the first again
        assert {type(end) for end in ends} == {Trajectory}, ends
        assert len({tuple(member.digest for member in end.members) for end in ends}) == 1  # pyright: ignore
        assert [member.reward for member in ends[0].members] in ([1.0, 0.0], [1.0, -1.0])  # pyright: ignore
    assert {event.unscorable for event in log.of(Reward)} == {None}
    assert [record for record in log.records if record.topic == "dead-letters"] == []


def code(number: int) -> Outgoing:
    grader = FunctionGrader(
        entry_point="double", tests=tuple(FunctionTest.of([value], 2 * value) for value in (1, 2, 5 + number))
    )
    name = f"code{number}"
    event = Prompt(
        id=name, domain="code", messages=(Message(role="user", content="code"),), grader=grader, group_size=2
    )
    return Outgoing("prompts.code", name, event)


def evaluated(log: Window) -> set[str | None]:
    return {record.key for record in log.records if record.topic == "evaluations"}


async def has(fact: bool) -> bool:
    return fact


async def nothing_left(settings: KafkaSettings, name: str) -> bool:
    """Whether the consumer group has committed everything: no floor, and no event in flight, is left over."""
    async with CommittedOffsets(settings, name) as offsets, LogReader(settings) as reader:
        for topic in GROUPED[name]:
            for number in range(4):
                end = await reader.end_offset(topic, number)
                # a transaction ends with a marker, which is never delivered
                marker = topic == "generations"
                committed = await offsets.read((topic, number)) or 0
                if end and not end - marker <= committed <= end:
                    return False
    return True
