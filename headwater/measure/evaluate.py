"""`headwater eval`: a model measured on a domain, greedy and sampled, through the same stream that trains.

Without a learner the model is announced as incarnation 0; rollout workers load it as they load any policy.
"""

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from headwater.client import Client
from headwater.config.load import build_config
from headwater.config.run_config import RunConfig
from headwater.errors import HeadwaterError, NothingMeasured
from headwater.files.export import newest_weights
from headwater.files.run_directory import RunDirectory
from headwater.look.status import newest_weight_update
from headwater.measure.held_out import GREEDY, evaluation_prompts
from headwater.measure.recorder import evaluation_line
from headwater.report.summary import figures
from headwater.run.joining import publish_run
from headwater.run.models import model_directory
from headwater.run.stack import Stack
from headwater.run.up import or_trouble
from schemas import Prompt, Purpose, Sampling, WeightUpdate
from schemas.topics import WEIGHTS
from tasks.domain import Domain
from tasks.files.checked import CheckedPrompts
from tasks.registry import domain_names, find_domain
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.weights.snapshots import describe


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """What `eval` is asked for."""

    model: str | None
    """None: the policy that the stream has."""
    runs: Path
    dataset: str
    prompts: int
    samples: int
    max_new_tokens: int
    seed: int
    device: str
    allow_unenforced: tuple[str, ...]


async def evaluate_model(
    request: EvaluateRequest, settings: KafkaSettings | None, *, on_note: Callable[[str], None]
) -> dict[str, Any]:
    """The figures by domain and sampling. Raises HeadwaterError."""
    if settings is not None:
        return await _on_stream(request, settings)
    if request.model is None:
        raise HeadwaterError("name the model to measure, or the --bootstrap of a stream whose policy to measure")
    model = await _model(request.model, request.runs)
    directory = RunDirectory(Path(tempfile.mkdtemp(prefix="headwater-eval-")))
    directory.create()
    config = _config(request, str(model))
    prompts = list(_prompts(request, config, epoch=0))
    lines: list[dict[str, Any]] = []

    async def measure(stack: Stack) -> None:
        run = await publish_run(config, directory, stack.settings)
        await _announce(model, stack.settings, run.run_id)
        roles = ("rollout", "dispatch", "sandbox", "reward", "collect", "scheduler")
        await stack.start_roles(*roles, run_id=run.run_id)
        async with Client(settings=stack.settings) as client:
            async for event in client.evaluate(prompts, where=f"the logs are in {directory.logs}"):
                lines.append(evaluation_line(event, time.time()))

    async with Stack(
        directory,
        settings=None,
        prefix=config.broker.prefix,
        partitions=config.broker.partitions,
        domains={prompt.domain for prompt in prompts},
        on_note=on_note,
        allow_unenforced=request.allow_unenforced,
    ) as stack:
        await or_trouble(stack, measure(stack))
    shutil.rmtree(directory.path, ignore_errors=True)  # not after a failure: the logs are in it
    return _answer(request, prompts, lines, epoch=0)


async def _on_stream(request: EvaluateRequest, settings: KafkaSettings) -> dict[str, Any]:
    """Of the policy that the stream has, or, where it has none yet, of the model as incarnation 0."""
    epoch = int(time.time())  # the same prompts may be measured again and again: each time is an epoch of its own
    config = _config(request, request.model or "the stream's")
    prompts = list(_prompts(request, config, epoch))
    if request.model is not None:
        newest = await newest_weight_update(settings)
        if newest is not None:
            raise HeadwaterError(
                f"the stream has a policy already ({newest.incarnation}.{newest.version}): leave the model out to "
                "measure that"
            )
        await _announce(await _model(request.model, request.runs), settings, "")
    async with Client(settings=settings) as client:
        lines = [evaluation_line(event, time.time()) async for event in client.evaluate(prompts)]
    return _answer(request, prompts, lines, epoch)


async def _model(name: str, runs: Path) -> Path:
    """The newest weights of a run, or a model by name, directory or hub id."""
    for path in (Path(name), runs / name):
        directory = RunDirectory(path.resolve())
        if directory.config.is_file() and directory.weights.is_dir():
            return newest_weights(directory)[1]
    return await model_directory(name)


def _config(request: EvaluateRequest, model: str) -> RunConfig:
    domain = _measured(request.dataset)
    return build_config(
        {
            "name": "eval",
            "model": model,
            "seed": request.seed,
            "data": [{"kind": "functions", "count": 1}],
            # nothing is trained: what a run must say, and nobody reads here
            "training": {"batch_groups": 1, "max_staleness": 0, "max_updates": 1, "learning_rate": 1e-6},
            "sampling": {
                "group_size": 2,  # each prompt says its own
                "max_new_tokens": request.max_new_tokens,
                "stop": domain.stop if domain else (),
            },
            # the same figures on every host
            "engine": {"device": request.device, "dtype": "float32"},
            "evaluation": {"prompts": request.prompts, "samples": request.samples, "seed": request.seed},
        },
        origin="eval",
    )


def _measured(dataset: str) -> Domain | None:
    """The domain of that name, or what measures it where it is one to train on; None for a file. Raises TaskError."""
    if dataset not in domain_names():
        return None
    domain = find_domain(dataset)
    return find_domain(domain.held_out[0]) if domain.held_out else domain


def _prompts(request: EvaluateRequest, config: RunConfig, epoch: int) -> Iterator[Prompt]:
    """The data set's prompts, each once sampled and once greedy. Raises TaskError."""
    domain = _measured(request.dataset)
    if domain is not None:
        yield from evaluation_prompts(config, domain, request.prompts, epoch)
        return
    with CheckedPrompts(request.dataset) as checked:
        checked.read()
        checked.must_be_whole()
        chosen = list(islice(checked.prompts(), request.prompts))
    for number, prompt in enumerate(chosen):
        for greedy in (False, True):
            yield msgspec.structs.replace(
                prompt,
                id=f"{prompt.id or number}{GREEDY if greedy else ''}",
                purpose=Purpose.EVALUATE,
                group_size=1 if greedy else request.samples,
                sampling=Sampling(
                    temperature=0.0 if greedy else 1.0,
                    max_new_tokens=request.max_new_tokens,
                    stop=prompt.sampling.stop,
                ),
                deadline_seconds=config.evaluation.deadline_seconds,
                epoch=epoch,
                source=None,
            )


async def _announce(model: Path, settings: KafkaSettings, run_id: str) -> None:
    """The model as the policy of incarnation 0, which any learner's goes before."""
    snapshot = await asyncio.to_thread(describe, model, 0)
    update = WeightUpdate(
        run_id=run_id, model=model.name, incarnation=0, version=0, snapshot=snapshot, published_at=time.time()
    )
    async with Publisher(settings, "eval") as publisher:
        await publisher.send(Outgoing(WEIGHTS.name, f"{model.name}/0", update))


def _answer(request: EvaluateRequest, prompts: list[Prompt], lines: list[dict[str, Any]], epoch: int) -> dict[str, Any]:
    rows = results(lines, epoch)
    check_measured(lines, rows)
    return {
        "model": request.model or "the stream's policy",
        "dataset": request.dataset,
        "prompts": len(prompts) // 2,
        "results": rows,
    }


def results(lines: list[dict[str, Any]], epoch: int = 0) -> list[dict[str, Any]]:
    """One row a domain and sampling. `left_out`: groups that ended without an answer to count."""
    rows: list[dict[str, Any]] = []
    for domain in sorted({line["domain"] for line in lines}):
        dropped = [line for line in lines if "dropped" in line and line["domain"] == domain]
        for greedy in (False, True):
            found = figures(lines, domain=domain, epoch=epoch, greedy=greedy)
            rows.append(
                {
                    "domain": domain,
                    "sampling": "greedy" if greedy else "temperature 1",
                    "prompts": found.prompts,
                    "answers": found.answers,
                    "mean_reward": found.mean_reward,
                    "pass_rate": found.pass_rate,
                    "mean_tokens": found.mean_tokens,
                    "unscorable": found.unscorable,
                    "left_out": sum(line["prompt_id"].endswith(GREEDY) == greedy for line in dropped),
                }
            )
    return rows


def check_measured(lines: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Raise NothingMeasured where no answer has a reward, with the most frequent reasons."""
    if any(row["answers"] for row in rows):
        return
    reasons: Counter[str] = Counter()
    for line in lines:
        if "dropped" in line:
            reasons[f"{line['dropped']}: {line['detail']}"] += 1
        else:
            reasons.update(member["unscorable"] or "unscorable" for member in line["members"])
    told = "; ".join(f"{count}× {reason}" for reason, count in reasons.most_common(3))
    raise NothingMeasured(
        f"nothing could be measured: of {len(lines)} groups none has an answer with a reward ({told})"
    )
