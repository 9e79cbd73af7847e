"""`publish`, `rewards`, `topics`: events on and off the stream."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.common import RUNS, Bootstrap, Json, Prefix, Runs, console, kafka, run

if TYPE_CHECKING:
    from schemas import Reward
    from tasks.files.checked import CheckedPrompts
    from wire.kafka.settings import KafkaSettings

_SHOWN_REFUSALS = 20

topics = typer.Typer(help="The topics of the contract.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Events")(publish)
    app.command(rich_help_panel="Events")(rewards)
    app.add_typer(topics, name="topics", rich_help_panel="Events")


def publish(
    file: Annotated[str, typer.Argument(help="JSONL or Parquet, local or any URL that fsspec knows.")],
    epochs: Annotated[int, typer.Option(min=1, help="Times to publish it all.")] = 1,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", help="Shuffle each epoch, from this seed.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Publish prompts. A line that is no prompt is refused with file, line and reason; the others are sent.

    Exit status 1: a line was refused.

    Example: headwater publish prompts.jsonl --epochs 3 --shuffle 0

    Example: headwater publish s3://bucket/prompts.parquet --bootstrap kafka:9092
    """
    from tasks.files.checked import CheckedPrompts

    settings = kafka(bootstrap, prefix, runs)
    with CheckedPrompts(file) as checked:
        checked.read()
        for refusal in checked.refusals[:_SHOWN_REFUSALS]:
            typer.echo(str(refusal), err=True)
        if checked.refused > _SHOWN_REFUSALS:
            typer.echo(f"… and {checked.refused - _SHOWN_REFUSALS} more", err=True)
        sent = run(_publish(checked, epochs, shuffle, settings))
        times = f" × {epochs} epochs = {sent} events" if epochs > 1 else ""
        typer.echo(f"{checked.lines} prompts: {checked.accepted} accepted, {checked.refused} refused{times}")
        if checked.refused:
            raise typer.Exit(1)


async def _publish(checked: "CheckedPrompts", epochs: int, shuffle: int | None, settings: "KafkaSettings") -> int:
    from rich.progress import Progress

    from headwater.client import Client

    total = checked.accepted * epochs
    async with Client(settings=settings) as client:
        with Progress(console=console(), transient=True, disable=total == 0) as progress:
            task = progress.add_task("publishing", total=total)
            return await client.publish(
                checked.prompts(epochs, shuffle), on_sent=lambda sent: progress.update(task, completed=sent)
            )


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
