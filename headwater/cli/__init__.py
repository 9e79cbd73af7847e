"""The command line. Each command imports what it needs when it runs, so that `--help` is quick."""

import logging
import sys

import typer

from headwater.cli import broker, data, inspect, judge, measure, packages, roles, run
from headwater.errors import HeadwaterError, Interrupted
from tasks.errors import TaskError

app = typer.Typer(
    name="headwater",
    help="Event-driven reinforcement-learning post-training of language models: every step is an event on Kafka.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for group in (run, data, measure, judge, packages, inspect, roles, broker):
    group.register(app)


def main() -> None:
    """Run a command. What a person can mend is one message and exit status 1, without a traceback."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it says of a lost broker is said once, by us
    try:
        app()
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.exit(130)
    except (HeadwaterError, TaskError) as error:
        _fail(str(error))
    except ValueError as error:
        # settings of the broker that make no sense together: the message is for the person who set them
        if type(error) is not ValueError:
            raise
        _fail(str(error))


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
