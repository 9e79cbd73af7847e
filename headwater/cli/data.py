"""`publish`, `rewards`, `topics`: events on and off the stream."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.common import RUNS, Bootstrap, Json, Prefix, Runs, console, kafka, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.client import Client
    from schemas import Prompt, Reward
    from tasks.files.checked import CheckedPrompts
    from wire.kafka.settings import KafkaSettings

_SHOWN_REFUSALS = 20
_SHOWN_PROMPTS = 3

Identity = tuple[str, str | None, int]
"""Domain, id and epoch: of one a run tries only the first prompt."""

topics = typer.Typer(help="The topics of the contract.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Events")(publish)
    app.command(rich_help_panel="Events")(rewards)
    app.add_typer(topics, name="topics", rich_help_panel="Events")


def publish(
    path: Annotated[
        str, typer.Argument(help="A file, folder or glob of JSONL, Parquet or Arrow, local or any URL of fsspec's.")
    ],
    domain: Annotated[str | None, typer.Option(help="Of prompts that name none.", show_default=False)] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=COLUMN",
            help="For rows that are no prompts: README, `Your data`.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Times to publish it all.")] = 1,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", help="Shuffle each epoch, from this seed.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; show the first three.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Publish prompts. A row that is no prompt is refused with file, row and reason; the others are sent.

    Exit status 1: a row was refused.

    Example: headwater publish prompts.jsonl --epochs 3 --shuffle 0

    Example: headwater publish gsm8k/ --domain math --map messages=question --map answer=answer --dry-run
    """
    from tasks.files.checked import CheckedPrompts
    from tasks.files.mapping import ColumnMap, parsed_map

    columns = ColumnMap(parsed_map(map_), domain) if map_ else None
    settings = None if dry_run else kafka(bootstrap, prefix, runs)
    with CheckedPrompts(path, {"domain": domain} if domain else None, columns) as checked:
        checked.read()
        for refusal in checked.refusals[:_SHOWN_REFUSALS]:
            typer.echo(str(refusal), err=True)
        if checked.refused > _SHOWN_REFUSALS:
            typer.echo(f"… and {checked.refused - _SHOWN_REFUSALS} more", err=True)
        if checked.repeated:
            typer.echo(
                f"{checked.repeated} have the domain, id and epoch of another, of which a run tries one; the first: "
                f"{checked.first_repeat}",
                err=True,
            )
        count = f"{checked.lines} prompts: {checked.accepted} accepted, {checked.refused} refused"
        if settings is None:
            _show(checked)
            typer.echo(f"{count}; nothing was sent")
        else:
            sent, repeated = run(_publish(checked, epochs, shuffle, settings))
            typer.echo(count + (f" × {epochs} epochs = {sent} events" if epochs > 1 else ""))
            if repeated:
                typer.echo(
                    f"{repeated} were not sent: the log has their domain, id and epoch already, and a run tries each "
                    "once; to try them again, give them another `epoch`, or no `id`"
                )
        if checked.refused:
            raise typer.Exit(1)


def _show(checked: "CheckedPrompts") -> None:
    from itertools import islice

    from headwater.look.prompt import shown

    for prompt in islice(checked.prompts(), _SHOWN_PROMPTS):
        typer.echo(shown(prompt) + "\n")


async def _publish(
    checked: "CheckedPrompts", epochs: int, shuffle: int | None, settings: "KafkaSettings"
) -> tuple[int, int]:
    """How many were sent, and how many were not, because the log has them."""
    from rich.progress import Progress

    from headwater.client import Client

    total = checked.accepted * epochs
    async with Client(settings=settings) as client:
        known = await _on_the_log(client, checked.domains) if checked.has_ids else set[Identity]()
        prompts = _unknown(checked.prompts(epochs, shuffle), known)
        with Progress(console=console(), transient=True, disable=total == 0) as progress:
            task = progress.add_task("publishing", total=total)
            sent = await client.publish(prompts, on_sent=lambda sent: progress.update(task, completed=sent))
    return sent, total - sent


async def _on_the_log(client: "Client", domains: set[str]) -> set[Identity]:
    from schemas import Prompt
    from schemas.topics import prompts_topic

    found: set[Identity] = set()
    for domain in domains:
        async for event in client.events(prompts_topic(domain)):
            if isinstance(event, Prompt):
                found.add((domain, event.id, event.epoch))
    return found


def _unknown(prompts: "Iterator[Prompt]", known: set[Identity]) -> "Iterator[Prompt]":
    for prompt in prompts:
        identity = (prompt.domain, prompt.id, prompt.epoch)
        if prompt.id is None or identity not in known:
            known.add(identity)
            yield prompt


def rewards(
    follow: Annotated[bool, typer.Option("--follow", help="Go on with those to come, until Ctrl-C.")] = False,
    json_: Json = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Print every reward on the log.

    Example: headwater rewards --follow --json | jq .reward
    """
    run(_rewards(follow, json_, kafka(bootstrap, prefix, runs)))


async def _rewards(follow: bool, as_json: bool, settings: "KafkaSettings") -> None:
    from headwater.client import Client

    async with Client(settings=settings) as client:
        async for reward in client.rewards(follow=follow):
            typer.echo(_reward_json(reward) if as_json else _reward_line(reward))


def _reward_json(reward: "Reward") -> str:
    import msgspec

    return msgspec.json.encode(reward).decode()


def _reward_line(reward: "Reward") -> str:
    context = reward.context
    value = f"{reward.reward:+.3f}" if reward.reward is not None else "  —   "
    verdict = reward.unscorable_words or (reward.verdict.value if reward.verdict else "")
    return (
        f"{value}  {reward.purpose.value:8}  {context.domain:16}  {context.prompt_id}#{context.sample_index}  {verdict}"
    )


@topics.command("apply")
def topics_apply(
    partitions: Annotated[int, typer.Option(min=1, help="Of the topics on which a group's events meet.")] = 4,
    replication: Annotated[int, typer.Option(min=1, help="Copies of each topic.")] = 1,
    domain: Annotated[list[str] | None, typer.Option(help="Declare this domain's prompt topic too.")] = None,
    grader: Annotated[list[str] | None, typer.Option(help="Declare this external grader's topic too.")] = None,
    json_: Json = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
) -> None:
    """Declare every topic with its limits, or check those that are there; name the log.

    Example: headwater topics apply --partitions 12 --replication 3 --bootstrap kafka:9092
    """
    from wire.kafka.topics import apply_topics

    settings = kafka(bootstrap, prefix)
    names = {"domains": domain or (), "graders": grader or ()}
    log_id = run(apply_topics(settings, partitions=partitions, replication=replication, **names))
    typer.echo(json.dumps({"log_id": log_id}) if json_ else f"the topics {settings.prefix}* are in order; log {log_id}")
