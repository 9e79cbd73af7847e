"""Everyone outside: a task source, users with prompts of their own, and those who cancel and pause."""

from schemas import (
    CancelRequest,
    ExactGrader,
    FunctionGrader,
    FunctionTest,
    Generation,
    Message,
    Pause,
    Progress,
    Prompt,
    Purpose,
    Resume,
    Sampling,
    SourceEnd,
    SourcePosition,
)  # fmt: skip
from tests.simulation.scheduler import DOMAINS
from tests.simulation.world import Move, Role, World
from wire.kafka.records import Outgoing

FUNCTION = FunctionGrader(entry_point="f", tests=(FunctionTest.of([1], 2),))
EXACT = ExactGrader(answer="1")
DEADLINE_SECONDS = 60.0
AHEAD = 4
"""A source without an end publishes so many prompts ahead of those admitted."""


class People(Role):
    """Publishes; never read by anyone but through the log."""

    name = "people"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._paused: list[str | None] = []
        self._user_prompts = 0
        self.crash()

    def crash(self) -> None:
        """The source starts again, from what the learner says has ended, and publishes the rest."""
        self._todo: list[int] | None = None
        self._ends: list[str] = []
        self._next = 0

    def end_trouble(self) -> None:
        for domain in [*self._paused, None]:
            self.world.publish(self, Outgoing("control", "run", Resume(domain=domain)))

    def moves(self) -> list[Move]:
        moves: list[Move] = []
        if self._todo is None:
            if self._progress() is not None:
                moves.append(self._begin)
        elif self._todo or self._may_go_on():
            moves.append(self._publish_next)
        elif self._ends:
            moves.append(self._publish_end)
        if self.world.odds(0.03):
            moves.append(self._user_prompt)
        if self.world.odds(0.02):
            moves.append(self._control)
        return moves

    def _progress(self) -> Progress | None:
        found = [event for event in self.world.log.events("progress") if isinstance(event, Progress)]
        return max(found, key=lambda event: event.incarnation, default=None)

    def _begin(self) -> None:
        progress = self._progress()
        assert progress is not None
        ended = progress.sources.get("source")
        todo = range(self.world.setting.num_prompts)
        self._todo = [index for index in todo if ended is None or (index >= ended.low and index not in ended.above)]
        self._next = self.world.setting.num_prompts
        self._ends = list(DOMAINS) if self.world.setting.max_updates is None else []

    def _may_go_on(self) -> bool:
        """A run that ends by updates needs prompts without end."""
        if self.world.setting.max_updates is None:
            return False
        progress, log = self._progress(), self.world.log
        ahead = sum(
            log.end(topic, 0) - log.committed["scheduler-train", topic, 0]
            for topic in (f"prompts.{domain}" for domain in DOMAINS)
        )
        return not (progress and progress.closing) and ahead < AHEAD

    def _publish_next(self) -> None:
        if self._todo:
            index = self._todo.pop(0)
        else:
            index, self._next = self._next, self._next + 1
        self._publish_task(index)
        if self.world.odds(0.1):
            self._publish_task(index)

    def _publish_task(self, index: int) -> None:
        domain = DOMAINS[index % len(DOMAINS)]
        self.world.publish(self, self._prompt(f"task{index}", domain, SourcePosition(source="source", index=index)))

    def _publish_end(self) -> None:
        domain = self._ends.pop()
        end = SourceEnd(source="source", domain=domain, count=self.world.setting.num_prompts)
        self.world.publish(self, Outgoing(f"prompts.{domain}", "source", end))

    def _user_prompt(self) -> None:
        self._user_prompts += 1
        purpose = self.rng.choice((Purpose.TRAIN, Purpose.EVALUATE))
        name = None if self.rng.random() < 0.3 else f"user{self._user_prompts}"
        self.world.publish(self, self._prompt(name, self.rng.choice(DOMAINS), None, purpose))

    def _prompt(
        self, name: str | None, domain: str, source: SourcePosition | None, purpose: Purpose = Purpose.TRAIN
    ) -> Outgoing:
        prompt = Prompt(
            id=name, domain=domain, purpose=purpose, messages=(Message(role="user", content="?"),), source=source,
            grader=EXACT if self.rng.random() < 0.2 else FUNCTION, group_size=self.world.setting.group_size,
            sampling=Sampling(), deadline_seconds=DEADLINE_SECONDS,
            metadata={"too_long": True} if self.rng.random() < 0.05 else {},
        )  # fmt: skip
        return Outgoing(f"prompts.{domain}", name or "", prompt)

    def _control(self) -> None:
        what = self.rng.random()
        domain = self.rng.choice((*DOMAINS, None))
        if what < 0.2:
            self._paused.append(domain)
            event = Pause(domain=domain)
        elif what < 0.6:
            event = Resume(domain=domain)
        else:
            groups = [e.group_id for _, _, e in self.world.log.all("generations") if isinstance(e, Generation)]
            event = CancelRequest(group_id=self.rng.choice(groups)) if groups else CancelRequest(prompt_id="task1")
        self.world.publish(self, Outgoing("control", "run", event))
