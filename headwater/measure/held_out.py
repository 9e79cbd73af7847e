"""The demo's prompts: training tasks, and what the policy is measured on before and after."""

from collections.abc import Iterator

from headwater.config.run_config import EvaluationConfig, FunctionsData, RunConfig
from schemas import FunctionGrader, FunctionTest, Message, Prompt, Purpose, Sampling, SourcePosition
from tasks.domains.functions import FunctionTask, Split, make_task

HELD_OUT = "held-out"
NEW_TEMPLATES = "new-templates"
GREEDY = "-greedy"


def training_prompts(data: FunctionsData, config: RunConfig, indices: Iterator[int] | range) -> Iterator[Prompt]:
    """Task number `index` of the source, for each index."""
    seed = config.seed if data.seed is None else data.seed
    for index in indices:
        yield _prompt(
            make_task("train", index, seed),
            prompt_id=f"{data.name}-{index}",
            domain=data.domain,
            purpose=Purpose.TRAIN,
            group_size=config.sampling.group_size,
            sampling=_sampling(config, config.sampling.temperature),
            deadline_seconds=config.sampling.deadline_seconds,
            source=SourcePosition(source=data.name, index=index),
        )


def evaluation_set(config: RunConfig, *, epoch: int) -> list[Prompt]:
    """Held-out tasks sampled and greedy, and tasks of templates never trained on. The same for every epoch."""
    evaluation = config.evaluation
    return [
        *evaluation_prompts(config, "held_out", HELD_OUT, evaluation.prompts, epoch),
        *evaluation_prompts(config, "new_templates", NEW_TEMPLATES, evaluation.new_template_prompts, epoch),
    ]


def evaluation_prompts(config: RunConfig, split: Split, domain: str, count: int, epoch: int) -> Iterator[Prompt]:
    """The first `count` tasks of a split, each sampled and greedy."""
    evaluation: EvaluationConfig = config.evaluation
    for greedy in (False, True):
        for index in range(count):
            yield _prompt(
                make_task(split, index, evaluation.seed),
                prompt_id=f"{domain}-{index}{GREEDY if greedy else ''}",
                domain=domain,
                purpose=Purpose.EVALUATE,
                group_size=1 if greedy else evaluation.samples,
                sampling=_sampling(config, 0.0 if greedy else 1.0),
                deadline_seconds=evaluation.deadline_seconds,
                epoch=epoch,
            )


def _sampling(config: RunConfig, temperature: float) -> Sampling:
    return Sampling(temperature=temperature, max_new_tokens=config.sampling.max_new_tokens, stop=config.sampling.stop)


def _prompt(
    task: FunctionTask,
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
    return Prompt(
        id=prompt_id,
        domain=domain,
        purpose=purpose,
        messages=tuple(Message(role=message["role"], content=message["content"]) for message in task.messages),  # pyright: ignore[reportArgumentType]
        grader=FunctionGrader(
            entry_point=task.entry_point,
            tests=tuple(FunctionTest.of(arguments, expected) for arguments, expected in task.tests),
        ),
        group_size=group_size,
        sampling=sampling,
        deadline_seconds=deadline_seconds,
        epoch=epoch,
        source=source,
        metadata=task.metadata,
    )
