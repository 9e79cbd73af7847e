"""What a role's process does around the role's own work: `/metrics`, stop signals, and what is missing in words."""

import asyncio
import logging
import os
import signal

from headwater.errors import HeadwaterError
from headwater.files.run_directory import RunDirectory
from headwater.run.context import RoleContext
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
    metrics_port: int = 0,
    allow_unenforced: tuple[str, ...] = (),
) -> None:
    """Run one role until it is done or told to stop (SIGTERM, SIGINT). Raises HeadwaterError for what it lacks."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    directory.logs.mkdir(parents=True, exist_ok=True)
    metrics = Metrics()
    try:
        port = await metrics.serve(metrics_port, port_file=directory.port(name))
    except OSError as error:
        raise HeadwaterError(f"port {metrics_port} for /metrics is in use: give another --metrics-port") from error
    log.info("%s starts: process %d, broker %s, metrics on port %d", name, os.getpid(), settings.bootstrap, port)
    context = RoleContext(
        name=name,
        directory=directory,
        settings=settings,
        metrics=metrics,
        stop=stop,
        allow_unenforced=allow_unenforced,
    )
    try:
        await role.start(context)
    except ModuleNotFoundError as error:
        if error.name not in role.modules:
            raise
        raise HeadwaterError(
            f"the role {role.name} needs {error.name}, which is not installed: pip install 'headwater[{role.extra}]'"
        ) from error
    finally:
        directory.port(name).unlink(missing_ok=True)
        await metrics.close()
    log.info("%s ends", name)
