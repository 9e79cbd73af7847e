"""Prompts of domains: those that a run trains on, and those that it is measured on before and after."""

from collections.abc import Iterator

from headwater.config.run_config import RunConfig
from schemas import Prompt, Purpose, Sampling, SourcePosition
from tasks.config import DomainData
from tasks.domain import Domain
from tasks.domains import functions
from tasks.registry import find_domain

HELD_OUT = functions.HELD_OUT.name
NEW_TEMPLATES = functions.NEW_TEMPLATES.name
GREEDY = "-greedy"


def training_prompts(data: DomainData, config: RunConfig, indices: Iterator[int] | range) -> Iterator[Prompt]:
    """Problem number `index` of the source's domain, for each index. Raises TaskError."""
    seed = config.seed if data.seed is None else data.seed
    domain = find_domain(data.kind)
    for index in indices:
        yield domain.problem(index, seed).prompt(
            prompt_id=f"{data.name}-{index}",
            domain=data.domain,
            purpose=Purpose.TRAIN,
            group_size=config.sampling.group_size,
            sampling=_sampling(config, config.sampling.temperature),
            deadline_seconds=config.sampling.deadline_seconds,
            source=SourcePosition(source=data.name, index=index),
        )


def measured_domains(config: RunConfig) -> list[tuple[Domain, int]]:
    """What measures the run's domains, and how many problems of each. The same for every epoch. Raises TaskError."""
    evaluation = config.evaluation
    counts: dict[str, int] = {}
    for kind in dict.fromkeys(data.kind for data in config.data if isinstance(data, DomainData)):
        for place, name in enumerate(find_domain(kind).held_out):
            counts[name] = evaluation.new_template_prompts if place else evaluation.prompts
    return [(find_domain(name), count) for name, count in counts.items()]


def evaluation_set(config: RunConfig, *, epoch: int) -> list[Prompt]:
    """Every measured domain's problems, sampled and greedy."""
    return [
        prompt
        for domain, count in measured_domains(config)
        for prompt in evaluation_prompts(config, domain, count, epoch)
    ]


def evaluation_prompts(config: RunConfig, domain: Domain, count: int, epoch: int) -> Iterator[Prompt]:
    """The first `count` problems of a domain (or all, where it has fewer), each sampled and greedy."""
    evaluation = config.evaluation
    for greedy in (False, True):
        for problem in domain.problems(count, evaluation.seed):
            yield problem.prompt(
                prompt_id=f"{problem.id}{GREEDY if greedy else ''}",
                domain=domain.name,
                purpose=Purpose.EVALUATE,
                group_size=1 if greedy else evaluation.samples,
                sampling=_sampling(config, 0.0 if greedy else 1.0),
                deadline_seconds=evaluation.deadline_seconds,
                epoch=epoch,
            )


def _sampling(config: RunConfig, temperature: float) -> Sampling:
    return Sampling(temperature=temperature, max_new_tokens=config.sampling.max_new_tokens, stop=config.sampling.stop)
