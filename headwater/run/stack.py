"""A broker, its topics and the roles on it: what `up`, `score` and `eval` start, watch and end in order.

With settings given the broker is somebody else's; without, one is started on the run directory's `kafka/`, where its
log stays: it is started again when it dies, and the next stack on the directory goes on with the log.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NoReturn, Self

from headwater.files.run_directory import RunDirectory
from headwater.run.broker import keep
from headwater.run.processes import RoleSpec, headwater_command
from headwater.run.roles import role_of, stop_order
from headwater.run.supervisor import Supervisor
from schemas.roles import RoleName
from wire.broker.embedded import EmbeddedKafka
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import BULKY, apply_topics
from wire.together import beside

log = logging.getLogger(__name__)


class Stack:
    """Use as `async with`: leaving it ends every process that it started."""

    def __init__(
        self,
        directory: RunDirectory,
        *,
        settings: KafkaSettings | None,
        prefix: str,
        partitions: int,
        replication: int = 1,
        domains: Iterable[str] = (),
        retention_bytes: int | None = None,
        on_note: Callable[[str], None],
        allow_unenforced: Iterable[str] = (),
    ) -> None:
        """`retention_bytes` bounds the log of the embedded broker."""
        self.directory = directory
        self.log_id = ""
        self._given = settings
        self._prefix = prefix
        self._partitions = partitions
        self._replication = replication
        self._domains = tuple(domains)
        self._retention_bytes = retention_bytes
        self._on_note = on_note
        self._allow_unenforced = tuple(allow_unenforced)
        self._broker: EmbeddedKafka | None = None
        self._settings: KafkaSettings | None = None
        self._supervisor: Supervisor | None = None

    async def __aenter__(self) -> Self:
        self.directory.logs.mkdir(parents=True, exist_ok=True)
        if self._given is None:
            retention = (
                None if self._retention_bytes is None else self._retention_bytes // (len(BULKY) * self._partitions)
            )
            self._broker = EmbeddedKafka(
                self.directory.kafka, retention_bytes=retention, log_file=self.directory.log("broker")
            )
            bootstrap = await self._broker.start()
            self._settings = KafkaSettings(bootstrap=bootstrap, prefix=self._prefix)
        else:
            self._settings = self._given
        try:
            self.log_id = await apply_topics(
                self._settings, partitions=self._partitions, replication=self._replication, domains=self._domains
            )
        except BaseException:
            await self._stop_broker()
            raise
        self.directory.bootstrap.write_text(self._settings.bootstrap + "\n")
        self._supervisor = Supervisor(on_restart=self._restarted)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop_roles()
        finally:
            self.directory.bootstrap.unlink(missing_ok=True)
            await self._stop_broker()

    @property
    def settings(self) -> KafkaSettings:
        assert self._settings is not None, "not entered"
        return self._settings

    @property
    def supervisor(self) -> Supervisor:
        assert self._supervisor is not None, "not entered"
        return self._supervisor

    async def start_roles(self, *names: str, run_id: str = "") -> None:
        """Start `scheduler`, `rollout-2`, …: the part before a number is the role, the whole its name.

        `run_id`: the run that they join; grading alone needs none.
        """
        specs = [self._spec(name, run_id) for name in names]
        may_finish = frozenset(name for name in names if role_of(name).may_finish)
        await self.supervisor.start(specs, may_finish=may_finish)

    async def stop_roles(self) -> None:
        """End all roles in their order. Harmless when they have ended."""
        running = self.supervisor.running
        if self._broker is not None and not self._broker.alive:
            # without the log nothing can be finished, and clients would wait for it: the learner alone has work to save
            self.supervisor.kill([name for name in running if name != RoleName.LEARNER])
        for name in await self.supervisor.stop(stop_order(running)):
            self._on_note(f"{name} did not end by itself and was killed; its log: {self.directory.log(name)}")

    def kill(self) -> None:
        """End everything at once (the second Ctrl-C)."""
        self.supervisor.kill(list(self.supervisor.running))

    async def trouble(self) -> None:
        """Keep the broker running. Raises what ends a run: a role, or the broker, that cannot be kept running."""
        broker = [] if self._broker is None else [keep(self._broker, self._on_note)]
        await beside(self._role_failed(), *broker)

    async def _role_failed(self) -> NoReturn:
        raise await self.supervisor.failed()

    def _spec(self, name: str, run_id: str) -> RoleSpec:
        role = role_of(name)
        arguments = [role.command] if role.command == role.name else [role.command, role.name]
        if run_id:
            arguments += ["--run", run_id]
        if role.judges:
            arguments += [part for limit in self._allow_unenforced for part in ("--allow-unenforced", limit)]
        return RoleSpec(
            name=name,
            command=headwater_command(*arguments, "--run-directory", str(self.directory.path), "--name", name),
            log=self.directory.log(name),
            environment=self.settings.to_environment(),
            stop_seconds=role.stop_seconds,
        )

    def _restarted(self, name: str, how: str) -> None:
        self._on_note(f"{name} ended ({how}) and is started again")

    async def _stop_broker(self) -> None:
        if self._broker is not None:
            with contextlib.suppress(ProcessLookupError):
                await self._broker.stop()
