"""The Python client: publish prompts, read rewards, have answers scored.

async with Client("127.0.0.1:9092") as client:
    await client.publish(prompts)
    async for reward in client.rewards(follow=True):
        print(reward.context.prompt_id, reward.reward)
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec

from headwater.errors import NotAnswered
from schemas import (
    Event,
    ExternalGrader,
    Grader,
    GroupDropped,
    Prompt,
    Purpose,
    Reward,
    Rollout,
    SourceEnd,
    Task,
    Trajectory,
)
from schemas.ids import rollout_digest
from schemas.topics import EVALUATIONS, PROMPTS_PREFIX, REWARDS, ROLLOUTS, TopicSpec
from tasks.files.checked import check_prompt
from wire.kafka.events import glance
from wire.kafka.publisher import Publisher
from wire.kafka.reading import end_offsets, read_topics
from wire.kafka.records import Outgoing, Place
from wire.kafka.settings import KafkaSettings, from_environment
from wire.kafka.topics import declare_domain, declare_grader

QUIET_SECONDS = 900.0
"""Without a single evaluation group ending for so long, an evaluation is given up."""
_AT_ONCE = 64
"""Events on their way to the broker at one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that somebody has and wants graded."""

    id: str
    text: str
    """As a model would write it: the program in a fenced block, or alone."""
    grader: Grader
    domain: str = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What became of one answer: a reward, or why there is none."""

    id: str
    reward: float | None
    passed: int
    tests: int
    verdict: str | None
    feedback: str
    unscorable: str | None
    components: Mapping[str, float]


class Client:
    """A user's door to the stream. Use as `async with`; one instance may do several things at once.

    Raises BrokerUnreachable on entry when no broker answers.
    """

    def __init__(
        self, bootstrap: str | None = None, *, prefix: str | None = None, settings: KafkaSettings | None = None
    ) -> None:
        """`bootstrap` is host:port; security comes from HEADWATER_KAFKA_* or from `settings`, which says it all."""
        self.settings = settings or from_environment(bootstrap=bootstrap, prefix=prefix)
        self._publisher = Publisher(self.settings, writer="user")
        self._domains: set[str] = set()
        self._graders: set[str] = set()

    async def __aenter__(self) -> Self:
        await self._publisher.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._publisher.__aexit__(kind, error, trace)

    async def publish(
        self,
        prompts: Iterable[Prompt | SourceEnd | Mapping[str, Any]],
        *,
        on_sent: Callable[[int], None] | None = None,
    ) -> int:
        """Publish prompts to their domains' topics, which are declared if new. Returns how many the broker has.

        A mapping is a prompt as in JSON. `on_sent(total)` is called as they are answered for. Raises SchemaError
        (EventTooLarge among them) before anything of that chunk is sent.
        """
        sent = 0
        chunk: list[Outgoing] = []
        for given in prompts:
            prompt = check_prompt(msgspec.json.encode(given)) if isinstance(given, Mapping) else given
            if prompt.domain not in self._domains:
                await declare_domain(self.settings, prompt.domain)
                self._domains.add(prompt.domain)
            if isinstance(prompt, Prompt):
                await self._declare_grader(prompt.grader)
            chunk.append(Outgoing(PROMPTS_PREFIX + prompt.domain, _key(prompt), prompt))
            if len(chunk) == _AT_ONCE:
                sent += await self._send(chunk)
                chunk = []
                if on_sent:
                    on_sent(sent)
        sent += await self._send(chunk)
        if on_sent:
            on_sent(sent)
        return sent

    async def rewards(self, *, follow: bool = False, purpose: Purpose | None = None) -> AsyncGenerator[Reward]:
        """Every reward on the log; with `follow` also those to come. `purpose` None: of every purpose."""
        async for event in self.events(REWARDS, follow=follow):
            if isinstance(event, Reward) and purpose in (None, event.purpose):
                yield event

    async def evaluations(self, *, follow: bool = False) -> AsyncGenerator[Trajectory | GroupDropped]:
        """How evaluation groups ended. A group may come twice: the first counts."""
        async for event in self.events(EVALUATIONS, follow=follow):
            if isinstance(event, Trajectory | GroupDropped):
                yield event

    async def events(
        self, topic: TopicSpec[Event], *, follow: bool = False, start: Mapping[Place, int] | None = None
    ) -> AsyncGenerator[Event]:
        """The readable events of a topic; what cannot be read is skipped (its first reader dead-letters it)."""
        async for record in read_topics(self.settings, [topic.name], follow=follow, start=start):
            event = glance(record, topic)
            if event is not None:
                yield event

    async def score(self, answers: Iterable[Answer], *, timeout_seconds: float = 600.0) -> AsyncGenerator[Scored]:
        """Send answers through the stream and yield each one's reward as it comes, in no particular order.

        Raises NotAnswered when no reward came for `timeout_seconds` while some are missing.
        """
        answers = list(answers)
        for answer in answers:
            await self._declare_grader(answer.grader)
        batch = uuid.uuid4().hex[:16]
        waiting: dict[str, str] = {}
        sending: list[Outgoing] = []
        for number, answer in enumerate(answers):
            out = _score_rollout(f"score-{batch}-{number}", answer)
            waiting[out.key] = answer.id
            sending.append(out)
        start = await end_offsets(self.settings, [REWARDS.name])
        publishing = asyncio.create_task(self._send_chunks(sending))
        rewards = self.events(REWARDS, follow=True, start=start)
        try:
            while waiting:
                try:
                    async with asyncio.timeout(timeout_seconds):
                        reward = await anext(rewards)
                except TimeoutError as error:
                    raise NotAnswered(
                        f"no reward for {len(waiting)} answers within {timeout_seconds:.0f} s: "
                        "do dispatch, sandbox and reward run? See `headwater status`"
                    ) from error
                assert isinstance(reward, Reward)
                answer_id = waiting.pop(reward.context.group_id, None)
                if answer_id is not None:
                    yield _scored(answer_id, reward)
            await publishing
        finally:
            publishing.cancel()
            await rewards.aclose()

    async def evaluate(
        self, prompts: Sequence[Prompt], *, quiet_seconds: float = QUIET_SECONDS, where: str = "see `headwater status`"
    ) -> AsyncGenerator[Trajectory | GroupDropped]:
        """Publish evaluation prompts (each with an id) and yield how their groups end, in no particular order.

        Raises NotAnswered when none has ended for `quiet_seconds`; its message ends with `where` to look.
        """
        waiting = {(prompt.domain, prompt.id, prompt.epoch) for prompt in prompts}
        start = await end_offsets(self.settings, [EVALUATIONS.name])
        await self.publish(prompts)
        endings = self.events(EVALUATIONS, follow=True, start=start)
        try:
            while waiting:
                async with asyncio.timeout(quiet_seconds):
                    event = await anext(endings)
                if isinstance(event, Trajectory | GroupDropped):
                    identity = (event.domain, event.prompt_id, event.epoch)
                    if identity in waiting:
                        waiting.discard(identity)
                        yield event
        except TimeoutError as error:
            raise NotAnswered(
                f"{len(waiting)} evaluation groups have not ended, and none has for {quiet_seconds:.0f} s; {where}"
            ) from error
        finally:
            await endings.aclose()

    async def _declare_grader(self, grader: Grader) -> None:
        if isinstance(grader, ExternalGrader) and grader.name not in self._graders:
            await declare_grader(self.settings, grader.name)
            self._graders.add(grader.name)

    async def _send_chunks(self, outs: list[Outgoing]) -> None:
        for first in range(0, len(outs), _AT_ONCE):
            await self._send(outs[first : first + _AT_ONCE])

    async def _send(self, outs: list[Outgoing]) -> int:
        return len(await self._publisher.send_all(outs))


def _key(prompt: Prompt | SourceEnd) -> str:
    if isinstance(prompt, SourceEnd):
        return prompt.source
    return prompt.id or hashlib.sha256(msgspec.json.encode(prompt)).hexdigest()[:32]


def _score_rollout(group_id: str, answer: Answer) -> Outgoing:
    rollout = Rollout(
        purpose=Purpose.SCORE,
        trace_id=group_id,
        rollout_id=f"{group_id}-0",
        group_id=group_id,
        task=Task(prompt_id=answer.id, domain=answer.domain, grader=answer.grader),
        text=answer.text,
        digest=rollout_digest((), answer.text),
    )
    return Outgoing(ROLLOUTS.name, group_id, rollout)


def _scored(answer_id: str, reward: Reward) -> Scored:
    return Scored(
        id=answer_id,
        reward=reward.reward,
        passed=reward.passed,
        tests=reward.tests,
        verdict=reward.verdict.value if reward.verdict else None,
        feedback=reward.feedback,
        unscorable=reward.unscorable_words,
        components=reward.components,
    )
