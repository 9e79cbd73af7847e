"""What a role's process does around the role's own work: `/metrics`, stop signals, and what is missing in words."""

import asyncio
import logging
import os
import signal

from headwater.errors import HeadwaterError
from headwater.files.run_directory import RunDirectory
from headwater.run.context import RoleContext
from headwater.run.joining import find_run
from headwater.run.roles import Role
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)


async def run_role(
    role: Role,
    name: str,
    directory: RunDirectory,
    settings: KafkaSettings,
    *,
    run: str | None = None,
    metrics_host: str = "127.0.0.1",
    metrics_port: int = 0,
    allow_unenforced: tuple[str, ...] = (),
) -> None:
    """Run one role until it is done or told to stop (SIGTERM, SIGINT). Raises HeadwaterError for what it lacks.

    `run`: the name or id of the run that it joins; None: it works for whatever comes.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    joined = None
    if run is not None:
        joined = await find_run(settings, run)
        directory.belong_to(joined.run_id)
    directory.logs.mkdir(parents=True, exist_ok=True)
    with directory.sole(name):
        metrics = Metrics()
        try:
            port = await metrics.serve(metrics_port, host=metrics_host, port_file=directory.port(name))
        except OSError as error:
            raise HeadwaterError(
                f"/metrics cannot be served at {metrics_host}, port {metrics_port} ({error.strerror}): give another "
                "--metrics-host or --metrics-port"
            ) from error
        log.info("%s starts: process %d, broker %s, metrics on port %d", name, os.getpid(), settings.bootstrap, port)
        context = RoleContext(
            name=name,
            directory=directory,
            settings=settings,
            metrics=metrics,
            stop=stop,
            joined=joined,
            allow_unenforced=allow_unenforced,
        )
        try:
            await _start(role, context)
        finally:
            directory.port(name).unlink(missing_ok=True)
            await metrics.close()
    log.info("%s ends", name)


async def _start(role: Role, context: RoleContext) -> None:
    try:
        await role.start(context)
    except ModuleNotFoundError as error:
        if error.name not in role.modules:
            raise
        raise HeadwaterError(
            f"the role {role.name} needs {error.name}, which is not installed: pip install 'headwater[{role.extra}]'"
        ) from error
