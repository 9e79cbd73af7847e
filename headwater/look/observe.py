"""Looks at a run from outside, as any user may: topics, /metrics, and the learner's metrics file. Builds a RunView."""

import asyncio
import json
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwater.config.run_config import RunConfig
from headwater.files.phases import BEFORE, TRAINING, read_phases, seconds_in
from headwater.files.run_directory import RunDirectory
from headwater.look.estimate import Estimate, estimate
from headwater.look.scrape import Sample, scrape, total
from headwater.look.view import AnswerView, DomainView, LearnerView, RunView, StageView
from schemas import Event, Generation, Progress, Purpose, Reward, Rollout, WeightUpdate
from schemas.topics import DEAD_LETTERS, PATH, PROMPTS_PREFIX, first_reader, topic_spec
from wire.kafka.disk import LOOK_SECONDS, read_shortage
from wire.kafka.events import glance
from wire.kafka.reading import EndOffsets, end_offsets
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import existing_topics

_FOLLOWED = ("generations", "rollouts", "rewards", "weights", "progress", "dead-letters")
_RECENT_ANSWERS = 64
_TOPICS_SECONDS = 10.0
_REMEMBERED = 512
"""Prompts and answers kept to show beside a reward that comes later."""


@dataclass(slots=True)
class _Domain:
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=_RECENT_ANSWERS))
    answers: int = 0
    unscorable: int = 0


class Observer:
    """Use as `async with`; call `view` every second or two."""

    def __init__(self, settings: KafkaSettings, directory: RunDirectory, config: RunConfig) -> None:
        self._settings = settings
        self._directory = directory
        self._config = config
        self._resources = AsyncExitStack()
        self._rates: dict[str, tuple[float, int, float]] = {}
        self._domains: dict[str, _Domain] = defaultdict(_Domain)
        self._prompts: OrderedDict[str, str] = OrderedDict()
        self._answers: OrderedDict[tuple[str, int], str] = OrderedDict()
        self._last_answer: AnswerView | None = None
        self._progress: Progress | None = None
        self._weights: WeightUpdate | None = None
        self._dead_letters = 0
        self._started = time.monotonic()
        self._topics: dict[str, int] = {}
        self._topics_until = 0.0
        self._disk_shortage = ""
        self._disk_until = 0.0

    async def __aenter__(self) -> Self:
        start = await end_offsets(self._settings, _FOLLOWED)
        self._tail = await self._resources.enter_async_context(Tail(self._settings, start))
        self._ends = await self._resources.enter_async_context(EndOffsets(self._settings))
        self._following = asyncio.create_task(self._follow(), name="observer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._following.cancel()
        await asyncio.wait([self._following])
        await self._resources.aclose()

    async def view(self, *, phase: str, restarts: Mapping[str, int], notes: tuple[str, ...]) -> RunView:
        """What is to be seen now. Raises WireError when the broker has gone."""
        if self._following.done():
            self._following.result()  # raises what ended it
        samples = await scrape(self._directory.logs)
        return RunView(
            run=self._directory.name,
            phase=phase,
            elapsed_seconds=time.monotonic() - self._started,
            bootstrap=self._settings.bootstrap,
            stages=await self._stages(samples),
            domains={
                name: DomainView(
                    mean_reward=sum(domain.recent) / len(domain.recent) if domain.recent else 0.0,
                    pass_share=sum(reward >= 1.0 for reward in domain.recent) / max(1, len(domain.recent)),
                    answers=domain.answers,
                    unscorable=domain.unscorable,
                )
                for name, domain in self._domains.items()
            },
            learner=self._learner(samples, updates := read_updates(self._directory.metrics)),
            estimate=self._estimate(updates) if phase == TRAINING else None,
            last_answer=self._last_answer,
            dead_letters=self._dead_letters,
            shortage=await self._shortage(),
            restarts=dict(restarts),
            notes=notes,
        )

    async def _follow(self) -> None:
        while True:
            for record in await self._tail.poll():
                if record.topic == DEAD_LETTERS.name:
                    self._dead_letters += 1
                    continue
                self._take(glance(record, topic_spec(record.topic)))

    def _take(self, event: Event | None) -> None:
        if isinstance(event, Generation):
            _remember(self._prompts, event.group_id, event.messages[-1].content if event.messages else "")
        elif isinstance(event, Rollout):
            _remember(self._answers, (event.group_id, event.sample_index), event.text)
        elif isinstance(event, Reward):
            self._take_reward(event)
        elif isinstance(event, Progress):
            self._progress = event
        elif isinstance(event, WeightUpdate):
            self._weights = event

    def _take_reward(self, reward: Reward) -> None:
        context = reward.context
        domain = self._domains[_shown_domain(reward)]
        if reward.reward is None:
            domain.unscorable += 1
        else:
            domain.answers += 1
            domain.recent.append(reward.reward)
        text = self._answers.pop((context.group_id, context.sample_index), None)
        if text is not None:
            verdict = reward.unscorable_words or (reward.verdict.value if reward.verdict else "")
            self._last_answer = AnswerView(
                domain=context.domain,
                prompt=self._prompts.get(context.group_id, ""),
                text=text,
                verdict=verdict,
                reward=reward.reward,
                feedback=reward.feedback,
            )

    async def _stages(self, samples: list[Sample]) -> tuple[StageView, ...]:
        existing = await self._existing()
        prompts = sorted(topic for topic in existing if topic.startswith(PROMPTS_PREFIX))
        shown = [topic for topic in (*prompts, *(spec.name for spec in PATH)) if topic in existing]
        places: list[Place] = [(topic, number) for topic in shown for number in range(existing[topic])]
        totals: dict[str, int] = defaultdict(int)
        for (topic, _), end in (await self._ends.of(places)).items():
            totals[topic] += end
        return tuple(self._stage(topic, totals[topic], samples) for topic in shown)

    async def _existing(self) -> dict[str, int]:
        """Topics change seldom, so they are asked for seldom."""
        now = time.monotonic()
        if now > self._topics_until:
            self._topics = await existing_topics(self._settings)
            self._topics_until = now + _TOPICS_SECONDS
        return self._topics

    async def _shortage(self) -> str:
        """As the scheduler has it, and looked at as often as it does."""
        now = time.monotonic()
        if now > self._disk_until:
            self._disk_shortage = await read_shortage(self._settings, self._config.broker.min_free_bytes)
            self._disk_until = now + LOOK_SECONDS
        return self._disk_shortage

    def _stage(self, topic: str, events: int, samples: list[Sample]) -> StageView:
        reader = first_reader(topic)
        lag = total(samples, "headwater_consumer_lag_events", hop=reader, topic=topic)
        now = time.monotonic()
        before, events_before, rate = self._rates.get(topic, (now, events, 0.0))
        if now > before:
            rate = 0.7 * rate + 0.3 * (events - events_before) / (now - before)
        self._rates[topic] = (now, events, rate)
        return StageView(topic=topic, reader=reader, total=events, rate=rate, lag=None if lag is None else int(lag))

    def _estimate(self, updates: list[dict[str, Any]]) -> Estimate | None:
        """The evaluation after training takes about as long as the one before."""
        training = self._config.training
        again = self._config.evaluation.before_and_after
        return estimate(
            updates,
            max_updates=training.max_updates,
            max_seconds=training.max_seconds,
            evaluation_seconds=seconds_in(read_phases(self._directory.phases), BEFORE) if again else 0.0,
            now=time.time(),
        )

    def _learner(self, samples: list[Sample], lines: list[dict[str, Any]]) -> LearnerView:
        newest: dict[str, Any] = lines[-1] if lines else {}
        seconds = newest.get("seconds", {})
        outstanding = total(samples, "headwater_groups_outstanding")
        progress, weights = self._progress, self._weights
        return LearnerView(
            policy_version=f"{weights.incarnation}.{weights.version}" if weights else "",
            update=progress.version if progress else newest.get("version", 0),
            max_updates=self._config.training.max_updates,
            staleness_max=newest.get("staleness_max"),
            step_seconds=seconds.get("step"),
            wait_seconds=seconds.get("wait"),
            loss=newest.get("loss"),
            rewards=tuple(line.get("reward_mean") or 0.0 for line in lines),
            outcomes=progress.outcomes if progress else {},
            outstanding=None if outstanding is None else int(outstanding),
            closing=bool(progress and progress.closing),
            publish_kl=newest.get("publish_kl"),
            warnings=tuple(newest.get("warnings", ())),
        )


def read_updates(path: Path) -> list[dict[str, Any]]:
    """The surviving lineage of `metrics.jsonl`: of a version that was rolled back, the higher incarnation's line."""
    if not path.exists():
        return []
    surviving: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:  # being written, or cut off by a crash
            continue
        if surviving and line["incarnation"] > surviving[-1]["incarnation"]:
            while surviving and surviving[-1]["version"] >= line["version"]:
                surviving.pop()
        surviving.append(line)
    return surviving


def _shown_domain(reward: Reward) -> str:
    if reward.purpose == Purpose.TRAIN:
        return reward.context.domain
    return f"{reward.context.domain} ({reward.purpose.value})"


def _remember[K](kept: OrderedDict[K, str], key: K, text: str) -> None:
    kept[key] = text
    while len(kept) > _REMEMBERED:
        kept.popitem(last=False)
