"""What a domain is: problems by number, each with its judge and an answer that is right. `README.md` adds one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from schemas import Grader, Message, Prompt, Purpose, Sampling, SourcePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is asked once, and how the answer is judged."""

    id: str
    messages: tuple[Message, ...]
    grader: Grader
    reference: str | None = None
    """An answer as a model would write it, for which the grader gives 1.0; None: nobody has one."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def prompt(
        self,
        *,
        prompt_id: str,
        domain: str,
        purpose: Purpose,
        group_size: int,
        sampling: Sampling,
        deadline_seconds: float,
        epoch: int = 0,
        source: SourcePosition | None = None,
    ) -> Prompt:
        """The problem as an event of the stream `prompts.<domain>`."""
        return Prompt(
            id=prompt_id,
            domain=domain,
            purpose=purpose,
            messages=self.messages,
            grader=self.grader,
            group_size=group_size,
            sampling=sampling,
            deadline_seconds=deadline_seconds,
            epoch=epoch,
            source=source,
            metadata=self.metadata,
        )


class Domain(ABC):
    """A set of problems. Everything is a pure function of (index, seed)."""

    name: str
    """In `[[data]] kind`, in `eval --dataset`, and of its prompt stream, `prompts.<name>`."""
    size: int | None = None
    """How many problems there are; None: as many as are asked for."""
    held_out: tuple[str, ...] = ()
    """Names of the domains that measure what this one trains, the most telling first: they share no problem with it."""
    completions_are_programs: bool = False
    """What `answer` makes of a completion is the program itself: no block of code is looked for in it."""
    stop: tuple[str, ...] = ()
    """What ends an answer to its prompts, where nobody says otherwise."""

    @abstractmethod
    def problem(self, index: int, seed: int) -> Problem:
        """Problem number `index` (from 0). Raises DatasetMissing where its data is not installed."""

    def answer(self, problem: Problem, completion: str) -> str:
        """The text to judge for a completion as the domain's own files have them."""
        return completion

    def problems(self, count: int | None = None, seed: int = 0) -> Iterator[Problem]:
        """The first `count`, or all there are. Raises ValueError for all of a domain without end."""
        if count is None and self.size is None:
            raise ValueError(f"the domain {self.name!r} has no end: say how many problems")
        ends = [end for end in (count, self.size) if end is not None]
        return (self.problem(index, seed) for index in range(min(ends)))
