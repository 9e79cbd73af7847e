"""The client and the publishing commands on a real broker."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from headwater.client import Answer, Client
from headwater.errors import NotAnswered
from headwater.files.run_directory import RunDirectory
from headwater.look.observe import Observer
from headwater.look.status import read_status
from headwater.run.demo import demo_config
from headwater.run.stack import Stack
from schemas import EventTooLarge, ExactGrader, Message, Prompt, Purpose, Reward, SchemaError
from schemas.topics import prompts_topic
from tests.integration.headwater.conftest import headwater
from wire.kafka.reading import end_offsets, places_of, read_topics
from wire.kafka.settings import KafkaSettings

GRADER = ExactGrader(answer="42")


def prompt(number: int, **changes: Any) -> Prompt:
    settings: dict[str, Any] = {"id": f"p{number}", "domain": "sums", "grader": GRADER}
    settings["messages"] = (Message(role="user", content="?"),)
    return Prompt(**(settings | changes))


async def test_every_published_prompt_is_on_its_domains_topic(kafka: KafkaSettings) -> None:
    told: list[int] = []
    async with Client(settings=kafka) as client:
        assert await client.publish([prompt(n) for n in range(150)], on_sent=told.append) == 150
        assert await client.publish([prompt(1, domain="other")]) == 1
        on_topic = [event async for event in client.events(prompts_topic("sums"))]
    assert on_topic == [prompt(n) for n in range(150)]
    assert told == sorted(told)
    assert told[-1] == 150
    assert await places_of(kafka, ["prompts.other"]) == [("prompts.other", 0)]


async def test_a_prompt_may_be_a_mapping_as_in_json(kafka: KafkaSettings) -> None:
    plain = {"id": "p1", "domain": "sums", "messages": [{"role": "user", "content": "?"}]}
    grader = {"kind": "exact", "answer": "42"}
    async with Client(settings=kafka) as client:
        assert await client.publish([{**plain, "grader": grader}]) == 1
        with pytest.raises(SchemaError, match="did you mean `grader`"):
            await client.publish([{**plain, "gradr": grader}])
        assert [event async for event in client.events(prompts_topic("sums"))] == [prompt(1)]


async def test_a_prompt_that_is_too_large_is_refused_and_loses_nothing(kafka: KafkaSettings) -> None:
    huge = prompt(1, messages=(Message(role="user", content="x" * 5_000_000),))
    async with Client(settings=kafka) as client:
        await client.publish([prompt(0)])
        with pytest.raises(EventTooLarge):
            await client.publish([huge])
        await client.publish([prompt(2)])
        assert [event async for event in client.events(prompts_topic("sums"))] == [prompt(0), prompt(2)]


async def test_reading_from_the_end_sees_only_what_comes(kafka: KafkaSettings) -> None:
    async with Client(settings=kafka) as client:
        await client.publish([prompt(n) for n in range(70)])
        start = await end_offsets(kafka, ["prompts.sums"])
        await client.publish([prompt(70)])
        records = [record async for record in read_topics(kafka, ["prompts.sums"], start=start)]
    assert [record.offset for record in records if b"p70" in record.value] != []
    assert len(records) == 1


async def test_answers_are_scored_by_whoever_grades_on_the_broker(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with Stack(
        RunDirectory(tmp_path),
        settings=kafka,
        prefix=kafka.prefix,
        partitions=4,
        on_note=print,
    ) as stack:
        await stack.start_roles("dispatch", "reward")
        async with Client(settings=kafka) as client:
            answers = [Answer(id=f"a{n}", text=str(n), grader=GRADER) for n in range(40, 45)]
            async with asyncio.timeout(100):
                scored = {one.id: one.reward async for one in client.score(answers)}
                assert scored == {"a40": 0.0, "a41": 0.0, "a42": 1.0, "a43": 0.0, "a44": 0.0}
                again = {one.id: one.reward async for one in client.score(answers[:3])}
            rewards = [reward async for reward in client.rewards(purpose=Purpose.SCORE)]
        status = await read_status(kafka)
    assert again == {"a40": 0.0, "a41": 0.0, "a42": 1.0}
    assert len(rewards) == 8
    assert all(isinstance(reward, Reward) for reward in rewards)
    stages = {(stage.topic, stage.reader): stage for stage in status.stages}
    assert stages["rollouts", "dispatch"].total >= 8
    assert status.alarms == []
    json.dumps(status.as_json())


async def test_an_answer_that_nobody_grades_is_told(kafka: KafkaSettings) -> None:
    async with Client(settings=kafka) as client:
        with pytest.raises(NotAnswered, match="no reward for 1 answers"):
            async for _ in client.score([Answer(id="a", text="1", grader=GRADER)], timeout_seconds=1.0):
                pass


async def test_publish_refuses_with_file_and_line_and_counts(kafka: KafkaSettings, tmp_path: Path) -> None:
    good = {
        "domain": "sums",
        "messages": [{"role": "user", "content": "?"}],
        "grader": {"kind": "exact", "answer": "1"},
    }
    lines = [json.dumps({**good, "id": "a"}), "{", json.dumps({**good, "id": "b", "grader": {"kind": "exakt"}})]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    broker = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix)
    shown = await asyncio.to_thread(headwater, "publish", str(path), "--epochs", "2", "--shuffle", "1", *broker)
    assert shown.returncode == 1
    assert "3 prompts: 1 accepted, 2 refused × 2 epochs = 2 events" in shown.stdout
    assert f"{path}:2: " in shown.stderr
    assert f"{path}:3: " in shown.stderr
    assert "did you mean `exact`?" in shown.stderr
    async with Client(settings=kafka) as client:
        events = [event async for event in client.events(prompts_topic("sums"))]
    assert [event.epoch for event in events if isinstance(event, Prompt)] == [0, 1]


async def test_what_is_published_twice_is_said_and_sent_once(kafka: KafkaSettings, tmp_path: Path) -> None:
    good = {
        "domain": "sums",
        "messages": [{"role": "user", "content": "?"}],
        "grader": {"kind": "exact", "answer": "1"},
    }
    rows = [{**good, "id": "a"}, {**good, "id": "a", "epoch": 1}, {**good, "id": "b"}, good]
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("publish", str(path), "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix)
    # of two epochs, `a` has its second from the first row already
    first = await asyncio.to_thread(headwater, *arguments, "--epochs", "2")
    assert (first.returncode, "4 accepted, 0 refused × 2 epochs = 7 events" in first.stdout) == (0, True), first.stdout
    assert "1 were not sent: the log has their domain, id and epoch" in first.stdout
    second = await asyncio.to_thread(headwater, *arguments)
    assert (second.returncode, "3 were not sent" in second.stdout) == (0, True)
    async with Client(settings=kafka) as client:
        events = [event async for event in client.events(prompts_topic("sums"))]
    identities = sorted((event.id, event.epoch) for event in events if isinstance(event, Prompt) and event.id)
    assert (len(events), identities) == (8, [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)])


async def test_who_watches_a_run_sees_why_nothing_is_admitted(kafka: KafkaSettings, tmp_path: Path) -> None:
    """The scheduler says it in its log, which nobody reads: the screen of `up` has it too."""
    for least, shown in ((1 << 60, "nothing is admitted until there is more"), (1, "")):
        config = demo_config(model="m", seed=0, name="n", overrides=[f"broker.min_free_bytes={least}"])
        async with Observer(kafka, RunDirectory(tmp_path), config) as observer:
            view = await observer.view(phase="training", restarts={}, notes=())
        assert shown in view.shortage
        assert bool(shown) == bool(view.shortage)
